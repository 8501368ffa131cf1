package config

import "strings"

// Setting describes a setting. Settings returns them all; the zero value is not useful.
type Setting struct {
	// Key is the name in a file, with its section: "listen", "http.cors_origins".
	Key string
	// Kind is text, list, duration, number or word.
	Kind string
	// Words are the valid values of a setting of the kind word, nil for other kinds.
	Words []string
	// Default is the default value, or a description of how it is derived.
	Default string
	// Help is a one-line description.
	Help string
	// Secret reports that the value must never be shown.
	Secret bool

	fallback string                                 // the text if every layer is empty
	set      func(c *Config, text string) (ok bool) // parses text; c is unchanged if !ok
	text     func(c Config) string                  // the value as text
	rules    []rule[Config]                         // the first concerns only this setting
}

// Env returns the name of the environment variable, such as DMARCD_HTTP_CORS_ORIGINS.
func (s Setting) Env() string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(s.Key, ".", "_"))
}

// Flag returns the name of the flag without leading dashes, such as http-cors-origins.
func (s Setting) Flag() string {
	return strings.NewReplacer(".", "-", "_", "-").Replace(s.Key)
}

// masked returns text without secrets.
func (s Setting) masked(text string) string {
	if text == "" {
		return ""
	}
	if s.Secret {
		return mask
	}
	if s.Kind != listKind().name {
		return maskPassword(text)
	}
	items := strings.Split(text, ",")
	for i, item := range items {
		items[i] = maskPassword(item)
	}
	return strings.Join(items, ",")
}

// defaulting returns s with a description of a derived default.
func (s Setting) defaulting(words string) Setting {
	s.Default = words
	return s
}

// needing returns s with an additional rule that involves other settings.
func (s Setting) needing(r rule[Config]) Setting {
	s.rules = append(s.rules, r)
	return s
}

// secret returns s as a setting whose value is never shown.
func (s Setting) secret() Setting {
	s.Secret = true
	return s
}

// define returns the setting that is stored in a field of Config. fallback is the text of
// its default value.
func define[T any](key string, k kind[T], fallback string, r rule[T], field func(*Config) *T, help string) Setting {
	return Setting{
		Key:      key,
		Kind:     k.name,
		Words:    r.words,
		Default:  fallback,
		Help:     help,
		fallback: fallback,
		set: func(c *Config, text string) bool {
			v, ok := k.parse(text)
			if ok {
				*field(c) = v
			}
			return ok
		},
		text: func(c Config) string { return k.print(*field(&c)) },
		rules: []rule[Config]{{
			want:  r.want,
			valid: func(c Config) bool { return r.valid(*field(&c)) },
		}},
	}
}
