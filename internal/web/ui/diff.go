package ui

import "strings"

// DiffPart is a piece of text that is in both versions, or in one of them.
type DiffPart struct {
	Text string
	// Change is "", "removed" or "added".
	Change string
}

// maxDiffWords limits the size of a comparison. Longer texts are shown completely, as
// removed and added.
const maxDiffWords = 800

// DiffWords compares two DNS records term by term.
func DiffWords(before, after string) []DiffPart {
	a, b := splitTerms(before), splitTerms(after)
	if len(a) > maxDiffWords || len(b) > maxDiffWords {
		return join(join(nil, before, "removed"), after, "added")
	}
	// longest[i][j] is the length of the longest common subsequence of a[i:] and b[j:].
	longest := make([][]int, len(a)+1)
	for i := range longest {
		longest[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				longest[i][j] = longest[i+1][j+1] + 1
			} else {
				longest[i][j] = max(longest[i+1][j], longest[i][j+1])
			}
		}
	}
	var parts []DiffPart
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			parts = join(parts, a[i], "")
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && longest[i+1][j] >= longest[i][j+1]:
			parts = join(parts, a[i], "removed")
			i++
		default:
			parts = join(parts, b[j], "added")
			j++
		}
	}
	return parts
}

// splitTerms splits a record at spaces, which are pieces too, so that joining them
// restores it.
func splitTerms(s string) []string {
	var terms []string
	for s != "" {
		term, rest, found := strings.Cut(s, " ")
		if term != "" {
			terms = append(terms, term)
		}
		if found {
			terms = append(terms, " ")
		}
		s = rest
	}
	return terms
}

// join appends a text, to the last part if that has the same change.
func join(parts []DiffPart, text, change string) []DiffPart {
	if text == "" {
		return parts
	}
	if n := len(parts); n > 0 && parts[n-1].Change == change {
		parts[n-1].Text += text
		return parts
	}
	return append(parts, DiffPart{Text: text, Change: change})
}
