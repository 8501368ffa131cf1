// Package foreign reads the reports that another tool has stored as JSON in the form of
// parsedmarc. It writes each report as the document that a receiver would have sent: an
// aggregate report (RFC 9990), a TLS report (RFC 8460) or a mail with a failure report
// (RFC 9991). Package intake reads these like all others.
//
// Input is read once and sequentially. Records wait in a temporary file, so memory does not
// grow with them.
package foreign

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/tempfile"
)

const (
	// maxValue is the maximum size of one value, or of a report without its records. The
	// largest are the mails in failure reports.
	maxValue = 32 << 20
	// maxRecord is the maximum size of a record, maxMembers the number of members of a report,
	// and maxItems the number of items of a report without its records: short items need much
	// more memory than text.
	maxRecord  = 1 << 20
	maxMembers = 200
	maxItems   = 1_000_000
	// maxRatio is the maximum ratio of gzip beyond ratioFrom bytes.
	maxRatio  = 200
	ratioFrom = 64 << 20
)

// Write writes the document of one report. It is valid until the next one is read.
type Write = func(io.Writer) error

// LineError is a part of a file that cannot be used. Reading continues after it. It is a
// dmarcd.ErrInvalid.
type LineError struct {
	Line   int
	Reason string
}

func (e *LineError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Reason) }

// Is reports whether target is dmarcd.ErrInvalid.
func (e *LineError) Is(target error) bool { return target == dmarcd.ErrInvalid }

// Split yields the reports of a file, which may be compressed with gzip. A *LineError concerns
// a part of the file; any other error is the last. Temporary files are in folder; "" is the
// system default.
func Split(in io.Reader, folder string) iter.Seq2[Write, error] {
	return func(yield func(Write, error) bool) {
		err := split(in, folder, yield)
		if err != nil && !errors.Is(err, errStopped) {
			yield(nil, err)
		}
	}
}

// errStopped means that the caller stopped the iteration.
var errStopped = errors.New("stopped")

func split(in io.Reader, folder string, yield func(Write, error) bool) error {
	buffered := bufio.NewReaderSize(in, 64<<10)
	if magic, err := buffered.Peek(2); err == nil && magic[0] == 0x1f && magic[1] == 0x8b {
		packed := &counting{in: buffered}
		unzipped, err := gzip.NewReader(packed)
		if err != nil {
			return fmt.Errorf("read gzip: %w", err)
		}
		buffered = bufio.NewReaderSize(&expanding{in: unzipped, packed: packed}, 64<<10)
	}
	records, err := newSpill(folder)
	if err != nil {
		return err
	}
	defer records.close()
	return readJSON(buffered, output{yield: yield, spill: records})
}

// output receives the reports of a reader.
type output struct {
	yield func(Write, error) bool
	spill *spill
}

// report yields a report.
func (o output) report(write Write) error {
	if !o.yield(write, nil) {
		return errStopped
	}
	return nil
}

// invalid yields a LineError.
func (o output) invalid(line int, format string, args ...any) error {
	if !o.yield(nil, &LineError{line, fmt.Sprintf(format, args...)}) {
		return errStopped
	}
	return nil
}

// timeLayouts are the forms of times, all in UTC where they have no zone.
var timeLayouts = []string{time.DateTime, time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05-07:00", "2006-01-02 15:04:05.999999"}

// parseTime returns seconds since 1970.
func parseTime(text string) (int64, error) {
	text = strings.TrimSpace(text)
	for _, layout := range timeLayouts {
		if at, err := time.Parse(layout, text); err == nil {
			return at.Unix(), nil
		}
	}
	return 0, fmt.Errorf("%.40q is not a time such as 2026-11-15 00:00:00", text)
}

// counting counts the bytes read.
type counting struct {
	in   io.Reader
	read int64
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	c.read += int64(n)
	return n, err
}

// expanding fails if gzip expands to more than maxRatio allows, because records use disk space.
type expanding struct {
	in       io.Reader
	packed   *counting
	expanded int64
}

func (e *expanding) Read(p []byte) (int, error) {
	if e.expanded > ratioFrom && e.expanded > maxRatio*e.packed.read {
		return 0, fmt.Errorf("%w: the file expands to more than %d times its size; unpack it first", dmarcd.ErrLimit, maxRatio)
	}
	n, err := e.in.Read(p)
	e.expanded += int64(n)
	return n, err
}

// limited fails if more than most bytes are read between two calls of reset.
type limited struct {
	in   io.Reader
	most int
	left int
}

func (l *limited) reset() { l.left = l.most }

func (l *limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, fmt.Errorf("%w: a value is longer than %d bytes", dmarcd.ErrLimit, l.most)
	}
	n, err := l.in.Read(p[:min(len(p), l.left)])
	l.left -= n
	return n, err
}

// spill stores the records of a report in a temporary file until the report is complete.
type spill struct {
	file    *os.File
	out     *bufio.Writer
	encoder *json.Encoder
}

func newSpill(folder string) (*spill, error) {
	file, err := tempfile.Create(folder)
	if err != nil {
		return nil, temporary(err)
	}
	out := bufio.NewWriterSize(file, 64<<10)
	return &spill{file: file, out: out, encoder: json.NewEncoder(out)}, nil
}

func (s *spill) close() { tempfile.Discard(s.file) }

// reset removes all records.
func (s *spill) reset() error {
	s.out.Reset(s.file)
	if _, err := s.file.Seek(0, io.SeekStart); err != nil {
		return temporary(err)
	}
	return temporary(s.file.Truncate(0))
}

// add appends a record.
func (s *spill) add(r aggregate.Record) error { return temporary(s.encoder.Encode(r)) }

// aggregate returns the document of an aggregate report with the records so far.
func (s *spill) aggregate(report aggregate.Report) Write {
	return func(w io.Writer) error {
		if err := s.out.Flush(); err != nil {
			return temporary(err)
		}
		if _, err := s.file.Seek(0, io.SeekStart); err != nil {
			return temporary(err)
		}
		var broken error
		buffered := bufio.NewWriter(w)
		err := aggregate.Render(buffered, report, s.records(&broken))
		return errors.Join(broken, err, buffered.Flush())
	}
}

func (s *spill) records(broken *error) iter.Seq[aggregate.Record] {
	return func(yield func(aggregate.Record) bool) {
		decoder := json.NewDecoder(bufio.NewReader(s.file))
		for {
			var r aggregate.Record
			err := decoder.Decode(&r)
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				*broken = temporary(err)
				return
			}
			if !yield(r) {
				return
			}
		}
	}
}

// temporary marks an error of the temporary file.
func temporary(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", dmarcd.ErrTemporary, err)
}
