package main

import (
	"bufio"
	"os"
	"path"
	"regexp"
)

// entry is a mutant in the list of those that mean the same as the code. It names the
// function and the expression, not the line, which moves.
type entry struct {
	file, function, from, to string
}

// String returns the entry as it is in the list.
func (e entry) String() string {
	return mutant{file: e.file, function: e.function, from: e.from, to: e.to}.String()
}

// knownPattern is the line of an entry: what mutant.String returns, and the reason.
var knownPattern = regexp.MustCompile("^- `([^`]+)` ([^:]+): `(.+)` → `(.+)`: .")

// readKnown reads the entries of a Markdown file.
func readKnown(name string) ([]entry, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // read-only
	var known []entry
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if found := knownPattern.FindStringSubmatch(lines.Text()); found != nil {
			known = append(known, entry{found[1], found[2], found[3], found[4]})
		}
	}
	return known, lines.Err()
}

func (e entry) matches(m mutant) bool {
	return e == entry{m.file, m.function, m.from, m.to}
}

// listed reports whether a mutant is in the list.
func listed(known []entry, m mutant) bool {
	for _, e := range known {
		if e.matches(m) {
			return true
		}
	}
	return false
}

// unmatched returns the entries of a package that match none of its mutants.
func unmatched(known []entry, folder string, mutants []mutant) (stale []entry) {
	for _, e := range known {
		if path.Dir(e.file) != path.Clean(folder) {
			continue
		}
		found := false
		for _, m := range mutants {
			found = found || e.matches(m)
		}
		if !found {
			stale = append(stale, e)
		}
	}
	return stale
}
