package dmarcd

import (
	"net/url"
	"strings"
)

// NamesIn returns the distinct domain names in pasted text: a list separated by white
// space, commas or semicolons, or a zone file, of which it takes $ORIGIN and the owner of
// the SOA record. URLs and email addresses are reduced to their domain. Words without a
// domain name are returned unchanged.
func NamesIn(text string) (names, unreadable []string) {
	words := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\r\n,;", r) })
	if zone := zoneNames(text); len(zone) > 0 {
		words = zone
	}
	known := map[string]bool{}
	for _, word := range words {
		name, err := ParseName(hostOf(word))
		switch {
		case err != nil:
			unreadable = append(unreadable, word)
		case !known[name]:
			known[name] = true
			names = append(names, name)
		}
	}
	return names, unreadable
}

// zoneNames returns the names of the zones in a zone file, nil for any other text.
func zoneNames(text string) []string {
	var names []string
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) > 1 && strings.EqualFold(fields[0], "$ORIGIN") {
			names = append(names, fields[1])
			continue
		}
		for _, field := range fields[min(1, len(fields)):] {
			if strings.EqualFold(field, "SOA") && fields[0] != "@" {
				names = append(names, fields[0])
				break
			}
		}
	}
	return names
}

// hostOf returns the domain of a URL or an email address, or the word itself.
func hostOf(word string) string {
	word = strings.Trim(word, "<>()\"'")
	if strings.Contains(word, "://") {
		if address, err := url.Parse(word); err == nil {
			return address.Hostname()
		}
	}
	word = strings.TrimPrefix(word, "mailto:")
	if at := strings.LastIndexByte(word, '@'); at >= 0 {
		word = word[at+1:]
	}
	host, _, _ := strings.Cut(word, "/")
	return host
}
