package intake

import (
	"context"
	"crypto/sha256"
	"io"
	"iter"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
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
	// Bytes is the length of the document.
	Bytes int64

	shares []dmarcd.Share
	// A report has either its records in memory or a copy of its document, from
	// which they are read again.
	records  []aggregate.Record
	document *io.SectionReader
	limits   aggregate.Limits
}

// aggregate reads a report to its end: only there is it known whether it can be used,
// and what it says about all of its records.
func (in *reading) aggregate(r io.Reader) (*Aggregate, error) {
	begin := in.copies.Size()
	a := &Aggregate{limits: in.limits.Aggregate}
	reader := aggregate.NewReader(io.TeeReader(r, in.copies), a.limits)
	shares := newSharing()
	// A hash takes the same few bytes for every source, whatever stands there.
	sources := make(map[[16]byte]struct{})
	var sum dmarcd.Counts
	collected := true
	for record, err := range reader.All() {
		if err == nil {
			err = shares.add(record)
		}
		if err != nil {
			in.copies.cut(begin)
			return nil, err
		}
		sum.Add(dmarcd.CountsOf(record))
		a.Largest = max(a.Largest, record.Count)
		source := sha256.Sum256([]byte(record.Source))
		sources[[16]byte(source[:])] = struct{}{}
		if collected = collected && in.fits(len(a.records)+1, in.copies.Size()-begin); collected {
			a.records = append(a.records, record)
		} else {
			a.records = nil
		}
	}
	a.Messages, a.Compliant = sum.Total(), sum.Compliant
	a.Report = reader.Report()
	a.Sources = len(sources)
	a.Bytes = in.copies.Size() - begin
	a.shares = shares.list()
	if collected = collected && in.fits(len(a.records), a.Bytes); collected {
		in.collectedRecords += len(a.records)
		in.collectedBytes += a.Bytes
		in.copies.cut(begin)
	} else {
		a.records = nil
		a.document = io.NewSectionReader(in.copies, begin, a.Bytes)
	}
	return a, nil
}

// Records returns the records once more. The records of a long report end early with
// the error of ctx, or that of the temporary file which holds a copy of the document.
func (a *Aggregate) Records(ctx context.Context) iter.Seq2[aggregate.Record, error] {
	if a.document != nil {
		whole := io.NewSectionReader(a.document, 0, a.Bytes)
		return aggregate.NewReader(stoppable{whole, ctx.Err}, a.limits).All()
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
