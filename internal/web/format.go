package web

import (
	"fmt"
	"html/template"
	"math"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// formatFuncs are what templates call. None returns HTML of its own making, so
// that all of it is escaped.
func formatFuncs(a *assets) template.FuncMap {
	return template.FuncMap{
		"asset":      a.url,
		"number":     func(n any) string { return number(reflect.ValueOf(n).Int()) },
		"percent":    percent,
		"moment":     moment,
		"machine":    wire.Time,
		"wireMoment": wireMoment,
		"day":        func(d dmarcd.Day) string { return d.String() },
		"size":       size,
		"tone":       tone,
		"gradeTone":  gradeTone,
		"join":       strings.Join,
		"plural":     plural,
		"segment":    url.PathEscape,
		"isZero":     time.Time.IsZero,
		"spark":      newSparkline,
		"diff":       diffWords,
		"eventCell":  eventCell,
		"shareWidth": shareWidth,
		"plus":       func(a, b int64) int64 { return a + b },
		"minus":      func(a, b int) int { return a - b },
		"last":       func(list []string) int { return len(list) - 1 },
		"isName":     isName,
		"zoneLine":   newZoneLine,
		"seen":       func(seen *bool) bool { return seen != nil && *seen },
		"trimSuffix": func(s, suffix string) string { return strings.TrimSpace(strings.TrimSuffix(s, suffix)) },
	}
}

// number groups the digits of a whole number by threes.
func number(n int64) string {
	digits := strconv.FormatInt(n, 10)
	sign := ""
	if digits[0] == '-' {
		sign, digits = "−", digits[1:]
	}
	var groups []string
	for len(digits) > 3 {
		groups = append([]string{digits[len(digits)-3:]}, groups...)
		digits = digits[:len(digits)-3]
	}
	return sign + strings.Join(append([]string{digits}, groups...), ",")
}

// percent writes a share so that only all is 100 % and only nothing is 0 %.
func percent(part, whole int64) string {
	if whole == 0 {
		return "–"
	}
	tenths := math.Round(float64(part) / float64(whole) * 1000)
	switch {
	case part == whole:
		return "100 %"
	case part == 0:
		return "0 %"
	case tenths >= 1000:
		return "> 99.9 %"
	case tenths < 1:
		return "< 0.1 %"
	}
	return strconv.FormatFloat(tenths/10, 'f', 1, 64) + " %"
}

// shareWidth is the length of a bar, of a hundred.
func shareWidth(part, whole int64) string {
	return strconv.FormatFloat(float64(part)/float64(whole)*100, 'f', 1, 64)
}

// moment writes a time for people who have no script to see their own zone.
func moment(t time.Time) string { return t.UTC().Format("2 Jan 2006, 15:04") + " UTC" }

// wireMoment reads a time from a JSON shape; the zero time where it is none.
func wireMoment(s string) time.Time {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return time.Time{}
	}
	return t
}

// size writes a number of bytes with three digits at most.
func size(bytes int64) string {
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

// plural puts a number before a noun.
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return number(int64(n)) + " " + many
}

// tone returns the colour of a word: good, warning, bad, info or "", which is
// quiet. Every word is shown as well: colour alone tells nothing.
func tone(word string) string {
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

// gradeTone returns the colour of a grade.
func gradeTone(grade string) string {
	switch {
	case grade == "":
		return ""
	case grade[0] == 'A' || grade[0] == 'B':
		return "good"
	case grade[0] == 'C' || grade[0] == 'D':
		return "warning"
	}
	return "bad"
}

// joinLines puts lists into one text.
func joinLines(lists ...[]string) string { return strings.Join(slices.Concat(lists...), "; ") }

// isName reports whether a text is a name or an address, which somebody may want to
// copy, and no word or sentence.
func isName(s string) bool {
	return strings.ContainsAny(s, ".:@") && !strings.ContainsAny(s, " ;")
}
