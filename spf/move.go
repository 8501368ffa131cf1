package spf

import (
	"strconv"
	"strings"
)

// movedFrom returns the term of the record of a domain, without its qualifier, as it has the same meaning
// in the record of another name. Without such a form it returns false.
func (t Term) movedFrom(domain string) (string, bool) {
	var b strings.Builder
	for _, p := range t.Domain.parts {
		switch p.letter {
		case 0:
			b.WriteString(escapeMacros(p.literal))
		case 'd':
			b.WriteString(escapeMacros(p.transform(domain)))
		case 'p':
			return "", false // prefers names below the domain of the record
		default:
			b.WriteString(p.String())
		}
	}
	t.Domain = DomainSpec{text: b.String()}
	if t.Domain.IsZero() {
		t.Domain.text = escapeMacros(domain)
	}
	text := t.unqualified()
	_, problem := parseTerm(text, 0)
	return text, problem == nil
}

// String returns a macro.
func (p part) String() string {
	letter := p.letter
	if p.escape {
		letter -= 'a' - 'A'
	}
	text := "%{" + string(letter)
	if p.labels > 0 {
		text += strconv.Itoa(p.labels)
	}
	if p.reverse {
		text += "r"
	}
	return text + p.delimiters + "}"
}

// escapeMacros returns the macro-string of a text.
func escapeMacros(text string) string {
	return strings.NewReplacer("%", "%%", " ", "%_").Replace(text)
}

// Absolute returns a record with the domain that it is written for in each term that leaves it out or has
// the macro d, so that it means the same anywhere.
func (r Record) Absolute(domain string) string {
	terms := []string{version}
	for _, t := range r.Terms {
		relative := t.Domain.IsZero() && (t.Kind == A || t.Kind == MX || t.Kind == PTR)
		if text, ok := t.movedFrom(domain); ok && (relative || strings.Contains(t.Domain.Macros(), "d")) {
			terms = append(terms, t.Qualifier.qualifier()+text)
			continue
		}
		terms = append(terms, t.Text)
	}
	return strings.Join(terms, " ")
}
