package phrase

import (
	"math"
	"strconv"
	"strings"

	"github.com/dmarcd/dmarcd"
)

// Number formats a whole number with a comma between thousands, such as 12,345.
func Number(n int64) string {
	text := strconv.FormatInt(n, 10)
	first := 0 // the index of the first digit
	if n < 0 {
		text, first = "−"+text[1:], len("−")
	}
	for at := len(text) - 3; at > first; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// Count formats a number of things, such as "1 message" or "1,200 addresses". thing is singular.
func Count(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	if strings.HasSuffix(thing, "s") {
		thing += "e"
	}
	return Number(n) + " " + thing + "s"
}

// Percent formats part as a percentage of whole with one decimal. Only a part that equals whole is 100 %,
// and only 0 is 0 %; without a whole it returns a dash.
func Percent(part, whole int64) string {
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

// Day formats a day as 29 Oct 2026.
func Day(d dmarcd.Day) string { return d.Time().Format("2 Jan 2006") }
