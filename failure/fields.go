package failure

import (
	"bytes"
	"regexp"
	"strings"

	"github.com/dmarcd/dmarcd/internal/reporttext"
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

// original parses the header of the failed mail.
func (p *parser) original() {
	header := headerOf(p.message.Original)
	p.quirks.NoteIf(header == "", OriginalMissing)
	f, _ := parseFields(header)
	r := &p.report
	r.Header = header
	r.From = f.first("from")
	if id := f.first("message-id"); id != "" {
		r.MessageID = id
	}
	if when, ok := date(f.first("date")); ok {
		r.Date = when
	}
}

// headerOf returns the header of the failed mail, as valid UTF-8 with LF line endings. It omits
// lines that are not fields, because they may be text of the body.
func headerOf(original []byte) string {
	header, _, _ := strings.Cut(strings.TrimLeft(lineEnds(original), "\n"), "\n\n")
	var b strings.Builder
	inField := false
	for line := range strings.Lines(header) {
		if line[0] != ' ' && line[0] != '\t' {
			inField = fieldLine.MatchString(line)
		}
		if inField {
			b.WriteString(line)
		}
	}
	return strings.TrimRight(b.String(), "\n")
}

// lineEnds returns content as valid UTF-8 with LF line endings.
func lineEnds(content []byte) string {
	text := strings.ReplaceAll(strings.ToValidUTF8(string(content), "�"), "\r\n", "\n")
	return strings.ReplaceAll(text, "\r", "\n")
}

// fillIn fills in missing values from the mails.
func (p *parser) fillIn() {
	r := &p.report
	if r.ReportedDomain == "" {
		p.quirks.Note(ReportedDomainMissing)
		if found := anyAddress.FindAllString(r.From, -1); len(found) > 0 {
			r.ReportedDomain = domain(found[len(found)-1])
		}
	}
	if r.ArrivalDate.IsZero() {
		p.quirks.NoteIf(!p.quirks.Has(DateUnreadable), ArrivalDateMissing)
		if when, ok := date(p.message.Date); ok {
			r.ArrivalDate = when
		}
	}
	p.quirks.NoteIf(!r.ArrivalDate.IsZero() && !reporttext.Plausible(r.ArrivalDate.Unix(), p.options.Latest), DateImplausible)
}
