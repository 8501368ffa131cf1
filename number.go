package dmarcd

import "strconv"

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
