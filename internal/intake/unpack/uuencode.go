package unpack

import (
	"bufio"
	"bytes"
	"io"
	"regexp"
)

// uuBegin matches the begin line of a uuencoded file and its first line: a length, and
// characters from the space to the grave accent.
var uuBegin = regexp.MustCompile("(?m)^begin [0-7]{3,4} ([^\\r\\n]+)\\r?\\n[!-M`][ -`]*\\r?$")

// uu walks through a text with uuencoded files. Other text may surround them.
func (w *walker) uu(r *bufio.Reader, at location) error {
	before := w.parts
	for {
		line, err := r.ReadSlice('\n')
		if len(line) == 0 {
			if stop := w.budget.reject(err); stop != nil {
				return w.cutOff(stop, at)
			}
			break // the reader of the last file has already seen the damage
		}
		name, ok := uuName(line)
		if !ok {
			continue
		}
		if err := w.budget.member(); err != nil {
			return err
		}
		file := &uuReader{r: r}
		if err := w.content(file, at.in(name)); err != nil {
			return err
		}
		// The next file starts after this one.
		if _, err := io.Copy(io.Discard, file); err != nil {
			return w.budget.alive() // the reader has already seen the damage or limit
		}
	}
	if w.parts == before {
		return w.reject(at, ErrNoReport)
	}
	return nil
}

// uuName returns the name of the file after a begin line.
func uuName(line []byte) (string, bool) {
	mode, ok := bytes.CutPrefix(bytes.TrimRight(line, "\r\n"), []byte("begin "))
	if !ok {
		return "", false
	}
	mode, name, ok := bytes.Cut(mode, []byte(" "))
	return string(name), ok && len(bytes.Trim(mode, "01234567")) == 0
}

// uuReader decodes one uuencoded file.
type uuReader struct {
	r       *bufio.Reader
	decoded [64]byte
	rest    []byte // unread part of decoded
	err     error  // returned after rest
}

func (d *uuReader) Read(p []byte) (int, error) {
	for len(d.rest) == 0 {
		if d.err != nil {
			return 0, d.err
		}
		line, err := d.r.ReadSlice('\n')
		if len(line) == 0 {
			d.err = noEOF(err) // the line "end" is missing
			continue
		}
		d.line(line)
	}
	n := copy(p, d.rest)
	d.rest = d.rest[n:]
	return n, nil
}

// line decodes a line: its length in bytes, then four characters for each three bytes.
// Trailing spaces may be missing, except at the end of a truncated file.
func (d *uuReader) line(whole []byte) {
	line := bytes.TrimRight(whole, "\r\n")
	switch {
	case string(line) == "end":
		d.err = io.EOF
		return
	case len(line) == 0:
		return
	}
	length := int(uuBits(line[0]))
	line = line[1:]
	if len(line)+1 == len(whole) {
		length = min(length, len(line)/4*3)
	}
	var group [4]byte
	for i := 0; i < length; i += 3 {
		for j := range group {
			group[j] = 0
			if at := i/3*4 + j; at < len(line) {
				group[j] = uuBits(line[at])
			}
		}
		d.decoded[i] = group[0]<<2 | group[1]>>4
		d.decoded[i+1] = group[1]<<4 | group[2]>>2
		d.decoded[i+2] = group[2]<<6 | group[3]
	}
	d.rest = d.decoded[:length]
}

// uuBits returns the six bits of a character.
func uuBits(c byte) byte { return (c - ' ') & 0x3f }
