package files

import (
	"context"
	"errors"
	"fmt"
	"io"

	"golang.org/x/sync/errgroup"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/intake"
	"github.com/dmarcd/dmarcd/internal/recovered"
)

// Several deliveries are kept at once, because each commit waits for the disk. A batch
// ends with the first of these that it reaches.
const (
	batchDeliveries = 64
	batchRecords    = 8192
	batchBytes      = 16 << 20 // of the originals
)

// Importer has the reports in files kept.
type Importer struct {
	Acceptor *intake.Acceptor
	// Team is the team whose Keeper stores the reports.
	Team   dmarcd.TeamID
	Keeper intake.Keeper
	// Journal remembers what was read; nil is for an import that cannot go on.
	Journal *Journal
	// Tell is called for each file, and for each mail of a mailbox, once it is kept
	// or could not be.
	Tell func(Result)
}

// Result is what became of a file, or of one mail of a mailbox. The end of a mailbox
// has a result too, without receipts.
type Result struct {
	// Name is the path of the file, with the number of the mail.
	Name string
	// Bytes is how much of the sum of the listing it stands for.
	Bytes int64
	// Receipts says what became of the reports.
	Receipts []dmarcd.Receipt
	// Err says why it could not be read, or not at all: a dmarcd.ErrLimit, or the
	// error of the file. Nothing of it is kept then.
	Err error
	// Before tells that an earlier import has read it.
	Before bool
}

// Run imports the files. Reading one batch of them and keeping the one before go on at
// the same time. It stops at the first error that concerns more than one file: that of
// ctx, of the keeper, of a temporary file, or of the journal. What was told by then
// is kept.
func (i *Importer) Run(ctx context.Context, files []File) error {
	group, ctx := errgroup.WithContext(ctx)
	// A panic ends the import with an error, and not the daemon that reads a drop folder.
	run := func(f func() error) {
		group.Go(func() error { return recovered.Boundary(nil).Call("import", f) })
	}
	// Reading and keeping take about the same time, but not batch by batch.
	batches := make(chan *batch, 2)
	run(func() error {
		defer close(batches)
		r := &batchReader{importer: i, batches: batches, batch: &batch{}}
		defer func() { r.batch.close() }()
		for _, f := range files {
			if err := r.file(ctx, f); err != nil {
				return err
			}
		}
		return r.send(ctx)
	})
	run(func() error {
		for b := range batches {
			err := i.keep(ctx, b)
			b.close()
			if err != nil {
				return err
			}
		}
		return nil
	})
	err := group.Wait()
	for b := range batches {
		b.close() // what was read before an error
	}
	return err
}

// batch is what is kept in one step.
type batch struct {
	results []Result
	opened  []*intake.Opened // nil for a result without a delivery
	notes   []note
	kept    int // deliveries
	records int
	bytes   int64
	heavy   bool // the last delivery is
}

// note is what the journal is told once the batch is kept.
type note struct {
	file  File
	whole bool
	mails int
}

func (b *batch) close() {
	for _, o := range b.opened {
		if o != nil {
			o.Close()
		}
	}
}

// note adds what the journal is told. Of a mailbox the last one says all.
func (b *batch) note(n note) {
	if last := len(b.notes) - 1; last >= 0 && b.notes[last].file.same(n.file) {
		b.notes[last] = n
		return
	}
	b.notes = append(b.notes, n)
}

func (b *batch) full() bool {
	return b.heavy || b.kept >= batchDeliveries || b.records >= batchRecords || b.bytes >= batchBytes
}

// add adds a result, with its delivery if there is one.
func (b *batch) add(r Result, o *intake.Opened) {
	b.results = append(b.results, r)
	b.opened = append(b.opened, o)
	if o == nil {
		return
	}
	b.kept++
	b.heavy = o.Heavy()
	b.bytes += o.Delivery.Original.Size
	for i := range o.Delivery.Reports {
		b.records += o.Delivery.Reports[i].Records
	}
}

// batchReader makes batches of files.
type batchReader struct {
	importer *Importer
	batches  chan<- *batch
	batch    *batch
}

// send hands the batch over and begins the next one.
func (r *batchReader) send(ctx context.Context) error {
	select {
	case r.batches <- r.batch:
		r.batch = &batch{}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// file reads what is in a file.
func (r *batchReader) file(ctx context.Context, f File) error {
	whole, mails := r.importer.Journal.known(f)
	if whole {
		r.batch.add(Result{Name: f.Path, Bytes: f.Size, Before: true}, nil)
		return nil
	}
	var told int64
	again := false // something of it is to be tried again
	for in := range inputs(f, r.importer.Acceptor.Limits.Containers, mails) {
		read := min(in.read, f.Size)
		if in.last {
			read = f.Size
		}
		if err := r.input(ctx, &in, read-told); err != nil {
			return err
		}
		told = read
		// What is too long now is too long the next time.
		if again = again || in.err != nil && !errors.Is(in.err, dmarcd.ErrLimit); !again {
			r.batch.note(note{f, in.last, in.number})
		}
		if r.batch.full() {
			if err := r.send(ctx); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

// input reads one input. It sets its error where the file cannot be read.
func (r *batchReader) input(ctx context.Context, in *input, bytes int64) error {
	if errors.Is(in.err, dmarcd.ErrTemporary) {
		return fmt.Errorf("%s: %w", in.name, in.err)
	}
	var opened *intake.Opened
	if in.content != nil && in.err == nil {
		content := &watched{r: in.content}
		var err error
		opened, err = r.importer.Acceptor.Read(ctx, intake.Message{
			Team: r.importer.Team, Intake: dmarcd.IntakeImport, Name: in.name, Content: content, Size: in.size,
		})
		switch {
		case err == nil:
		case content.err != nil:
			in.err = content.err
		default:
			return fmt.Errorf("%s: %w", in.name, err)
		}
	}
	r.batch.add(Result{Name: in.name, Bytes: bytes, Err: in.err}, opened)
	return nil
}

// watched remembers the error of a file: that concerns no other.
type watched struct {
	r   io.ReaderAt
	err error
}

func (w *watched) ReadAt(p []byte, offset int64) (int, error) {
	n, err := w.r.ReadAt(p, offset)
	if err != nil && !errors.Is(err, io.EOF) {
		w.err = err
	}
	return n, err
}

// keep has the deliveries of a batch kept, and tells.
func (i *Importer) keep(ctx context.Context, b *batch) error {
	var deliveries []*dmarcd.Delivery
	for _, o := range b.opened {
		if o != nil {
			deliveries = append(deliveries, o.Delivery)
		}
	}
	if len(deliveries) > 0 {
		receipts, err := i.Acceptor.Store(ctx, i.Keeper, deliveries...)
		if err != nil {
			return err
		}
		next := 0
		for at, o := range b.opened {
			if o != nil {
				b.results[at].Receipts = receipts[next]
				next++
			}
		}
	}
	for _, n := range b.notes {
		if err := i.Journal.note(n.file, n.whole, n.mails); err != nil {
			return err
		}
	}
	for _, r := range b.results {
		i.Tell(r)
	}
	return nil
}
