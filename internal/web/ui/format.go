package ui

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
)

// PercentWidth is the length of a bar, from 0 to 100.
func PercentWidth(part, whole int64) string {
	return strconv.FormatFloat(float64(part)/float64(whole)*100, 'f', 1, 64)
}

// Moment formats a time in UTC. A script shows how long ago it is if that is less than a week.
func Moment(t time.Time) string { return t.UTC().Format("2 Jan 2006, 15:04") + " UTC" }

// Date formats a day in UTC.
func Date(d dmarcd.Day) string { return d.Time().Format("2 Jan 2006") }

// WireMoment parses a time of the API, or returns the zero time.
func WireMoment(s string) time.Time {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return time.Time{}
	}
	return t
}

// Size formats a number of bytes with at most three digits.
func Size(bytes int64) string {
	const step = 1024
	if bytes < step {
		return fmt.Sprintf("%d bytes", bytes)
	}
	value, unit := float64(bytes), 0
	for value >= step && unit < 4 {
		value /= step
		unit++
	}
	return fmt.Sprintf("%.3g %s", value, []string{"", "KiB", "MiB", "GiB", "TiB"}[unit])
}

// Tone returns the color of a word: good, warning, bad, spoofed, forwarded or "" for neutral.
// Pages always show the word and a shape too, so color is never the only information.
func Tone(word string) string {
	switch word {
	case "good", "ok", "pass", "yes", "reject", "signed", "stored", "authorized", "not needed", "conclusive", "active":
		return "good"
	case "warning", "quarantine", "softfail", "unclaimed", "replaced", "testing", "unvalidated", "mixed", "temperror":
		return "warning"
	case "error", "fail", "no", "bad", "rejected", "unusable", "invalid", "multiple", "permerror", "broken",
		"not authorized", "revoked", "expired", "bad certificate", "no host":
		return "bad"
	case "info", "inconclusive", "unknown":
		return "info"
	}
	return ""
}

// GradeTone returns the class of a grade: each letter has its color.
func GradeTone(grade string) string {
	if grade == "" {
		return ""
	}
	return strings.ToLower(grade[:1])
}

// IsName reports whether a text is a name or address that users may want to copy, not a
// word or sentence.
func IsName(s string) bool {
	return strings.ContainsAny(s, ".:@") && !strings.ContainsAny(s, " ;")
}
