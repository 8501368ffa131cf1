package failure

import (
	"net/mail"
	"net/netip"
	"regexp"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd/internal/reporttext"
)

// comment matches a comment without nested ones (RFC 5322 §3.2.2).
var comment = regexp.MustCompile(`\([^()]*\)`)

// zones are the time zone names of RFC 5322 §4.3; the standard library treats them as
// UTC.
var zones = map[string]string{
	"EST": "-0500", "EDT": "-0400", "CST": "-0600", "CDT": "-0500",
	"MST": "-0700", "MDT": "-0600", "PST": "-0800", "PDT": "-0700",
	"UT": "+0000", "UTC": "+0000", "GMT": "+0000", "Z": "+0000",
}

// withoutComments removes comments.
func withoutComments(text string) string {
	return strings.TrimSpace(comment.ReplaceAllString(text, ""))
}

// date parses a date of RFC 5322 §3.3 and converts it to UTC. Years before email existed
// or after 9999 are invalid.
func date(text string) (time.Time, bool) {
	words := strings.Fields(withoutComments(text))
	if n := len(words); n > 0 {
		if offset, known := zones[strings.ToUpper(words[n-1])]; known {
			words[n-1] = offset
		}
	}
	plain := strings.Join(words, " ")
	for _, read := range []func(string) (time.Time, error){mail.ParseDate, rfc3339} {
		if when, err := read(plain); err == nil && when.Year() >= 1970 && when.Year() <= 9999 {
			return when.UTC().Truncate(time.Second), true
		}
	}
	return time.Time{}, false
}

func rfc3339(text string) (time.Time, error) { return time.Parse(time.RFC3339, text) }

// address parses the first word of a text as an IP address.
func address(text string) (netip.Addr, bool) {
	if addr, ok := reporttext.Address(text); ok {
		return addr, true
	}
	words := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t[]<>(),;", r) })
	if len(words) == 0 {
		return netip.Addr{}, false
	}
	return reporttext.Address(words[0])
}

// domain returns a domain in lower-case A-labels, without trailing dot and local part.
func domain(text string) string {
	text = unbracketed(withoutComments(text))
	text = text[strings.LastIndexByte(text, '@')+1:]
	return reporttext.ALabels(strings.ToLower(strings.TrimSuffix(strings.TrimSpace(text), ".")))
}

// unbracketed removes angle brackets.
func unbracketed(text string) string {
	text = strings.TrimSpace(text)
	return strings.TrimSuffix(strings.TrimPrefix(text, "<"), ">")
}

// afterType returns the name after a type such as "dns;" (RFC 3464 §2.1.2).
func afterType(text string) string {
	if _, name, found := strings.Cut(text, ";"); found {
		text = name
	}
	return strings.TrimSpace(text)
}
