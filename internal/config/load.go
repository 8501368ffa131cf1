package config

import (
	"cmp"
	"errors"
	"fmt"
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
