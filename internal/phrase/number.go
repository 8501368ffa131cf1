package dmarcd

import (
	"math"
	"strconv"
	"strings"
)

// FormatNumber writes a whole number with a comma between its thousands, such as 12,345.
func FormatNumber(n int64) string {
	text := strconv.FormatInt(n, 10)
	first := 0 // of the digits
	if n < 0 {
		text, first = "−"+text[1:], len("−")
	}
	for at := len(text) - 3; at > first; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// FormatCount writes a number of things, such as "1 message" or "1,200 addresses".
func FormatCount(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	if strings.HasSuffix(thing, "s") {
		thing += "e"
	}
	return FormatNumber(n) + " " + thing + "s"
}

// FormatShare writes a share so that only all is 100 % and only nothing is 0 %.
func FormatShare(part, whole int64) string {
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
