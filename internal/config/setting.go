package config

import (
	"cmp"
	"fmt"
	"log/slog"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
)

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

// kind converts values of one type from and to text.
type kind[T any] struct {
	name  string
	parse func(text string) (T, bool)
	print func(T) string
}

func textKind() kind[string] {
	return kind[string]{
		name:  "text",
		parse: func(text string) (string, bool) { return text, true },
		print: func(v string) string { return v },
	}
}

// nameKind is a domain name, normalized as in the API, or empty.
func nameKind() kind[string] {
	k := textKind()
	k.parse = func(text string) (string, bool) {
		if text == "" {
			return "", true
		}
		name, err := dmarcd.ParseName(text)
		return name, err == nil
	}
	return k
}

// urlKind is a URL to which paths are appended, so it removes a trailing slash.
func urlKind() kind[string] {
	k := textKind()
	k.parse = func(text string) (string, bool) { return strings.TrimSuffix(text, "/"), true }
	return k
}

func listKind() kind[[]string] {
	return kind[[]string]{
		name: "list",
		parse: func(text string) ([]string, bool) {
			var items []string
			for item := range strings.SplitSeq(text, ",") {
				if item = strings.TrimSpace(item); item != "" {
					items = append(items, item)
				}
			}
			return items, true
		},
		print: func(v []string) string { return strings.Join(v, ",") },
	}
}

// networksKind is a list of networks. A single address is allowed, and printed without a
// prefix length.
func networksKind() kind[[]netip.Prefix] {
	return kind[[]netip.Prefix]{
		name: listKind().name,
		parse: func(text string) ([]netip.Prefix, bool) {
			items, _ := listKind().parse(text)
			var networks []netip.Prefix
			for _, item := range items {
				network, ok := parseNetwork(item)
				if !ok {
					return nil, false
				}
				networks = append(networks, network)
			}
			return networks, true
		},
		print: func(v []netip.Prefix) string {
			items := make([]string, len(v))
			for i, network := range v {
				items[i] = network.String()
				if network.IsSingleIP() {
					items[i] = network.Addr().String()
				}
			}
			return strings.Join(items, ",")
		},
	}
}

// parseNetwork parses a network or an address. IPv4-mapped IPv6 is rejected in a network,
// because it would match no client, and unmapped in an address; zones are rejected,
// because they are local to this machine.
func parseNetwork(text string) (netip.Prefix, bool) {
	if addr, err := netip.ParseAddr(text); err == nil {
		addr = addr.Unmap()
		return netip.PrefixFrom(addr, addr.BitLen()), addr.Zone() == ""
	}
	network, err := netip.ParsePrefix(text)
	return network.Masked(), err == nil && !network.Addr().Is4In6()
}

func durationKind() kind[time.Duration] {
	return kind[time.Duration]{
		name: "duration",
		parse: func(text string) (time.Duration, bool) {
			d, err := ParseDuration(text)
			return d, err == nil
		},
		print: printDuration,
	}
}

// ParseDuration is time.ParseDuration with weeks and days, each a whole number before the other
// units: 12w, 30d, 1w2d12h.
func ParseDuration(text string) (time.Duration, error) {
	rest, hours := text, uint64(0)
	for _, larger := range []struct {
		unit  string
		hours uint64
	}{{"w", 7 * 24}, {"d", 24}} {
		if count, after, found := strings.Cut(rest, larger.unit); found {
			n, err := strconv.ParseUint(count, 10, 16)
			if err != nil {
				return 0, fmt.Errorf("invalid duration %q", text)
			}
			rest, hours = after, hours+n*larger.hours
		}
	}
	if rest == text {
		return time.ParseDuration(text)
	}
	smaller, err := time.ParseDuration(cmp.Or(rest, "0"))
	if err != nil || strings.HasPrefix(rest, "-") || hours > math.MaxInt64/uint64(time.Hour)/2 || smaller > math.MaxInt64/2 {
		return 0, fmt.Errorf("invalid duration %q", text)
	}
	return time.Duration(hours)*time.Hour + smaller, nil
}

// printDuration is d.String without trailing zero units: 1h instead of 1h0m0s.
func printDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

func numberKind() kind[float64] {
	return kind[float64]{
		name: "number",
		parse: func(text string) (float64, bool) {
			f, err := strconv.ParseFloat(text, 64)
			return f, err == nil
		},
		print: func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) },
	}
}

func wholeKind() kind[int] {
	return kind[int]{
		name: "number",
		parse: func(text string) (int, bool) {
			n, err := strconv.Atoi(text)
			return n, err == nil
		},
		print: strconv.Itoa,
	}
}

// bytesKind is a number of bytes, with an optional unit.
func bytesKind() kind[int] {
	return kind[int]{
		name: "size",
		parse: func(text string) (int, bool) {
			n, ok := dmarcd.ParseBytes(text)
			return int(n), ok
		},
		print: func(v int) string { return strings.ReplaceAll(dmarcd.FormatBytes(int64(v)), " ", "") },
	}
}

func wordKind() kind[string] {
	k := textKind()
	k.name = "word"
	return k
}

func levelKind() kind[slog.Level] {
	levels := []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError}
	word := func(v slog.Level) string { return strings.ToLower(v.String()) }
	return kind[slog.Level]{
		name: "word",
		parse: func(text string) (slog.Level, bool) {
			i := slices.IndexFunc(levels, func(l slog.Level) bool { return word(l) == text })
			if i < 0 {
				return 0, false
			}
			return levels[i], true
		},
		print: word,
	}
}
