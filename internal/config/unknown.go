package config

import (
	"slices"
	"strings"
)

// UnknownName is a name that means nothing to us, with the known name that was
// probably meant.
type UnknownName struct {
	Name string
	// Nearest is empty where no known name is similar.
	Nearest string
}

// UnknownEnvironment returns the variables of environ, which has the form of
// os.Environ, that begin like ours and are no setting: most are misspelt. They
// are ordered by name. The variables that only tests read are passed over.
func UnknownEnvironment(environ []string) []UnknownName {
	names := []string{"DMARCD_TEST_POSTGRES", "DMARCD_CORPUS"}
	for _, s := range Settings() {
		names = append(names, s.Env())
	}
	var unknown []UnknownName
	for name := range environment(environ) {
		if strings.HasPrefix(name, envPrefix) && !slices.Contains(names, name) {
			unknown = append(unknown, UnknownName{Name: name, Nearest: nearest(name, names, len(envPrefix))})
		}
	}
	slices.SortFunc(unknown, func(a, b UnknownName) int { return strings.Compare(a.Name, b.Name) })
	return unknown
}

// nearest returns the name that takes the fewest edits to reach from name, or
// "" where that would be more than a third of it. The first shared bytes of
// all names do not count.
func nearest(name string, names []string, shared int) string {
	best, fewest := "", (len(name)-shared)/3+1
	for _, candidate := range names {
		if n := edits(name, candidate); n < fewest {
			best, fewest = candidate, n
		}
	}
	return best
}

// edits is the Levenshtein distance: how many bytes must be inserted, deleted
// or replaced to make b from a.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
