package web

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

// tagTable explains the tags of a record in order, for both kinds of receivers.
func tagTable(r dmarc.Record, csv string) ui.Table {
	t := ui.Table{
		ID: "tags", Caption: "Tag by tag", CSV: csv,
		Columns: []ui.Column{{Title: "Tag"}, {Title: "Meaning", Wide: true}, {Title: "Under RFC 7489", Wide: true}},
		Rows:    [][]ui.Cell{{ui.Code("v=DMARC1"), ui.Text("This is a DMARC record. It must be the first tag."), ui.Text("the same")}},
	}
	for _, tag := range r.Tags {
		name := strings.ToLower(tag.Name)
		meaning, old := explainTag(name, tag.Value)
		t.Rows = append(t.Rows, []ui.Cell{ui.Code(name + "=" + tag.Value), ui.Text(meaning), ui.Text(cmp.Or(old, "the same"))})
	}
	return t
}

// meanings explain each tag; for policies and modes, the meaning of the value is appended. old
// is the meaning under RFC 7489, "" if it is the same.
var meanings = map[string]struct{ meaning, old string }{
	"p":     {"Mail from the domain itself: ", ""},
	"sp":    {"Mail from subdomains without their own record: ", ""},
	"np":    {"Mail from non-existent subdomains: ", "Unknown tag: sp or p applies."},
	"adkim": {"DKIM is aligned ", ""},
	"aspf":  {"SPF is aligned ", ""},
	"rua": {
		"Receivers send aggregate reports to these addresses, usually once a day. They contain no message content.",
		"Receivers only have to support two addresses.",
	},
	"ruf": {"Receivers send reports about single messages to these addresses. Few receivers do.", ""},
	"fo":  {"When to send reports about single messages: 0 neither SPF nor DKIM passes, 1 one of them does not, d a DKIM signature fails, s SPF fails.", ""},
	"t":   {"With t=y, receivers apply one level less than the policy, and report as usual.", "Unknown tag: the policy applies in full."},
	"psd": {"Whether others register names below this domain: y yes, n no, u not specified.", "Unknown tag: the Public Suffix List decides."},
	"pct": {"Removed from the standard and ignored. Use t=y for testing.", "The share of failing mail that the policy applies to."},
	"rf":  {"Removed from the standard and ignored.", "The format of failure reports."},
	"ri":  {"Removed from the standard and ignored.", "The requested interval between aggregate reports, in seconds."},
}

// explainTag returns the meaning of a tag; old is its meaning under RFC 7489, "" if it is the same.
func explainTag(name, value string) (meaning, old string) {
	known, ok := meanings[name]
	if !ok {
		return "Unknown tag. Receivers ignore it.", ""
	}
	switch name {
	case "p", "sp", "np":
		return known.meaning + policyMeaning(strings.ToLower(value)), known.old
	case "adkim", "aspf":
		return known.meaning + modeMeaning(strings.ToLower(value)), known.old
	}
	return known.meaning, known.old
}

func policyMeaning(word string) string {
	switch word {
	case "none":
		return "if it fails DMARC, it is delivered and reported."
	case "quarantine":
		return "if it fails DMARC, it goes to the spam folder."
	case "reject":
		return "if it fails DMARC, it is rejected."
	}
	return "the value must be none, quarantine or reject, so the record is invalid."
}

func modeMeaning(word string) string {
	switch word {
	case "s":
		return "only for exactly the From domain."
	case "r":
		return "for every domain of the same organization."
	}
	return "for every domain of the same organization: the value is neither r nor s, so the default applies."
}

// readPasted returns the record in a pasted text. The text is the record itself, or a
// line of a zone file, with the record in quotes and possibly in several strings (RFC
// 1035 §5.1). owner is the name at the start of the line, "" without one.
func readPasted(text, version string) (owner, record string) {
	text = strings.TrimSpace(text)
	before, quoted, isQuoted := strings.Cut(text, `"`)
	if isQuoted {
		record = unquote(quoted)
	} else if i := strings.Index(strings.ToLower(text), strings.ToLower(version)); i > 0 {
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
