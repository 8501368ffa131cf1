package foreign

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/tempfile"
)

// spill holds values in a temporary file until their report is complete.
type spill struct {
	file *os.File
	out  *bufio.Writer
	size int64
}

// span is a part of a spill.
type span struct{ from, to int64 }

func newSpill(folder string) (*spill, error) {
	file, err := tempfile.Create(folder)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", dmarcd.ErrTemporary, err)
	}
	return &spill{file: file, out: bufio.NewWriterSize(file, 64<<10)}, nil
}

func (s *spill) close() { tempfile.Discard(s.file) }

// reset forgets all values.
func (s *spill) reset() error {
	s.out.Reset(s.file)
	s.size = 0
	if _, err := s.file.Seek(0, io.SeekStart); err != nil {
		return temporary(err)
	}
	return temporary(s.file.Truncate(0))
}

// write appends bytes.
func (s *spill) write(b []byte) (span, error) {
	from := s.size
	n, err := s.out.Write(b)
	s.size += int64(n)
	return span{from, s.size}, temporary(err)
}

// add appends a value.
func (s *spill) add(value any) (span, error) {
	line, err := json.Marshal(value)
	if err != nil {
		return span{}, err
	}
	return s.write(line)
}

// open returns a reader of a part. Nothing may be appended before it is read.
func (s *spill) open(part span) (io.Reader, error) {
	if err := s.out.Flush(); err != nil {
		return nil, temporary(err)
	}
	return io.NewSectionReader(s.file, part.from, part.to-part.from), nil
}

// get decodes a value.
func (s *spill) get(part span, value any) error {
	in, err := s.open(part)
	if err != nil {
		return err
	}
	return json.NewDecoder(in).Decode(value)
}

// aggregate returns the document of an aggregate report with the records in some parts.
func (s *spill) aggregate(report aggregate.Report, parts []span) Write {
	return func(w io.Writer) error {
		var broken error
		buffered := bufio.NewWriter(w)
		err := aggregate.Render(buffered, report, s.records(parts, &broken))
		return errors.Join(broken, err, buffered.Flush())
	}
}

func (s *spill) records(parts []span, broken *error) iter.Seq[aggregate.Record] {
	return func(yield func(aggregate.Record) bool) {
		for _, part := range parts {
			in, err := s.open(part)
			if err != nil {
				*broken = err
				return
			}
			decoder := json.NewDecoder(bufio.NewReader(in))
			for {
				var r aggregate.Record
				err := decoder.Decode(&r)
				if errors.Is(err, io.EOF) {
					break
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
}

// temporary marks an error of the temporary file.
func temporary(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", dmarcd.ErrTemporary, err)
}

// pending is a report whose records are not complete.
type pending struct {
	head    span // an aggregate.Report
	line    int
	records []span
	// original is the report as it was received, if the tool has stored it.
	original span
}

// addRecord appends a record to a report.
func (s *spill) addRecord(p *pending, r aggregate.Record) error {
	part, err := s.add(r)
	if err != nil {
		return err
	}
	if last := len(p.records) - 1; last >= 0 && p.records[last].to == part.from {
		p.records[last].to = part.to
	} else {
		p.records = append(p.records, part)
	}
	return nil
}
