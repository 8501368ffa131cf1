package unpack

import (
	"bufio"
	"bytes"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// emlxLine matches the first line of an emlx file: the length of the mail.
var emlxLine = regexp.MustCompile(`^\d{1,15}[ \t]*\r?\n`)

// isEmlx reports whether text begins like an emlx file.
func isEmlx(text []byte) bool {
	line := emlxLine.Find(text)
	return line != nil && isMail(text[len(line):])
}

// emlx walks through a mail in the format of Apple Mail: a line with its length, the
// mail, and a property list, which is ignored.
func (w *walker) emlx(r *bufio.Reader, at location) error {
	line, err := r.ReadSlice('\n')
	for err == nil && len(bytes.TrimSpace(line)) == 0 {
		line, err = r.ReadSlice('\n')
	}
	length, err := strconv.ParseInt(strings.TrimSpace(string(line)), 10, 64)
	if err != nil {
		return w.reject(at, damaged(err))
	}
	return w.mail(io.LimitReader(r, length), at)
}
