package tlsrpt

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/dmarcd/dmarcd/internal/reporttext"
)

// text reads a trimmed text.
func (d *document) text(tok token) (string, error) {
	if !d.isScalar(tok) {
		return "", d.unusable(tok)
	}
	d.quirks.NoteIf(tok == tokenWord, ValueType)
	text := d.tidy(string(d.lex.text))
	return text, d.addText(text)
}

// tidy trims a text and removes control characters, which databases and pages cannot
// handle.
func (d *document) tidy(text string) string {
	clean := strings.Map(func(c rune) rune {
		if c < ' ' && c != '\t' && c != '\n' && c != '\r' {
			return -1
		}
		return c
	}, text)
	d.quirks.NoteIf(len(clean) < len(text), ControlCharacters)
	trimmed := strings.TrimSpace(clean)
	d.quirks.NoteIf(len(trimmed) < len(clean) && trimmed != "", ValuePadded)
	return trimmed
}

// addText counts a text towards the limit of all texts.
func (d *document) addText(text string) error {
	if d.bytes += len(text); d.bytes > d.limits.TotalBytes {
		return reject(RejectedLimit, "the texts of the report are too long together")
	}
	return nil
}

func (d *document) textList(tok token, single Quirk, normal func(string) string) ([]string, error) {
	var list []string
	err := d.list(tok, single, func(tok token) error {
		text, err := d.text(tok)
		list = d.texts(list, text, normal)
		return err
	})
	return list, err
}

// texts appends a normalized text to a list. Some reporters write a whole list as JSON in
// one string; then it appends the elements.
func (d *document) texts(list []string, text string, normal func(string) string) []string {
	text = normal(text)
	if strings.HasPrefix(text, "[") {
		var inner []string
		if json.Unmarshal([]byte(text), &inner) == nil {
			d.quirks.Note(ListInText)
			for _, value := range inner {
				list = d.texts(list, d.tidy(value), normal)
			}
			return list
		}
	}
	switch {
	case text == "":
		return list
	case len(list) >= d.limits.Values:
		d.quirks.Note(ValuesDropped)
		return list
	}
	return append(list, text)
}

// domain reads a domain or host and normalizes it like dns.Name.
func (d *document) domain(tok token) (string, error) {
	text, err := d.text(tok)
	return d.domainName(text), err
}

func (d *document) domainName(text string) string {
	plain := strings.TrimRightFunc(text, func(c rune) bool { return c == '.' || unicode.IsSpace(c) })
	d.quirks.NoteIf(plain != text, DomainForm)
	name := reporttext.LowerASCII(plain)
	d.quirks.NoteIf(name != plain, DomainCase)
	labels := reporttext.ALabels(name)
	d.quirks.NoteIf(labels != name, DomainULabels)
	return labels
}

// mxHost normalizes an MX pattern like dns.Name. Some reporters write the whole line of
// the policy.
func (d *document) mxHost(text string) string {
	const prefix = "mx:"
	name := d.domainName(text)
	for strings.HasPrefix(name, prefix) {
		d.quirks.Note(MXHostPrefix)
		name = strings.TrimSpace(name[len(prefix):])
	}
	return name
}

// address reads an address in any common format and returns its canonical form.
func (d *document) address(tok token) (string, error) {
	text, err := d.text(tok)
	if err != nil || text == "" {
		return "", err
	}
	addr, ok := reporttext.Address(text)
	if !ok {
		d.quirks.Note(AddressUnreadable)
		return text, nil
	}
	canonical := addr.String()
	d.quirks.NoteIf(canonical != text, AddressForm)
	return canonical, nil
}

// word reads a keyword. An unknown one is returned unchanged.
func word[T ~string](d *document, tok token, vocabulary []T) (T, error) {
	text, err := d.text(tok)
	if err != nil || text == "" {
		return "", err
	}
	for _, known := range vocabulary {
		if strings.EqualFold(text, string(known)) {
			d.quirks.NoteIf(text != string(known), ValueCase)
			return known, nil
		}
	}
	d.quirks.Note(ValueUnknown)
	return T(text), nil
}

// maxCount is the largest integer that is exact in JSON (RFC 8259 §6).
const maxCount = 1<<53 - 1

// maxSum is the value at which sums saturate. The total of two such sums is exact in
// JSON.
const maxSum = 1<<52 - 1

func addCount(sum, count int64) int64 { return min(sum+count, maxSum) }

func (d *document) count(tok token) (int64, error) {
	if !d.isScalar(tok) {
		return 0, d.unusable(tok)
	}
	d.quirks.NoteIf(tok == tokenText, ValueType)
	text := strings.TrimSpace(string(d.lex.text))
	n, ok := wholeNumber(text)
	if !ok || n < 0 || n > maxCount {
		d.quirks.Note(CountInvalid)
		return 0, nil
	}
	d.quirks.NoteIf(strconv.FormatInt(n, 10) != text, CountForm)
	return n, nil
}

// wholeNumber parses an integer, also if it is written like 5.0 or 1e3.
func wholeNumber(text string) (int64, bool) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, true
	}
	if strings.Trim(text, "0123456789+-.eE") != "" {
		return 0, false // such as 0x10 or inf
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > maxCount {
		return 0, false
	}
	return int64(f), true
}

const (
	// earliestSeconds is in 1973. It prevents dates such as 20260401 from being read as
	// seconds.
	earliestSeconds = 100_000_000
	// latestSeconds is in the year 5138. Greater numbers are milliseconds.
	latestSeconds = 100_000_000_000
	millisecond   = 1000
	// longRange is longer than a day, even if daylight saving time ends during it.
	longRange = 25 * 60 * 60
)

// time reads one end of the period as seconds since 1970, 0 if it is invalid. RFC 8460
// §4.4 requires the format of RFC 3339.
func (d *document) time(tok token) (int64, error) {
	if !d.isScalar(tok) {
		return 0, d.unusable(tok)
	}
	seconds := d.seconds(strings.TrimSpace(string(d.lex.text)))
	if seconds <= 0 || seconds > latestSeconds {
		d.quirks.Note(TimeUnreadable)
		return 0, nil
	}
	return seconds, nil
}

func (d *document) seconds(text string) int64 {
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t.Unix()
	}
	if t, zoned, ok := reporttext.Time(text); ok {
		_, err := time.Parse(time.RFC3339, strings.ToUpper(text)) // §5.6 allows t and z
		d.quirks.NoteIf(!zoned, TimeZoneMissing)
		d.quirks.NoteIf(zoned && err != nil, TimeForm)
		return t.Unix()
	}
	n, ok := wholeNumber(text)
	if !ok || n < earliestSeconds {
		return 0
	}
	d.quirks.Note(TimeNumber)
	if n > latestSeconds {
		n /= millisecond
	}
	return n
}

// checkRange completes the period and notes deviations.
func (r *Report) checkRange(q *tally, latest int64) {
	q.NoteIf(r.Begin != 0 && !reporttext.Plausible(r.Begin, latest), TimeImplausible)
	q.NoteIf(r.End != 0 && !reporttext.Plausible(r.End, latest), TimeImplausible)
	switch {
	case r.Begin == 0 && r.End == 0:
		q.Note(RangeMissing)
		return
	case r.Begin == 0:
		q.Note(RangeIncomplete)
		r.Begin = r.End
		return
	case r.End == 0:
		q.Note(RangeIncomplete)
		r.End = r.Begin
		return
	}
	q.NoteIf(r.Begin == r.End, RangeEmpty)
	q.NoteIf(r.Begin > r.End, RangeReversed)
	q.NoteIf(r.End-r.Begin > longRange, RangeLong)
}
