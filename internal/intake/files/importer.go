package files

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/intake"
	"github.com/dmarcd/dmarcd/internal/recovered"
)

// Deliveries are stored in batches because each commit waits for the disk. A batch ends at the
// first of these limits.
const (
	batchDeliveries = 64
	batchRecords    = 8192
	batchBytes      = 16 << 20 // of the originals
	batchResults    = 1024     // also without a delivery
)

// Importer imports reports from files.
type Importer struct {
	Acceptor *intake.Acceptor
	// Team is the team that receives the reports.
	Team  dmarcd.TeamID
	Store intake.DeliveryStore
	// Journal records progress; nil for an import that cannot be resumed.
	Journal *Journal
	// Split yields the reports of a file that is not a report itself, such as the
	// output of another tool: functions that write them, and errors. Errors other than dmarcd.ErrInvalid
	// and dmarcd.ErrLimit are the last. Nil imports files as they are.
	Split func(in io.Reader) iter.Seq2[func(io.Writer) error, error]
	// OnResult is called for each file, and each mail of an mbox, once it is stored or has
	// failed.
	OnResult func(Result)
}

// Result is the outcome of a file or of one mail of an mbox. The end of an mbox has a result
// too, without receipts.
type Result struct {
	// Name is the path of the file, with the number of the mail.
	Name string
	// Bytes is its part of Listing.Bytes, for progress.
	Bytes int64
	// Receipts holds one receipt for each report.
	Receipts []dmarcd.Receipt
	// Err is dmarcd.ErrLimit, dmarcd.ErrInvalid or the error of reading the file. Nothing is
	// stored then.
	Err error
	// Before means that an earlier import has read it.
	Before bool
}

// Run imports the files. It reads one batch while it stores the previous one, and stops at the
// first error that concerns more than one file: of ctx, the store, a temporary file or the
// journal. Results reported before that are stored.
func (i *Importer) Run(ctx context.Context, files []File) error {
	group, ctx := errgroup.WithContext(ctx)
	// A panic must not end a daemon that reads a drop folder.
	run := func(f func() error) {
		group.Go(func() error { return recovered.Boundary(nil).Call("import", f) })
	}
	// The buffer evens out batches that take longer to read than to store.
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
			err := i.store(ctx, b)
			b.close()
			if err != nil {
				return err
			}
		}
		return nil
	})
	err := group.Wait()
	for b := range batches {
		b.close() // batches read before the error
	}
	return err
}

// batch is stored in one transaction.
type batch struct {
	results []Result
	opened  []*intake.Opened // nil for a result without a delivery
	notes   []note
	stored  int // deliveries
	records int
	bytes   int64
	heavy   bool // the last delivery is heavy
}

// note is an entry for the journal, written after the commit.
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

// note adds a journal entry. For an mbox only the last one counts.
func (b *batch) note(n note) {
	if last := len(b.notes) - 1; last >= 0 && b.notes[last].file.same(n.file) {
		b.notes[last] = n
		return
	}
	b.notes = append(b.notes, n)
}

func (b *batch) full() bool {
	return b.heavy || len(b.results) >= batchResults || b.stored >= batchDeliveries || b.records >= batchRecords || b.bytes >= batchBytes
}

// add adds a result, and its delivery unless o is nil.
func (b *batch) add(r Result, o *intake.Opened) {
	b.results = append(b.results, r)
	b.opened = append(b.opened, o)
	if o == nil {
		return
	}
	b.stored++
	b.heavy = o.Heavy()
	b.bytes += o.Delivery.Original.Size
	for i := range o.Delivery.Reports {
		b.records += o.Delivery.Reports[i].Records
	}
}

// batchReader reads files into batches.
type batchReader struct {
	importer *Importer
	batches  chan<- *batch
	batch    *batch
}

