package failure

import (
	"bytes"
	"regexp"
	"strings"
)

const (
	maxFields = 1000     // per block
	maxValue  = 16 << 10 // bytes
)

var (
	// fieldLine matches a header field (RFC 5322 §2.2).
	fieldLine = regexp.MustCompile(`^[!-9;-~]+[ \t]*:`)
	// feedbackType matches a field that every feedback report has.
	feedbackType = regexp.MustCompile(`(?im)^(Feedback-Type|Auth-Failure)[ \t]*:`)
)

// IsFeedback reports whether content that starts with head is the body of a
// message/feedback-report part, regardless of its media type.
func IsFeedback(head []byte) bool {
	if !fieldLine.Match(bytes.TrimLeft(head, " \t\r\n")) {
		return false // avoids a copy
	}
	text := strings.TrimLeft(strings.ReplaceAll(string(head), "\r\n", "\n"), " \t\n")
	if !fieldLine.MatchString(text) {
		return false
	}
	block, _, _ := strings.Cut(text, "\n\n")
	return feedbackType.MatchString(block)
}

// fields contains header fields in order, by name in lower case.
type fields map[string][]string

// parseFields parses a block of header fields, and returns the number of malformed lines.
// It ignores empty lines, which some reporters put between fields.
func parseFields(block string) (f fields, malformed int) {
	f = make(fields)
	count := 0
	var last []string // the values of the field that folded lines continue
	var folded []byte // its last value, if it has folded lines
	flush := func() {
		if len(last) > 0 && len(folded) > 0 {
			last[len(last)-1] = bounded(string(bytes.TrimSpace(folded)))
		}
		last, folded = nil, folded[:0]
	}
	defer flush()
	for line := range strings.Lines(block) {
		line = strings.TrimRight(line, "\r\n")
		switch {
		case strings.TrimSpace(line) == "":
			flush()
		case line[0] == ' ' || line[0] == '\t':
			if len(last) > 0 {
				folded = extend(folded, last[len(last)-1], line)
			}
		case !fieldLine.MatchString(line):
			malformed++
			flush()
		case count == maxFields:
			return f, malformed
		default:
			flush()
			name, value, _ := strings.Cut(line, ":")
			name = strings.ToLower(strings.TrimRight(name, " \t"))
			f[name] = append(f[name], bounded(strings.TrimSpace(value)))
			last = f[name]
			count++
		}
	}
	return f, malformed
}

// extend appends a folded line to a value. folded contains the value so far if it has
// more than one line, else first does. The slice grows geometrically, so that many short
// lines take linear time.
func extend(folded []byte, first, line string) []byte {
	if len(folded) == 0 {
		folded = append(folded, first...)
	}
	if len(folded) >= maxValue {
		return folded
	}
	if len(folded) > 0 {
		folded = append(folded, ' ')
	}
	return append(folded, strings.TrimSpace(line)...)
}

// first returns the first value of a field, or "".
func (f fields) first(name string) string {
	if values := f[name]; len(values) > 0 {
		return values[0]
	}
	return ""
}

// filled returns the non-empty values of a field.
func (f fields) filled(name string) []string {
	var values []string
	for _, v := range f[name] {
		if v != "" {
			values = append(values, v)
		}
	}
	return values
}

// bounded truncates a long value, and makes it valid UTF-8.
func bounded(value string) string {
	return strings.ToValidUTF8(value[:min(len(value), maxValue)], "�")
}
