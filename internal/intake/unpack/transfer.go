package unpack

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"regexp"
	"strings"
)

// transferDecoder decodes a Content-Transfer-Encoding (RFC 2045 §6). It tolerates invalid
// bytes, which reporters do send; the decoders of the standard library do not.
func transferDecoder(encoding string, r *bufio.Reader) io.Reader {
	encoding, _, _ = strings.Cut(strings.ToLower(encoding), ";")
	switch strings.TrimSpace(encoding) {
	case "base64":
		// Some reporters declare base64 but do not encode.
		head, _ := r.Peek(sniffBytes) // the next Read returns an error
		if beginsReport(head) {
			return r
		}
		return &base64Reader{r: r}
	case "quoted-printable":
		return &quotedReader{r: r}
	default:
		return r
	}
}

// base64Reader decodes base64 in the alphabets of RFC 4648 §4 and §5. It ignores all
// other bytes (RFC 2045 §6.8). Padding may be missing, or be in the middle of
// concatenated pieces.
type base64Reader struct {
	r     io.ByteReader
	bits  uint32
	count int // number of pending bits
}

func (d *base64Reader) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		c, err := d.r.ReadByte()
		if err != nil {
			if n > 0 {
				return n, nil // the next byte returns the error
			}
			return 0, err
		}
		if c == '=' {
			d.count = 0
			continue
		}
		value, ok := sextet(rune(c))
		if !ok {
			continue
		}
		d.bits = d.bits<<6 | value
		d.count += 6
		if d.count >= 8 {
			d.count -= 8
			p[n] = byte(d.bits >> d.count) //nolint:gosec // upper bits are already written
			n++
		}
	}
	return n, nil
}

// sextet returns the value of a base64 character.
func sextet(c rune) (uint32, bool) {
	switch {
	case c >= 'A' && c <= 'Z':
		return uint32(c - 'A'), true
	case c >= 'a' && c <= 'z':
		return uint32(c-'a') + 26, true
	case c >= '0' && c <= '9':
		return uint32(c-'0') + 52, true
	case c == '+' || c == '-':
		return 62, true
	case c == '/' || c == '_':
		return 63, true
	}
	return 0, false
}

// quotedReader decodes quoted-printable (RFC 2045 §6.7). An equals sign that starts no
// valid sequence is kept, as §6.7 recommends.
type quotedReader struct {
	r       *bufio.Reader
	line    []byte // the current line, or a piece of a long one
	held    int    // number of undecoded bytes at the end of line
	decoded []byte
	rest    []byte // unread part of decoded
}

func (d *quotedReader) Read(p []byte) (int, error) {
	for len(d.rest) == 0 {
		piece, err := d.r.ReadSlice('\n')
		if len(piece) == 0 && d.held == 0 {
			return 0, err
		}
		d.line = append(append(d.line[:0], d.line[len(d.line)-d.held:]...), piece...)
		d.held = 0
		if errors.Is(err, bufio.ErrBufferFull) {
			d.held = undecided(d.line)
		}
		d.decoded = unquote(d.decoded[:0], d.line[:len(d.line)-d.held])
		d.rest = d.decoded
	}
	n := copy(p, d.rest)
	d.rest = d.rest[n:]
	return n, nil
}

// undecided returns the number of bytes at the end of a piece that depend on what
// follows: an incomplete escape, and white space, which is dropped at the end of a line.
// A buffer full of white space is always kept.
func undecided(piece []byte) int {
	text := bytes.TrimRight(piece, " \t\r")
	n := len(piece) - len(text)
	switch {
	case n > sniffBytes:
		return 0
	case bytes.HasSuffix(text, []byte("=")):
		return n + 1
	case n == 0 && len(text) > 1 && text[len(text)-2] == '=':
		return 2
	}
	return n
}

// unquote appends the decoded line to decoded.
func unquote(decoded, line []byte) []byte {
	text := bytes.TrimRight(line, "\r\n")
	end := line[len(text):]
	if len(end) > 0 {
		text = bytes.TrimRight(text, " \t") // added in transit (§6.7, rule 3)
	}
	if len(end) > 0 && bytes.HasSuffix(text, []byte("=")) {
		text, end = text[:len(text)-1], nil // a soft line break
	}
	for i := 0; i < len(text); i++ {
		if text[i] == '=' && i+2 < len(text) {
			high, okHigh := hexDigit(text[i+1])
			low, okLow := hexDigit(text[i+2])
			if okHigh && okLow {
				decoded = append(decoded, high<<4|low)
				i += 2
				continue
			}
		}
		decoded = append(decoded, text[i])
	}
	return append(decoded, end...)
}

// hexDigit returns the value of a hexadecimal digit in either case.
func hexDigit(c byte) (byte, bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10, true
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10, true
	}
	return 0, false
}

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