// send passes the batch on and starts the next one.
func (r *batchReader) send(ctx context.Context) error {
	select {
	case r.batches <- r.batch:
		r.batch = &batch{}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *batchReader) file(ctx context.Context, f File) error {
	whole, mails := r.importer.Journal.known(f)
	if whole {
		r.batch.add(Result{Name: f.Path, Bytes: f.Size, Before: true}, nil)
		return nil
	}
	var reported int64
	again := false // part of the file has to be retried
	for in := range inputs(f, r.importer.Acceptor.Limits.Containers, mails, r.importer.Split) {
		read := min(in.read, f.Size)
		if in.last {
			read = f.Size
		}
		if err := r.input(ctx, &in, read-reported); err != nil {
			return err
		}
		reported = read
		// What is too large or invalid now will be so next time.
		if again = again || in.err != nil && !errors.Is(in.err, dmarcd.ErrLimit) && !errors.Is(in.err, dmarcd.ErrInvalid); !again {
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

// input reads one input. It sets in.err if the file cannot be read.
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

// watched records the read error of a file, which concerns no other file.
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

// store stores a batch and reports the results.
func (i *Importer) store(ctx context.Context, b *batch) error {
	var deliveries []*dmarcd.Delivery
	for _, o := range b.opened {
		if o != nil {
			deliveries = append(deliveries, o.Delivery)
		}
	}
	if len(deliveries) > 0 {
		receipts, errs := i.Acceptor.StoreAll(ctx, i.Store, deliveries)
		next := 0
		for at, o := range b.opened {
			if o == nil {
				continue
			}
			err := errs[next]
			if err != nil && !errors.Is(err, dmarcd.ErrLimit) {
				return err
			}
			if err != nil { // a quota
				b.notes = nil // the next run reads all of them again
			}
			b.results[at].Receipts, b.results[at].Err = receipts[next], err
			next++
		}
	}
	for _, n := range b.notes {
		if err := i.Journal.note(n.file, n.whole, n.mails); err != nil {
			return err
		}
	}
	for _, r := range b.results {
		i.OnResult(r)
	}
	return nil
}

// Journal records which files were imported, one JSON object per line, so that an interrupted
// import can be resumed. It only saves time: reports that are read twice are duplicates
// anyway. A nil Journal records nothing. Only one import may use it at a time.
type Journal struct {
	file *os.File
	read map[string]entry // entries of earlier imports, by absolute path
}

// entry is a line of the journal; the last one for a path counts.
type entry struct {
	Path string `json:"path"`
	// Size and Modified identify the content of the file.
	Size     int64 `json:"size"`
	Modified int64 `json:"modified"` // nanoseconds since 1970
	// Whole means that the file was read completely; else Mails is the number of mails read.
	Whole bool `json:"whole"`
	Mails int  `json:"mails"`
}

// OpenJournal opens or creates a journal.
func OpenJournal(path string) (*Journal, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600) //nolint:gosec // the caller's own file
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	j := &Journal{file: file, read: make(map[string]entry)}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var e entry
		// A crash may have cut off the last line; that file is read again.
		if err := json.Unmarshal(lines.Bytes(), &e); err == nil {
			j.read[e.Path] = e
		}
	}
	if err := lines.Err(); err != nil {
		return nil, errors.Join(fmt.Errorf("read journal: %w", err), file.Close())
	}
	// End a line that was cut off.
	if _, err := file.WriteString("\n"); err != nil {
		return nil, errors.Join(fmt.Errorf("write journal: %w", err), file.Close())
	}
	return j, nil
}

// known returns what earlier imports have read of an unchanged file.
func (j *Journal) known(f File) (whole bool, mails int) {
	if j == nil {
		return false, 0
	}
	now, err := newEntry(f)
	e, ok := j.read[now.Path]
	if err != nil || !ok || e.Size != now.Size || e.Modified != now.Modified {
		return false, 0
	}
	return e.Whole, e.Mails
}

// note records that a file was read, completely or up to a mail.
func (j *Journal) note(f File, whole bool, mails int) error {
	if j == nil {
		return nil
	}
	e, err := newEntry(f)
	if err != nil {
		return err
	}
	e.Whole, e.Mails = whole, mails
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if _, err := j.file.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	return nil
}

func newEntry(f File) (entry, error) {
	path, err := filepath.Abs(f.Path)
	return entry{Path: path, Size: f.Size, Modified: f.Modified.UnixNano()}, err
}

// Remove deletes the journal after a complete import. The next import reads everything,
// because reports may have been deleted in between.
func (j *Journal) Remove() error {
	err := os.Remove(j.file.Name())
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, j.file.Close())
}

// Close closes the journal; it can be opened again.
func (j *Journal) Close() error { return j.file.Close() }
