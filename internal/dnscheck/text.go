package dnscheck

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dmarcd/dmarcd"
)

const (
	// maxText is how much of a text from the DNS is kept as a fact.
	maxText = 64 << 10
	// maxNested is the same for the records of others in the SPF tree.
	maxNested = 4 << 10
	// maxQuoted is how much of it is repeated in a sentence.
	maxQuoted = 160
	// maxString is how long a character-string in the DNS can be (RFC 1035 §3.3).
	maxString = 255
)

// kept returns a text from the DNS as it is kept: storable, and bounded.
func kept(text string) string { return cut(printable(text), maxText) }

// keptAll is kept for several texts.
func keptAll(texts []string) []string {
	var all []string
	for _, text := range texts {
		all = append(all, kept(text))
	}
	return all
}

// ownAddress is what a connection that broke says of our end of it: a port that is
// another one each time.
var ownAddress = regexp.MustCompile(`\S+->`)

// keptReason is kept for the reason why a connection failed.
func keptReason(reason string) string { return kept(ownAddress.ReplaceAllString(reason, "")) }

// cut shortens a text to a number of bytes without splitting a character.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit] + "…"
}

// quotable returns a text from outside in a form that can stand in a sentence: on
// one line, short, and without anything that a terminal would obey.
func quotable(text string) string { return visible(cut(text, maxQuoted)) }

// visible replaces what cannot be seen.
func visible(text string) string {
	return strings.Map(func(r rune) rune {
		if r == ' ' || unicode.IsGraphic(r) && !unicode.IsSpace(r) {
			return r
		}
		return utf8.RuneError
	}, text)
}

// txtRecord returns a TXT record as it stands in a zone file, cut between characters
// into strings of the length that the DNS can carry.
func txtRecord(name, text string) string {
	text = visible(text)
	var b strings.Builder
	fmt.Fprintf(&b, "%s. TXT", name)
	for first := true; first || text != ""; first = false {
		end := len(text)
		if end > maxString {
			for end = maxString; end > maxString-utf8.UTFMax && !utf8.RuneStart(text[end]); {
				end--
			}
		}
		b.WriteString(` "` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text[:end]) + `"`)
		text = text[end:]
	}
	return b.String()
}

// listed joins names for a sentence: "a, b and c", and at most ten of them.
func listed(names []string) string {
	const most = 10
	if len(names) > most {
		names = append(names[:most:most], fmt.Sprintf("%d more", len(names)-most))
	}
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// orNone stands in for an empty word in a sentence.
func orNone(word, none string) string {
	if word == "" {
		return none
	}
	return word
}

// lastAlias returns where a chain of aliases ends, "" where there is none.
func lastAlias(aliases []string) string {
	if len(aliases) == 0 {
		return ""
	}
	return aliases[len(aliases)-1]
}

// has reports whether a problem of the kind is among them.
func has(problems []dmarcd.Problem, kind string) bool {
	for _, p := range problems {
		if p.Kind == kind {
			return true
		}
	}
	return false
}
