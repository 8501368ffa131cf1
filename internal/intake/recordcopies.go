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

// recordCopies holds what the records of a long report are read from once more.
type recordCopies interface {
	// add takes a record, either into the memory of the report or into the copy. It
	// is collected no more once it was not.
	add(a *Aggregate, record aggregate.Record, collected bool) error
	// drop gives the space of the copy back.
	drop()
	// size returns the number of bytes that were read.
	size() int64
	// read returns the records once more.
	read(ctx context.Context) iter.Seq2[aggregate.Record, error]
}

// firstDocument reads a part and copies it as it is, up to the end of its first
// report. The records are read from the copy like the first time.
type firstDocument struct {
	r      io.Reader
	copies *Copy
	begin  int64
	n      int64 // bytes that were copied
	done   bool  // the report has ended
	limits aggregate.Limits
}

// Read reads the part.
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

// laterDocument copies the records of a report behind the first one of a file. They
// are copied themselves: reading a thousand reports of a file each from its beginning
// would take for ever.
type laterDocument struct {
	copies  *Copy
	begin   int64
	end     int64
	encoder *gob.Encoder // nil as long as the records are in memory
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
