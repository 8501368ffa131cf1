package failure

import (
	"bytes"
	"regexp"
	"strings"
)

const (
	maxFields = 1000     // of one block
	maxValue  = 16 << 10 // bytes of one field
)

var (
	// fieldLine finds a line of the form of a header field (RFC 5322 §2.2).
	fieldLine = regexp.MustCompile(`^[!-9;-~]+[ \t]*:`)
	// feedbackType finds the field that every feedback report has.
	feedbackType = regexp.MustCompile(`(?im)^(Feedback-Type|Auth-Failure)[ \t]*:`)
)

// IsFeedback reports whether a content that begins with head is the body of a
// message/feedback-report part, whatever it is labelled as.
func IsFeedback(head []byte) bool {
	text := strings.TrimLeft(strings.ReplaceAll(string(head), "\r\n", "\n"), " \t\n")
	if !fieldLine.MatchString(text) {
		return false
	}
	block, _, _ := strings.Cut(text, "\n\n")
	return feedbackType.MatchString(block)
}

// fields holds header fields by their names in lower case, in order.
type fields map[string][]string

// parseFields reads a block of header fields. It returns how many lines were
// none. Empty lines are passed over: some reporters put them between fields.
func parseFields(block string) (f fields, malformed int) {
	f = make(fields)
	count := 0
	var last []string // the values of the field that a folded line goes on with
	var folded []byte // its last value, while it grows
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

// extend adds a folded line to a value, of which folded holds what there is once
// it has more than its first line. The slice grows, so that many short lines take
// no longer than a long one.
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

// first returns the first value of a field, "" if there is none.
func (f fields) first(name string) string {
	if values := f[name]; len(values) > 0 {
		return values[0]
	}
	return ""
}

// filled returns the values of a field that are not empty.
func (f fields) filled(name string) []string {
	var values []string
	for _, v := range f[name] {
		if v != "" {
			values = append(values, v)
		}
	}
	return values
}

// bounded cuts a value that is too long, and makes it valid UTF-8.
func bounded(value string) string {
	return strings.ToValidUTF8(value[:min(len(value), maxValue)], "�")
}
