package web

import (
	"strconv"
	"strings"
)

// readPasted returns the record in a pasted text. The text is the record itself, or a
// line of a zone file, with the record in quotes and possibly in several strings (RFC
// 1035 §5.1). owner is the name at the start of such a line, "" if there is none.
func readPasted(text string) (owner, record string) {
	text = strings.TrimSpace(text)
	before, quoted, isQuoted := strings.Cut(text, `"`)
	if isQuoted {
		record = unquote(quoted)
	} else if i := strings.Index(strings.ToLower(text), "v=dmarc1"); i > 0 {
		before, record = text[:i], text[i:]
	} else {
		return "", text
	}
	fields := strings.Fields(before)
	if len(fields) == 0 {
		return "", record
	}
	if !strings.EqualFold(fields[len(fields)-1], "TXT") {
		return "", text // not a line of a zone file
	}
	if len(fields) > 1 {
		owner = fields[0]
	}
	return owner, record
}

// unquote joins the strings of a text that starts after its first quote. A backslash
// escapes a character or three decimal digits (RFC 1035 §5.1).
func unquote(s string) string {
	var b strings.Builder
	inside := true
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '"':
			inside = !inside
		case !inside:
		case s[i] == '\\' && i+1 < len(s):
			if code, ok := decimalEscape(s[i+1:]); ok {
				b.WriteByte(code)
				i += len("DDD")
				break
			}
			i++
			b.WriteByte(s[i])
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

// decimalEscape returns the byte in the first three digits of s.
func decimalEscape(s string) (byte, bool) {
	const digits = 3
	if len(s) < digits || strings.Trim(s[:digits], "0123456789") != "" {
		return 0, false
	}
	code, err := strconv.ParseUint(s[:digits], 10, 8)
	return byte(code), err == nil
}

// zoneLine is a record in the fields that DNS providers ask for.
type zoneLine struct{ Name, Type, Value string }

// newZoneLine parses a line of a zone file; nil if it is invalid.
func newZoneLine(line string) *zoneLine {
	fields := strings.SplitN(line, " ", 3)
	if len(fields) < 3 || !strings.HasSuffix(fields[0], ".") || fields[1] != strings.ToUpper(fields[1]) {
		return nil
	}
	z := &zoneLine{strings.TrimSuffix(fields[0], "."), fields[1], fields[2]}
	if text, quoted := strings.CutPrefix(z.Value, `"`); quoted {
		z.Value = unquote(text)
	}
	return z
}
