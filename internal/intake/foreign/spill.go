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

// spill holds the records of a report in a temporary file until the report is complete.
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

// reset forgets all records.
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
