package tlsrpt

import (
	"strings"
	"time"

	"github.com/dmarcd/dmarcd/internal/reporttext"
)

const (
	// earliestSeconds (in 1973) keeps dates such as 20260401 from being taken for
	// seconds.
	earliestSeconds = 100_000_000
	// latestSeconds is where a number of seconds ends (the year 5138) and a number
	// of milliseconds (from 1973 on) begins.
	latestSeconds = 100_000_000_000
	millisecond   = 1000
	// longRange is longer than a day even where daylight saving time ends in it.
	longRange = 25 * 60 * 60
)

// time reads one end of the time range as seconds since 1970, 0 where it cannot be
// read. RFC 8460 §4.4 asks for the form of RFC 3339.
func (d *document) time(tok token) (int64, error) {
	if !d.isScalar(tok) {
		return 0, d.unusable(tok)
	}
	seconds := d.seconds(strings.TrimSpace(string(d.lex.text)))
	if seconds <= 0 || seconds > latestSeconds {
		d.quirks.note(TimeUnreadable)
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
		d.quirks.noteIf(!zoned, TimeZoneMissing)
		d.quirks.noteIf(zoned && err != nil, TimeForm)
		return t.Unix()
	}
	n, ok := wholeNumber(text)
	if !ok || n < earliestSeconds {
		return 0
	}
	d.quirks.note(TimeNumber)
	if n > latestSeconds {
		n /= millisecond
	}
	return n
}

// checkRange completes the time range, and notes what is odd about it.
func (r *Report) checkRange(q *tally, latest int64) {
	q.noteIf(r.Begin != 0 && !reporttext.Plausible(r.Begin, latest), TimeImplausible)
	q.noteIf(r.End != 0 && !reporttext.Plausible(r.End, latest), TimeImplausible)
	switch {
	case r.Begin == 0 && r.End == 0:
		q.note(RangeMissing)
		return
	case r.Begin == 0:
		q.note(RangeIncomplete)
		r.Begin = r.End
		return
	case r.End == 0:
		q.note(RangeIncomplete)
		r.End = r.Begin
		return
	}
	q.noteIf(r.Begin == r.End, RangeEmpty)
	q.noteIf(r.Begin > r.End, RangeReversed)
	q.noteIf(r.End-r.Begin > longRange, RangeLong)
}
