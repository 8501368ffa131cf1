package spf

import (
	"slices"
	"strings"
)

// Merge combines several records of a domain, which are an error, into one: all terms once, and the
// strictest all, but never one that passes. Redirects become includes, because all disables
// redirect (RFC 7208 §6.1), and only the first exp is used.
func Merge(records []string) string {
	const redirect, exp = "redirect=", "exp="
	terms, all := []string{version}, "~all"
	add := func(term string, same func(string) bool) {
		if !slices.ContainsFunc(terms, same) {
			terms = append(terms, term)
		}
	}
	for _, record := range records {
		for _, term := range strings.Fields(record)[1:] {
			lower := strings.ToLower(term)
			if strings.HasPrefix(lower, redirect) {
				term = "include:" + term[len(redirect):]
			}
			switch {
			case lower == "-all":
				all = lower
			case strings.TrimLeft(lower, "+~?") == "all":
			case strings.HasPrefix(lower, exp):
				add(term, func(t string) bool { return strings.HasPrefix(strings.ToLower(t), exp) })
			default:
				add(term, func(t string) bool { return strings.EqualFold(t, term) })
			}
		}
	}
	return strings.Join(append(terms, all), " ")
}
