package store

import (
	"strconv"
	"strings"
	"unicode"

	"github.com/dmarcd/dmarcd"
)

// plain returns text that both engines can store: valid UTF-8 without NUL, which
// PostgreSQL rejects.
func plain(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}

// keyText returns text that both engines can store and index: of at most MaxKeyText bytes.
func keyText(text string) string { return cutText(plain(text), dmarcd.MaxKeyText) }

// nameText is keyText for a domain name, of which the end stays: it decides whose the name is.
func nameText(name string) string { return dmarcd.CutName(plain(name)) }

// cutText returns the characters of valid text that fit in so many bytes.
func cutText(text string, bytes int) string {
	if len(text) <= bytes {
		return text
	}
	return strings.ToValidUTF8(text[:bytes], "")
}

// uncontrolled returns text without control characters.
func uncontrolled(text string) string {
	if strings.IndexFunc(text, unicode.IsControl) < 0 {
		return plain(text)
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return unicode.ReplacementChar
		}
		return r
	}, plain(text))
}

// shortened returns text of at most maxLogText bytes that both engines can store.
func shortened(text string) string {
	text = plain(text)
	if len(text) <= maxLogText {
		return text
	}
	const end = "…"
	return cutText(text, maxLogText-len(end)) + end
}

// line returns text on a single line.
func line(text string) string {
	return strings.NewReplacer("\r", " ", "\n", " ").Replace(plain(text))
}

// formatQuirks writes quirks with a line break before and after each name, so that one
// can be found by substring.
func formatQuirks(quirks []dmarcd.Quirk) string {
	var b strings.Builder
	for _, quirk := range quirks {
		b.WriteString("\n" + quirk.Name + " " + strconv.Itoa(quirk.Count))
	}
	return b.String()
}

// quirkMark is the substring of formatQuirks for a quirk.
func quirkMark(name string) string { return "\n" + name + " " }

func parseQuirks(text string) []dmarcd.Quirk {
	var quirks []dmarcd.Quirk
	for entry := range strings.SplitSeq(text, "\n") {
		if name, count, ok := strings.Cut(entry, " "); ok {
			n, _ := strconv.Atoi(count) // formatQuirks wrote it
			quirks = append(quirks, dmarcd.Quirk{Name: name, Count: n})
		}
	}
	return quirks
}

// genuine is the stored verdict.
func genuine(v dmarcd.Verdict) dmarcd.Genuine {
	if v.Genuine == "" {
		return dmarcd.GenuineUnknown
	}
	return v.Genuine
}

// formatVerdict writes the evidence of the verdict, one item per line.
func formatVerdict(v dmarcd.Verdict) string {
	return strings.Join([]string{line(v.From), line(v.DKIM), line(v.SPF), line(v.DMARC), line(v.Reason), line(v.Domain), line(v.Organization)}, "\n")
}

func parseVerdict(answer dmarcd.Genuine, text string) dmarcd.Verdict {
	lines := append(strings.Split(text, "\n"), "", "", "", "", "", "", "")
	return dmarcd.Verdict{
		Genuine: answer, From: lines[0], DKIM: lines[1], SPF: lines[2], DMARC: lines[3], Reason: lines[4], Domain: lines[5], Organization: lines[6],
	}
}
