package intake

import (
	"context"
	"crypto/sha256"
	"io"
	"iter"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/intake/unpack"
)

// Aggregate is an aggregate report that was read to its end.
type Aggregate struct {
	Report aggregate.Report
	// Messages is the sum of the counts of all records, Compliant that of the
	// compliant ones. Compliant and the rest each saturate at dmarcd.MaxCount.
	Messages, Compliant int64
	// Largest is the greatest count of a record.
	Largest int64
	// Sources is how many different sources the records name.
	Sources int
	// Bytes is the length of the document; of one of several in a file, in UTF-8.
	Bytes int64

	shares []dmarcd.Share
	// records holds the records in memory, unless copied reads a copy of them.
	records []aggregate.Record
	copied  func(ctx context.Context) iter.Seq2[aggregate.Record, error]
}

// aggregates reads the reports of a document, of which most have one, and hands each
// to visit.
func (in *reading) aggregates(part *unpack.Part, visit Visit) error {
	first := &firstDocument{r: part, copies: in.copies, begin: in.copies.Size(), limits: in.limits.Aggregate}
	var copies recordCopies = first
	reader := aggregate.NewReader(first, in.limits.Aggregate)
	for number := 1; ; number++ {
		a, err := in.aggregate(reader, copies)
		length := reader.Length()
		more := reader.Another()
		if err == nil && (more || number > 1) {
			a.Bytes = length
		}
		item := &Item{Kind: part.Kind, Path: documentPath(part.Path, number), Aggregate: a}
		if err := in.hand(item, err, part, visit); err != nil || !more {
			return err
		}
		if err := part.AnotherDocument(); err != nil {
			return err
		}
		first.done = true
		copies = &laterDocument{copies: in.copies, begin: in.copies.Size()}
	}
}

// aggregate reads a report to its end: only there is it known whether it can be used,
// and what it says about all of its records.
func (in *reading) aggregate(reader *aggregate.Reader, copies recordCopies) (*Aggregate, error) {
	a := &Aggregate{}
	shares := newSharing()
	// A hash takes the same few bytes for every source, whatever stands there.
	sources := make(map[[16]byte]struct{})
	var sum dmarcd.Counts
	collected := true
	for record, err := range reader.All() {
		if err == nil {
			err = shares.add(record)
		}
		if err == nil {
			collected = collected && in.fits(len(a.records)+1, reader.Length())
			err = copies.add(a, record, collected)
		}
		if err != nil {
			copies.drop()
			return nil, err
		}
		sum.Add(dmarcd.CountsOf(record))
		a.Largest = max(a.Largest, record.Count)
		if record.Source != "" {
			source := sha256.Sum256([]byte(record.Source))
			sources[[16]byte(source[:])] = struct{}{}
		}
	}
	a.Messages, a.Compliant = sum.Total(), sum.Compliant
	a.Report = reader.Report()
	a.Sources = len(sources)
	a.Bytes = copies.size()
	a.shares = shares.list()
	if collected {
		in.collectedRecords += len(a.records)
		in.collectedBytes += reader.Length()
		copies.drop()
	} else {
		a.copied = copies.read
	}
	return a, nil
}

// Records returns the records once more. The records of a long report end early with
// the error of ctx, or that of the temporary file which holds a copy of them.
func (a *Aggregate) Records(ctx context.Context) iter.Seq2[aggregate.Record, error] {
	if a.copied != nil {
		return a.copied(ctx)
	}
	return func(yield func(aggregate.Record, error) bool) {
		for _, record := range a.records {
			if !yield(record, nil) {
				return
			}
		}
	}
}

// stoppable is a reader that ends with the context whose Err it is given.
type stoppable struct {
	r       io.Reader
	stopped func() error
}

func (s stoppable) Read(p []byte) (int, error) {
	if err := s.stopped(); err != nil {
		return 0, err
	}
	return s.r.Read(p)
}
