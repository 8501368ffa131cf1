package reporttext

import (
	"strings"
	"time"
)

const (
	// earliest is the earliest plausible time of a report, 2011-01-01 UTC, in Unix
	// seconds. DMARC is not older.
	earliest = 1_293_840_000
	// MaxAhead is how far in the future the time of a report may be. It allows for wrong
	// clocks and time zones.
	MaxAhead = 48 * time.Hour
)

// timeLayouts are tried in order. A time without a zone is taken as UTC.
var timeLayouts = []struct {
	layout string
	zoned  bool
}{
	{time.RFC3339, true},
	{"2006-01-02T15:04:05", false},
	{"2006-01-02 15:04:05", false},
	{"2006-01-02 15:04:05Z07:00", true},
	{"2006-01-02 15:04:05 Z07:00", true},
	{"2006-01-02T15:04:05Z0700", true},
	{"2006-01-02 15:04:05 -0700", true},
	{"2006-01-02T15:04Z07:00", true},
	{"2006-01-02T15:04", false},
	{"2006-01-02 15:04", false},
	{"2006-01-02", true}, // a day needs no zone
	{"20060102T150405Z0700", true},
	{"20060102T150405", false},
	{"Mon, 2 Jan 2006 15:04:05 -0700", true},
	{"Mon, 2 Jan 2006 15:04:05", false},
	{"2 Jan 2006 15:04:05 -0700", true},
	{"2 Jan 2006 15:04:05", false},
	{"Mon, 2 Jan 06 15:04:05 -0700", true},
	{"2 Jan 06 15:04:05 -0700", true},
	{"2 Jan 06 15:04 -0700", true},
	{"Mon Jan 2 15:04:05 2006", false},
}

// zones are the zone names of RFC 822 §5.1, and UTC. time.Parse does not know their
// offsets.
var zones = map[string]string{
	"UT": "+0000", "UTC": "+0000", "GMT": "+0000",
	"EST": "-0500", "EDT": "-0400", "CST": "-0600", "CDT": "-0500",
	"MST": "-0700", "MDT": "-0600", "PST": "-0800", "PDT": "-0700",
}

// Time parses a time in the formats of RFC 3339, ISO 8601, RFC 822 and its successors,
// and asctime. ok is false for any other text. A time without a zone is taken as UTC, and
// zoned is false. A date alone is midnight UTC, and zoned is true.
func Time(text string) (t time.Time, zoned, ok bool) {
	const maxBytes = 64
	text = strings.TrimSpace(text)
	if len(text) > maxBytes {
		return time.Time{}, false, false
	}
	if text != "" && isDigit(text[0]) {
		text = strings.ToUpper(text) // RFC 3339 §5.6 allows t and z in lower case
	}
	if i := strings.LastIndexByte(text, ' ') + 1; i > 0 {
		if offset, ok := zones[strings.ToUpper(text[i:])]; ok {
			text = text[:i] + offset
		}
	}
	for _, l := range timeLayouts {
		if t, err := time.Parse(l.layout, text); err == nil {
			return t.UTC(), l.zoned, true
		}
	}
	return time.Time{}, false, false
}

// Plausible reports whether a time in Unix seconds is plausible for a report: not before
// 2011, and not after latest. A latest of 0 means no upper limit.
func Plausible(seconds, latest int64) bool {
	return seconds >= earliest && (latest == 0 || seconds <= latest)
}
