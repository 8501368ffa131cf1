package proposal

import (
	"fmt"
	"strconv"
	"strings"
)

// numerals are the numbers that are written as words.
var numerals = [...]string{2: "two", 3: "three", 4: "four", 5: "five", 6: "six", 7: "seven", 8: "eight", 9: "nine", 10: "ten"}

func numeral(n int) string {
	if n > 1 && n < len(numerals) {
		return numerals[n]
	}
	return strconv.Itoa(n)
}

// shownTerms limits the terms that a sentence names one by one.
const shownTerms = 3

// sentence describes a proposed record and its effect.
func sentence(f Fix, published int) string {
	var clauses []string
	if published > 1 {
		clauses = append(clauses, fmt.Sprintf("merge the %s SPF records into one", numeral(published)))
	}
	for _, action := range []Action{Restore, Add} {
		var terms []string
		for _, c := range f.Changes {
			if c.Action == action {
				terms = append(terms, c.Term)
			}
		}
		switch {
		case len(terms) > shownTerms:
			clauses = append(clauses, fmt.Sprintf("%s %s terms for your servers", action, numeral(len(terms))))
		case len(terms) > 0:
			clauses = append(clauses, string(action)+" "+listed(terms))
		}
	}
	text := listed(append(clauses, removals(f.Changes)...))
	var effects []string
	if f.LookupsAfter != f.LookupsBefore && published == 1 {
		effects = append(effects, fmt.Sprintf("%d → %d lookups", f.LookupsBefore, f.LookupsAfter))
	}
	switch {
	case f.Fixed == 1:
		effects = append(effects, "1 failing message passes, none breaks")
	case f.Fixed > 0:
		effects = append(effects, failing(f.Fixed)+" pass, none breaks")
	default:
		effects = append(effects, "no message breaks")
	}
	return strings.ToUpper(text[:1]) + text[1:] + ": " + strings.Join(effects, "; ")
}

// removals returns a clause for each reason to remove terms.
func removals(changes []Change) []string {
	terms := make(map[string][]string)
	var reasons []string
	for _, c := range changes {
		if c.Action != Remove {
			continue
		}
		if terms[c.Reason] == nil {
			reasons = append(reasons, c.Reason)
		}
		terms[c.Reason] = append(terms[c.Reason], c.Term)
	}
	var clauses []string
	for _, reason := range reasons {
		names := terms[reason]
		switch {
		case len(names) == 1:
			clauses = append(clauses, fmt.Sprintf("remove %s, which %s", names[0], reason))
		case reason == whyUnused:
			clauses = append(clauses, fmt.Sprintf("remove %s includes that never pass SPF for your domain", numeral(len(names))))
		case reason == whyDuplicate:
			clauses = append(clauses, fmt.Sprintf("remove %s duplicate terms", numeral(len(names))))
		case len(names) > shownTerms:
			clauses = append(clauses, fmt.Sprintf("remove %s terms, each of which %s", numeral(len(names)), reason))
		default:
			clauses = append(clauses, fmt.Sprintf("remove %s, each of which %s", listed(names), reason))
		}
	}
	return clauses
}

// listed joins texts as "a, b and c".
func listed(texts []string) string {
	if len(texts) < 2 {
		return strings.Join(texts, "")
	}
	return strings.Join(texts[:len(texts)-1], ", ") + " and " + texts[len(texts)-1]
}
