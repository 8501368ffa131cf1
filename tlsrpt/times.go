package tlsrpt

import (
	"strings"
	"time"

	"github.com/dmarcd/dmarcd/internal/reporttext"
)

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
