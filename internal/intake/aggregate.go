package intake

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/gob"
	"errors"
	"fmt"
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

// maxShares limits the From domains of a report, and of all reports of a message, which are in
// memory until it is stored. Attackers can use any number of names.
const maxShares = 100_000

// sharing sums the records of an aggregate report by From domain.
type sharing struct {
	shares []dmarcd.Share // in order of appearance
	at     map[string]int
}

func newSharing() *sharing { return &sharing{at: make(map[string]int)} }

// add counts a record. It rejects a report with too many From domains.
func (s *sharing) add(from string, counts dmarcd.Counts) error {
	at, known := s.at[from]
	if !known {
		if at = len(s.shares); at == maxShares {
			return &aggregate.RejectedError{
				Why:    aggregate.RejectedLimit,
				Detail: fmt.Sprintf("the report has more than %d From domains", maxShares),
			}
		}
		s.at[from] = at
		s.shares = append(s.shares, dmarcd.Share{From: from})
	}
	share := &s.shares[at]
	share.Records++
	share.Add(counts)
	return nil
}

// list returns the shares. A report without records has one, so that it can be attributed.
func (s *sharing) list() []dmarcd.Share {
	if len(s.shares) == 0 {
		return []dmarcd.Share{{}}
	}
	return s.shares
}
