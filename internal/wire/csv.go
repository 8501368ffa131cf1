package wire

import (
	"strings"
	"unicode"
)

// EscapeFormula prefixes text that a spreadsheet would evaluate as a formula with ', so that
// a hostile report cannot run one: at its start, also after blanks and quotes, and after a
// semicolon, tab or line break, where programs with other separators begin a cell.
func EscapeFormula(text string) string {
	var b strings.Builder
	copied := 0
	escape := func(at int) {
		b.WriteString(text[copied:at] + "'")
		copied = at
	}
	if text != "" && strings.ContainsRune("\t\r\n", rune(text[0])) {
		escape(0)
	}
	begin := 0 // of the cell, while only blanks and quotes follow; else -1
	for i, r := range text {
		switch {
		case strings.ContainsRune(";\t\r\n", r):
			begin = i + 1
		case begin < 0 || r == '"' || unicode.IsSpace(r):
		default:
			if strings.ContainsRune("=+-@＝＋－＠", r) {
				escape(begin)
			}
			begin = -1
		}
	}
	if copied == 0 && b.Len() == 0 {
		return text
	}
	return b.String() + text[copied:]
}
