package intake

import (
	"context"
	"crypto/sha256"
	"io"
	"iter"

	"github.com/dmarcd/dmarcd/aggregate"
)

// maxCount is where sums stay: JSON numbers are exact up to there.
const maxCount = 1<<53 - 1

// Aggregate is an aggregate report that was read to its end.
type Aggregate struct {
	Report aggregate.Report
	// Messages is the sum of the counts of all records, Compliant that of the
	// compliant ones. A sum that would exceed 2^53-1 stays there.
	Messages, Compliant int64
	// Sources is how many different sources the records name.
	Sources int
	// Bytes is the length of the document.
	Bytes int64

	document *document
	limits   aggregate.Limits
}

func newAggregate(limits Limits) *Aggregate {
	return &Aggregate{document: &document{folder: limits.Containers.Folder}, limits: limits.Aggregate}
}

// read reads the report to its end: only there is it known whether it can be used,
// and what it says about all of its records. The document is kept for Records.
func (a *Aggregate) read(in io.Reader) error {
	kept := io.TeeReader(in, a.document)
	r := aggregate.NewReader(kept, a.limits)
	// A hash takes the same few bytes for every source, whatever stands there.
	sources := make(map[[16]byte]struct{})
	for record, err := range r.All() {
		if err != nil {
			return err
		}
		a.Messages = min(a.Messages+record.Count, maxCount)
		if record.Compliant() {
			a.Compliant = min(a.Compliant+record.Count, maxCount)
		}
		sum := sha256.Sum256([]byte(record.Source))
		sources[[16]byte(sum[:])] = struct{}{}
	}
	a.Report = r.Report()
	a.Sources = len(sources)
	a.Bytes = a.document.size
	return nil
}

// Records reads the records once more, from a copy of the document. It ends early
// with the error of ctx, or that of the temporary file which holds the copy of a
// long document.
func (a *Aggregate) Records(ctx context.Context) iter.Seq2[aggregate.Record, error] {
	return aggregate.NewReader(a.document.reader(ctx), a.limits).All()
}
