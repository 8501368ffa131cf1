package intake

import (
	"bufio"
	"context"
	"encoding/gob"
	"errors"
	"io"
	"iter"

	"github.com/dmarcd/dmarcd/aggregate"
)

// recordCopies stores the records of a long report for a second read.
type recordCopies interface {
	// add stores a record in the memory of the report or in the copy. Once collected is false
	// it stays false.
	add(a *Aggregate, record aggregate.Record, collected bool) error
	// drop discards the copy.
	drop()
	// size returns the number of bytes read.
	size() int64
	// read yields the records again.
	read(ctx context.Context) iter.Seq2[aggregate.Record, error]
}

// firstDocument copies a part up to the end of its first report. Records are read from the
// copy as from the part.
type firstDocument struct {
	r      io.Reader
	copies *Copy
	begin  int64
	n      int64 // bytes copied
	done   bool  // after the end of the report
	limits aggregate.Limits
}

// Read implements io.Reader.
func (d *firstDocument) Read(p []byte) (int, error) {
	n, err := d.r.Read(p)
	if d.done || n == 0 {
		return n, err
	}
	d.n += int64(n)
	if _, failed := d.copies.Write(p[:n]); failed != nil {
		return n, failed
	}
	return n, err
}

func (d *firstDocument) add(a *Aggregate, record aggregate.Record, collected bool) error {
	if collected {
		a.records = append(a.records, record)
	} else {
		a.records = nil
	}
	return nil
}

func (d *firstDocument) drop() { d.copies.cut(d.begin) }

func (d *firstDocument) size() int64 { return d.n }

func (d *firstDocument) read(ctx context.Context) iter.Seq2[aggregate.Record, error] {
	whole := io.NewSectionReader(d.copies, d.begin, d.n)
	return aggregate.NewReader(stoppable{whole, ctx.Err}, d.limits).All()
}

// laterDocument copies the decoded records of a later report in a file. Reading each of a
// thousand reports from the start of the file would take quadratic time.
type laterDocument struct {
	copies  *Copy
	begin   int64
	end     int64
	encoder *gob.Encoder // nil while the records are in memory
}

func (d *laterDocument) add(a *Aggregate, record aggregate.Record, collected bool) error {
	if collected {
		a.records = append(a.records, record)
		return nil
	}
	if d.encoder == nil {
		d.encoder = gob.NewEncoder(d.copies)
		for i := range a.records {
			if err := d.encoder.Encode(&a.records[i]); err != nil {
				return err
			}
		}
		a.records = nil
	}
	err := d.encoder.Encode(&record)
	d.end = d.copies.Size()
	return err
}

func (d *laterDocument) drop() { d.copies.cut(d.begin) }

func (d *laterDocument) size() int64 { return 0 } // the reader knows

func (d *laterDocument) read(ctx context.Context) iter.Seq2[aggregate.Record, error] {
	return func(yield func(aggregate.Record, error) bool) {
		section := io.NewSectionReader(d.copies, d.begin, d.end-d.begin)
		decoder := gob.NewDecoder(bufio.NewReader(stoppable{section, ctx.Err}))
		for {
			var record aggregate.Record
			err := decoder.Decode(&record)
			if errors.Is(err, io.EOF) || !yield(record, err) || err != nil {
				return
			}
		}
	}
}
