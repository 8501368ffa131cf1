package ui

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// DiffPart is a piece of text that is in both versions, or in one of them.
type DiffPart struct {
	Text string
	// Change is "", "removed" or "added".
	Change string
}

// DiffTerms compares two DNS records by their terms, wherever these stand: the tags of a DMARC record
// and the addresses in one of them, the terms of an SPF record. The result has the order of after. A term
// that was removed is before the one that replaces it, with the same tag or mechanism, or else after the
// term that it followed.
func DiffTerms(before, after string) []DiffPart {
	switch {
	case before == "":
		return join(nil, after, "added")
	case after == "":
		return join(nil, before, "removed")
	case strings.Contains(before+after, ";"):
		return diffTerms(before, after, ";", "; ", tagName)
	}
	return diffTerms(before, after, " ", " ", mechanism)
}

const (
	// shownSame limits what stays of the text between differences, and shownTerm of a changed term
	// such as a key.
	shownSame, shownTerm = 24, 60
	separators           = " ;,"
)

// Shorten replaces what two records have in common, and the middle of long terms, by an ellipsis.
func Shorten(parts []DiffPart) []DiffPart {
	changed := slices.ContainsFunc(parts, func(p DiffPart) bool { return p.Change != "" })
	short := make([]DiffPart, len(parts))
	for i, part := range parts {
		if changed && part.Change == "" && len(part.Text) > shownSame {
			start := len(part.Text) - len(strings.TrimLeft(part.Text, separators))
			if i == 0 { // the version
				start = max(0, strings.IndexAny(part.Text, separators)) + 1
				start += len(part.Text[start:]) - len(strings.TrimLeft(part.Text[start:], separators))
			}
			end := max(start, len(strings.TrimRight(part.Text, separators)))
			part.Text = part.Text[:start] + "…" + part.Text[end:]
		} else {
			part.Text = longTerm.ReplaceAllStringFunc(part.Text, func(term string) string { return term[:shownTerm/2] + "…" + term[len(term)-shownTerm/4:] })
		}
		short[i] = part
	}
	return short
}

// longTerm matches a long term of printable ASCII characters.
var longTerm = regexp.MustCompile(`[!-~]{` + strconv.Itoa(shownTerm+1) + `,}`)

// diffTerms is DiffTerms with the separator of terms, the text between them, and the name by which one
// replaces another.
func diffTerms(before, after, separator, between string, name func(term string) string) []DiffPart {
	old, now := splitTerms(before, separator), splitTerms(after, separator)
	same, present := counted(old), counted(now)
	for term, n := range same {
		same[term] = min(n, present[term])
	}
	// replaced has the removed terms by name, if an added term has that name, and following the others by
	// the term that is before them; "" is the start.
	added, left := map[string]int{}, maps.Clone(same)
	for _, term := range now {
		if left[term]--; left[term] < 0 {
			added[name(term)]++
		}
	}
	replaced, following, last := map[string][]string{}, map[string][]string{}, ""
	left = maps.Clone(same)
	for _, term := range old {
		key := name(term)
		switch left[term]--; {
		case left[term] >= 0:
			last = term
		case added[key] > 0:
			added[key]--
			replaced[key] = append(replaced[key], term)
		default:
			following[last] = append(following[last], term)
		}
	}
	var parts []DiffPart
	add := func(list ...DiffPart) {
		if len(parts) > 0 && len(list) > 0 {
			parts = join(parts, between, "")
		}
		for _, part := range list {
			parts = join(parts, part.Text, part.Change)
		}
	}
	removed := func(term string) {
		for _, gone := range following[term] {
			add(DiffPart{gone, "removed"})
		}
		delete(following, term)
	}
	removed("")
	left = maps.Clone(same)
	for _, term := range now {
		if left[term]--; left[term] >= 0 {
			add(DiffPart{term, ""})
			removed(term)
			continue
		}
		key := name(term)
		if len(replaced[key]) == 0 {
			add(DiffPart{term, "added"})
			continue
		}
		gone := replaced[key][0]
		replaced[key] = replaced[key][1:]
		if tag, list, ok := strings.Cut(term, "="); ok && separator == ";" && strings.Contains(list+gone, ",") {
			_, was, _ := strings.Cut(gone, "=")
			add(append([]DiffPart{{tag + "=", ""}}, diffTerms(was, list, ",", ",", item)...)...)
			continue
		}
		add(DiffPart{gone, "removed"})
		add(DiffPart{term, "added"})
	}
	return parts
}

// splitTerms splits a text at a separator, without spaces and empty terms.
func splitTerms(text, separator string) (terms []string) {
	for term := range strings.SplitSeq(text, separator) {
		if term = strings.TrimSpace(term); term != "" {
			terms = append(terms, term)
		}
	}
	return terms
}

// tagName is the name of a tag, such as p.
func tagName(term string) string {
	name, _, _ := strings.Cut(term, "=")
	return strings.ToLower(strings.TrimSpace(name))
}

// mechanism is the name of an SPF term without its qualifier, such as all.
func mechanism(term string) string {
	term = strings.ToLower(strings.TrimLeft(term, "+-~?"))
	if end := strings.IndexAny(term, ":=/"); end >= 0 {
		return term[:end]
	}
	return term
}

// item is the name of a list item, which replaces no other.
func item(term string) string { return term }

func counted(terms []string) map[string]int {
	counts := make(map[string]int, len(terms))
	for _, term := range terms {
		counts[term]++
	}
	return counts
}

// join appends text, and extends the last part if it has the same change.
func join(parts []DiffPart, text, change string) []DiffPart {
	if n := len(parts); n > 0 && parts[n-1].Change == change {
		parts[n-1].Text += text
		return parts
	}
	return append(parts, DiffPart{Text: text, Change: change})
}
