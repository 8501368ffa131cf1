package config

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// Input is the input of Load.
type Input struct {
	// File is the path of the configuration file; empty means none.
	File string
	// Environ is the environment in the form of os.Environ.
	Environ []string
	// Flags are the given flags, by Setting.Flag. Flags that are not settings are ignored.
	Flags map[string]string
}

// Effective is a configuration with the origin of each of its values.
type Effective struct {
	Config Config
	// Values has one entry per setting, in the order of Settings.
	Values []Value
}

// Value is the value of one setting in a form that may be shown.
type Value struct {
	Setting Setting
	// Text is the value as it would be written in the environment, with secrets masked.
	Text string
	// Origin is "default", "file NAME", "environment NAME" or "flag --NAME".
	Origin string
}

// originDefault is the origin of default values.
const originDefault = "default"

// given is the value of a setting in one layer.
type given struct {
	text   string
	origin string
}

// Load returns the effective configuration. Its error has one line per invalid value and
// unknown key.
func Load(in Input) (Effective, error) {
	file, err := readFile(in.File)
	if err != nil {
		return Effective{}, err
	}
	env := environment(in.Environ)

	var c Config
	bad := removedEnvironment(env)
	origins := make(map[string]string)
	for _, s := range Settings() {
		g := given{origin: originDefault}
		if v, ok := file[s.Key]; ok {
			g = v
		}
		if text, ok := env[s.Env()]; ok {
			g = given{text, "environment " + s.Env()}
		}
		if text, ok := in.Flags[s.Flag()]; ok {
			g = given{text, "flag --" + s.Flag()}
		}
		origins[s.Key] = g.origin

		text := cmp.Or(strings.TrimSpace(g.text), s.fallback)
		if !s.set(&c, text) {
			bad = append(bad, badValue(s, text, g.origin, s.rules[0].want))
			s.set(&c, s.fallback) // already reported; rules must not report it again
		}
	}
	bad = append(bad, c.problems(origins)...)
	if len(bad) > 0 {
		return Effective{}, errors.Join(bad...)
	}

	c = c.derived()
	e := Effective{Config: c}
	for _, s := range Settings() {
		e.Values = append(e.Values, Value{Setting: s, Text: s.masked(s.text(c)), Origin: origins[s.Key]})
	}
	return e, nil
}

// Validate reports every invalid value, one per line. Database and BaseURL may be empty,
// which means their defaults.
func (c Config) Validate() error {
	return errors.Join(c.problems(nil)...)
}

// problems checks each value by its rules and includes its origin if known.
func (c Config) problems(origins map[string]string) []error {
	var bad []error
	for _, s := range Settings() {
		for _, r := range s.rules {
			if !r.valid(c) {
				bad = append(bad, badValue(s, s.text(c), origins[s.Key], r.want))
			}
		}
	}
	return bad
}

// badValue is the error for one value. Long values are truncated.
func badValue(s Setting, text, origin, want string) error {
	const most = 200
	shown := s.masked(text)
	if len(shown) > most {
		shown = strings.ToValidUTF8(shown[:most], "") + "..."
	}
	if origin != "" {
		origin = " (" + origin + ")"
	}
	return fmt.Errorf("%s = %q%s: must be %s", s.Key, shown, origin, want)
}

// environment returns the variables of environ, in the form of os.Environ. As in
// os.Getenv, the first of two with the same name applies.
func environment(environ []string) map[string]string {
	variables := make(map[string]string, len(environ))
	for _, entry := range environ {
		name, text, _ := strings.Cut(entry, "=")
		if _, has := variables[name]; !has {
			variables[name] = text
		}
	}
	return variables
}

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

// errRemoved is the error for a removed setting. name is how it was set, such as a variable or
// a flag.
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

// RemovedFlag returns an error if a flag, without its dashes, belongs to a removed setting.
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
// Variables of the tests and of commands that use a server are left out.
func UnknownEnvironment(environ []string) []UnknownName {
	names := []string{"DMARCD_CORPUS", "DMARCD_SOAK", "DMARCD_PREVIOUS", "DMARCD_E2E_KILLS", "DMARCD_DISCOVERY_SEEDS", "DMARCD_SERVER", "DMARCD_API_TOKEN"}
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

// Meant returns the one of words that was probably meant by word, "" if none is similar.
func Meant(word string, words []string) string { return nearest(word, words, 0) }

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

// edits returns the edit distance of a and b: the number of bytes to insert, delete, replace, or swap
// with the next one.
func edits(a, b string) int {
	before, row := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next := make([]int, len(b)+1)
		next[0] = i + 1
		for j := range len(b) {
			replaced := row[j]
			if a[i] != b[j] {
				replaced++
			}
			next[j+1] = min(replaced, row[j+1]+1, next[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}

// mask replaces secrets in output.
const mask = "***"

// isPostgres reports whether text is a PostgreSQL URL, not a file.
func isPostgres(text string) bool {
	return strings.HasPrefix(text, "postgres://") || strings.HasPrefix(text, "postgresql://")
}

// maskPassword returns text without passwords in a URL or in PostgreSQL keywords. It errs
// on the side of hiding: text that it cannot parse is hidden completely.
func maskPassword(text string) string {
	scheme, rest, isURL := strings.Cut(text, "://")
	if !isURL {
		if strings.Contains(strings.ToLower(text), "password") && strings.Contains(text, "=") {
			return mask
		}
		return text
	}
	u, err := url.Parse(text)
	// An "@" outside the user information is a password that was not percent-encoded: then
	// the URL is misparsed.
	if at := strings.Count(rest, "@"); err != nil || at > 1 || at == 1 && u.User == nil {
		return scheme + "://" + mask
	}
	if _, has := u.User.Password(); has {
		user := url.User(u.User.Username()).String()
		_, address, _ := strings.Cut(rest, "@")
		text = scheme + "://" + user + ":" + mask + "@" + address
	}
	before, query, hasQuery := strings.Cut(text, "?")
	if !hasQuery {
		return text
	}
	parameters := strings.Split(query, "&")
	for i, p := range parameters {
		// PostgreSQL takes password and sslpassword here as well.
		name, _, _ := strings.Cut(p, "=")
		plain, err := url.QueryUnescape(name)
		if err != nil || strings.Contains(strings.ToLower(plain), "password") {
			parameters[i] = name + "=" + mask
		}
	}
	return before + "?" + strings.Join(parameters, "&")
}
