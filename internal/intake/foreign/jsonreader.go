package foreign

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/dmarcd/dmarcd"
)

// jsonReader reads JSON value by value: an array of reports, an object with such arrays, a
// report, or several of these in sequence, even joined by commas.
type jsonReader struct {
	decoder *json.Decoder
	limit   *limited
	lines   *lines
	out     output
	depth   int // of arrays and objects with reports
}

// maxDepth limits depth. parsedmarc nests at most an array in an object.
const maxDepth = 8

// spaceOrMark are the bytes that may precede the first value: space and a byte order mark.
const spaceOrMark = " \t\r\n\xef\xbb\xbf"

func readJSON(in *bufio.Reader, out output) error {
	for {
		b, err := in.Peek(1)
		switch {
		case errors.Is(err, io.EOF):
			return out.invalid(1, "the file is empty")
		case err != nil:
			return err
		}
		if strings.IndexByte(spaceOrMark, b[0]) < 0 {
			break
		}
		_, _ = in.Discard(1) // it was peeked
	}
	lines := &lines{in: &joined{in: in}}
	limit := &limited{in: lines, most: maxValue}
	limit.reset()
	r := &jsonReader{decoder: json.NewDecoder(limit), limit: limit, lines: lines, out: out}
	for {
		err := r.value()
		var syntax *json.SyntaxError
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, io.ErrUnexpectedEOF), errors.As(err, &syntax):
			return out.invalid(r.line(), "the JSON is malformed or cut off: %s", err)
		case err != nil:
			return err
		}
	}
}

func (r *jsonReader) line() int { return r.lines.at(r.decoder.InputOffset()) }

// value reads a report or an array of reports.
func (r *jsonReader) value() error {
	t, err := r.decoder.Token()
	if err != nil {
		return err
	}
	if r.depth >= maxDepth {
		return fmt.Errorf("%w: line %d: arrays and objects are nested too deeply", dmarcd.ErrLimit, r.line())
	}
	r.depth++
	defer func() { r.depth-- }()
	switch t {
	case json.Delim('['):
		return r.array()
	case json.Delim('{'):
		return r.object()
	}
	return r.out.invalid(r.line(), "%.40v is not a report", t)
}

// array reads the rest of an array of reports.
func (r *jsonReader) array() error {
	for r.decoder.More() {
		if err := r.value(); err != nil {
			return noEnd(err)
		}
	}
	_, err := r.decoder.Token()
	return noEnd(err)
}

// noEnd makes the end of the file within a value an error.
func noEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// object reads the rest of a report, or of an object with arrays of reports.
func (r *jsonReader) object() error {
	line := r.line()
	if err := r.out.spill.reset(); err != nil {
		return err
	}
	members, records := make(map[string]json.RawMessage), &jsonRecords{}
	reports, size := false, 0
	for r.decoder.More() {
		r.limit.reset()
		name, err := r.decoder.Token()
		if err != nil {
			return noEnd(err)
		}
		r.line() // forgets lines
		switch name {
		case "aggregate_reports", "failure_reports", "forensic_reports", "smtp_tls_reports":
			reports = true
			err = r.value()
		case "records":
			err = r.records(records)
		default:
			var member json.RawMessage
			err = r.decoder.Decode(&member)
			members[name.(string)] = member
			if size += len(name.(string)) + len(member); size > maxValue || len(members) > maxMembers {
				err = fmt.Errorf("%w: line %d: a report without its records has more than %d bytes or %d members", dmarcd.ErrLimit, line, maxValue, maxMembers)
			}
		}
		if err != nil {
			return noEnd(err)
		}
	}
	if _, err := r.decoder.Token(); err != nil {
		return noEnd(err)
	}
	r.limit.reset()
	if reports {
		return nil
	}
	return r.report(line, members, records)
}

// lines maps offsets to line numbers. The offsets must increase.
type lines struct {
	in   io.Reader
	read int64   // bytes
	ends []int64 // of lines
	next int     // the first of them behind the last offset
	line int
}

func (l *lines) Read(p []byte) (int, error) {
	n, err := l.in.Read(p)
	for i, b := range p[:n] {
		if b == '\n' {
			l.ends = append(l.ends, l.read+int64(i))
		}
	}
	l.read += int64(n)
	return n, err
}

// at returns the line of an offset, from 1.
func (l *lines) at(offset int64) int {
	for l.next < len(l.ends) && l.ends[l.next] < offset {
		l.next++
		l.line++
	}
	if l.next > len(l.ends)/2 { // rarely, because it takes as long as reading them
		l.ends, l.next = append(l.ends[:0], l.ends[l.next:]...), 0
	}
	return l.line + 1
}

// joined removes commas and closing brackets between values. Versions before 10.0 wrote
// "[...]", and appended reports as ",{...},{...}]".
type joined struct {
	in               io.Reader
	depth            int
	quoted, escaping bool
}

func (j *joined) Read(p []byte) (int, error) {
	n, err := j.in.Read(p)
	for i, b := range p[:n] {
		switch {
		case j.escaping:
			j.escaping = false
		case b == '"':
			j.quoted = !j.quoted
		case j.quoted:
			j.escaping = b == '\\'
		case b == '[' || b == '{':
			j.depth++
		case j.depth == 0 && (b == ',' || b == ']'):
			p[i] = ' '
		case j.depth > 0 && (b == ']' || b == '}'):
			j.depth--
		}
	}
	return n, err
}
