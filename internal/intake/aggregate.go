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

// Aggregate is an aggregate report that was read completely.
type Aggregate struct {
	Report aggregate.Report
	// Messages and Compliant are sums over all records. Compliant and the difference each
	// saturate at dmarcd.MaxCount.
	Messages, Compliant int64
	// Largest is the highest count of any record.
	Largest int64
	// Sources is the number of distinct source addresses.
	Sources int
	// Bytes is the length of the document, in UTF-8 if a file has several.
	Bytes int64

	shares []dmarcd.Share
	cut    int // texts of records; see cutRecord
	// textBytes is the size of long texts; see usualText.
	textBytes int64
	// records is set if they fit in memory, else copied reads them again.
	records []aggregate.Record
	copied  func(ctx context.Context) iter.Seq2[aggregate.Record, error]
}

// aggregates passes each report of a document to visit. Most documents have one.
func (in *reading) aggregates(part *unpack.Part, visit Visit) error {
	first := &firstDocument{r: part, copies: in.copies, begin: in.copies.Size(), limits: in.limits.Aggregate}
	var copies recordCopies = first
	reader := in.aggregateReader(first)
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

// aggregateReader returns a reader of the reports in r.
func (in *reading) aggregateReader(r io.Reader) *aggregate.Reader {
	if in.reader == nil {
		in.reader = aggregate.NewReader(r, in.limits.Aggregate)
	} else {
		in.reader.Reset(r, in.limits.Aggregate)
	}
	return in.reader
}

// sourceKey returns a key of the same few bytes for every source: the address, or a hash
// of what is written instead.
func sourceKey(r *aggregate.Record) [16]byte {
	if r.Addr.IsValid() {
		return r.Addr.As16()
	}
	hash := sha256.Sum256([]byte(r.Source))
	return [16]byte(hash[:])
}

// aggregate reads a report to its end: only then do we know that it is usable.
func (in *reading) aggregate(reader *aggregate.Reader, copies recordCopies) (*Aggregate, error) {
	a := &Aggregate{records: in.records}
	in.records = nil
	shares := newSharing()
	sources := make(map[[16]byte]struct{})
	var sum dmarcd.Counts
	collected := true
	for record, err := range reader.All() {
		counts := dmarcd.CountsOf(record)
		a.cut += cutRecord(&record)
		if err == nil {
			err = shares.add(record.HeaderFrom, counts)
		}
		if err == nil {
			collected = collected && in.fits(len(a.records)+1, reader.Length())
			err = copies.add(a, record, collected)
		}
		if err != nil {
			copies.drop()
			return nil, err
		}
		sum.Add(counts)
		a.addText(record.TextBytes() + len(record.Source) + len(record.EnvelopeFrom) + len(record.EnvelopeTo))
		a.Largest = max(a.Largest, record.Count)
		if record.Source != "" {
			sources[sourceKey(&record)] = struct{}{}
		}
	}
	a.Messages, a.Compliant = sum.Total(), sum.Compliant
	a.Report = reader.Report()
	a.Sources = len(sources)
	a.Bytes = copies.size()
	a.shares = shares.list()
	for i := range a.shares {
		a.addText(namesOfShare * len(a.shares[i].From))
	}
	if collected {
		in.collectedRecords += len(a.records)
		in.collectedBytes += reader.Length()
		copies.drop()
	} else {
		a.copied = copies.read
	}
	return a, nil
}

const (
	// usualText is the size of the texts of a usual record or share. Quotas count more than that.
	usualText = 100
	// namesOfShare is how often the From domain of a share is stored.
	namesOfShare = 2
)

// addText adds the size of the texts of a record or share.
func (a *Aggregate) addText(bytes int) { a.textBytes += int64(max(0, bytes-usualText)) }

// Records yields the records again. For a long report it ends early with the error of ctx or
// of the temporary file.
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

// stoppable is a reader that stops with the error of a context.
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
