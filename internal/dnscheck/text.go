package dnscheck

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/facts"
)

const (
	// maxText bounds a stored text from DNS, in bytes: lists have the records of many domains.
	maxText = 4 << 10
	// maxQuoted bounds a quotation in a sentence, in bytes. The reason of a failed download has a URL in it.
	maxQuoted = 320
)

// storable returns a text from DNS in a form that can be stored, truncated to maxText.
func storable(text string) string { return cut(printable(text), maxText) }

// storableAll is storable for several texts.
func storableAll(texts []string) []string {
	var all []string
	for _, text := range texts {
		all = append(all, storable(text))
	}
	return all
}

// ownAddress matches our side of a connection in a network error, whose port differs each
// time.
var ownAddress = regexp.MustCompile(`\S+->`)

// storableReason is storable for network errors.
func storableReason(reason string) string { return storable(ownAddress.ReplaceAllString(reason, "")) }

// cut truncates a text to limit bytes without splitting a character.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit] + "…"
}

// quotable returns an untrusted text for use in a sentence: on one line, short, and
// without terminal control sequences.
func quotable(text string) string { return visible(cut(text, maxQuoted)) }

// visible replaces invisible characters.
func visible(text string) string {
	return strings.Map(func(r rune) rune {
		if r == ' ' || unicode.IsGraphic(r) && !unicode.IsSpace(r) {
			return r
		}
		return utf8.RuneError
	}, text)
}

// txtRecord returns a TXT record to publish.
func txtRecord(name, text string) dmarcd.DNSRecord {
	return dmarcd.DNSRecord{Name: name, Type: "TXT", Data: visible(text)}
}

// listed joins at most ten names as "a, b and c".
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

// lastAlias returns the end of a chain of aliases, or "".
func lastAlias(aliases []string) string {
	if len(aliases) == 0 {
		return ""
	}
	return aliases[len(aliases)-1]
}

// has reports whether problems contains one of that kind.
func has(problems []facts.Problem, kind string) bool {
	for _, p := range problems {
		if p.Kind == kind {
			return true
		}
	}
	return false
}
