package config

import (
	"fmt"
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

// removed are the keys of settings that no longer exist. A start that would ignore them might
// surprise the operator.
var removed = []string{
	"spool", "database_read", "blobs",
	"log.format", "log.slow_query", "http.read_timeout", "http.write_timeout", "http.idle_timeout",
	"http.max_header_bytes", "http.max_connections", "http.max_per_address", "schedule.full_interval",
	"quota.domains", "quota.stored", "quota.unreadable", "quota.reports", "quota.mailboxes",
	"limit.ratio_from", "limit.time", "limit.read_memory", "limit.memory", "intake.failure_addresses",
	"intake.failure_body", "intake.folder_interval", "smtp.hostname", "smtp.max_connections",
	"smtp.max_per_address", "smtp.max_recipients", "smtp.timeout", "imap.interval",
	"retention.counters", "retention.rejected", "retention.entries", "cold.after", "senders.networks",
	"senders.countries", "oidc.name",
}

// errRemoved is the error about a removed setting, by the name with which it is set.
func errRemoved(name string) error {
	return fmt.Errorf("%s is set, but this setting no longer exists; remove it", name)
}

// removedEnvironment returns an error for each removed setting of an environment.
func removedEnvironment(env map[string]string) (bad []error) {
	for _, key := range removed {
		if name := (Setting{Key: key}).Env(); strings.TrimSpace(env[name]) != "" {
			bad = append(bad, errRemoved(name))
		}
	}
	return bad
}

// RemovedFlag returns an error if a flag, without its dashes, is that of a removed setting.
func RemovedFlag(name string) error {
	for _, key := range removed {
		if (Setting{Key: key}).Flag() == name {
			return errRemoved("--" + name)
		}
	}
	return nil
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
