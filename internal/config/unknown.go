package config

import (
	"slices"
	"strings"
)

// testPrefix begins the names of most variables of the tests.
const testPrefix = envPrefix + "TEST_"

// UnknownName is an unknown name and the known name that was probably meant.
type UnknownName struct {
	Name string
	// Nearest is empty if no known name is similar.
	Nearest string
}

// UnknownEnvironment returns the variables in environ, in the form of os.Environ, that
// start with DMARCD_ but are not settings. They are sorted by name and probably misspelt.
// Variables of the tests are left out.
func UnknownEnvironment(environ []string) []UnknownName {
	names := []string{"DMARCD_CORPUS", "DMARCD_SOAK", "DMARCD_PREVIOUS", "DMARCD_E2E_KILLS", "DMARCD_DISCOVERY_SEEDS"}
	for _, s := range Settings() {
		names = append(names, s.Env())
	}
	var unknown []UnknownName
	for name := range environment(environ) {
		if strings.HasPrefix(name, envPrefix) && !strings.HasPrefix(name, testPrefix) && !slices.Contains(names, name) {
			unknown = append(unknown, UnknownName{Name: name, Nearest: nearest(name, names, len(envPrefix))})
		}
	}
	slices.SortFunc(unknown, func(a, b UnknownName) int { return strings.Compare(a.Name, b.Name) })
	return unknown
}

// nearest returns the name with the smallest edit distance, or "" if the distance exceeds
// a third of the length of name. The length does not include the first shared bytes, the
// common prefix of all names.
func nearest(name string, names []string, shared int) string {
	best, fewest := "", (len(name)-shared)/3+1
	for _, candidate := range names {
		if n := edits(name, candidate); n < fewest {
			best, fewest = candidate, n
		}
	}
	return best
}

// edits returns the Levenshtein distance of a and b in bytes.
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
