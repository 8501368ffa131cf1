package config

import (
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
)

// rule defines the valid values of a type, as text and as code.
type rule[T any] struct {
	want  string
	valid func(T) bool
	words []string // all right values, where they are a few words
}

// durationFrom allows the durations from least to most.
func durationFrom(least, most time.Duration) rule[time.Duration] {
	return rule[time.Duration]{
		want:  "a duration from " + printDuration(least) + " to " + printDuration(most),
		valid: func(d time.Duration) bool { return least <= d && d <= most },
	}
}

// ageFrom allows the durations from least to most, and 0 for things that do not age.
func ageFrom(least, most time.Duration) rule[time.Duration] {
	within := durationFrom(least, most)
	return rule[time.Duration]{
		want:  within.want + ", or 0s (forever)",
		valid: func(d time.Duration) bool { return d == 0 || within.valid(d) },
	}
}

// numberUpTo allows the numbers from 0 to most. NaN is none of them.
func numberUpTo(most float64, zero string) rule[float64] {
	return rule[float64]{
		want:  "a number from 0 (" + zero + ") to " + strconv.FormatFloat(most, 'f', -1, 64),
		valid: func(v float64) bool { return 0 <= v && v <= most },
	}
}

// oneOf allows a few words.
func oneOf(words ...string) rule[string] {
	return rule[string]{
		want:  "one of " + strings.Join(words, ", "),
		valid: func(v string) bool { return slices.Contains(words, v) },
		words: words,
	}
}

// each allows the lists all of whose items the rule r allows.
func each(r rule[string], want string) rule[[]string] {
	return rule[[]string]{
		want: want,
		valid: func(items []string) bool {
			return !slices.ContainsFunc(items, func(v string) bool { return !r.valid(v) })
		},
	}
}

// orEmpty allows the empty string besides what r allows.
func orEmpty(r rule[string]) rule[string] {
	return rule[string]{want: r.want, valid: func(v string) bool { return v == "" || r.valid(v) }}
}

// wholeBetween allows the whole numbers from least to most.
func wholeBetween(least, most int, note string) rule[int] {
	return rule[int]{
		want:  "a whole number from " + strconv.Itoa(least) + note + " to " + strconv.Itoa(most),
		valid: func(v int) bool { return least <= v && v <= most },
	}
}

// anyLevel allows every level, because only the four that have a word can be
// written.
func anyLevel() rule[slog.Level] {
	words := []string{"debug", "info", "warn", "error"}
	return rule[slog.Level]{
		want:  "one of " + strings.Join(words, ", "),
		valid: func(slog.Level) bool { return true },
		words: words,
	}
}

// anyNetworks allows every list, because only networks can be written in one.
func anyNetworks() rule[[]netip.Prefix] {
	return rule[[]netip.Prefix]{
		want:  "a comma-separated list of addresses and networks, such as 127.0.0.1,10.1.2.0/24,2001:db8::/64",
		valid: func([]netip.Prefix) bool { return true },
	}
}

// path allows what can be the name of a file or folder.
func path() rule[string] {
	return rule[string]{
		want:  "the path of a folder",
		valid: func(v string) bool { return v != "" && !strings.ContainsRune(v, 0) },
	}
}

// file allows what can be the name of a file.
func file() rule[string] {
	return rule[string]{want: "the path of a file", valid: path().valid}
}

// teamName allows a name in the form of dmarcd.ParseTeamName.
func teamName() rule[string] {
	return rule[string]{
		want: "the name of a team, 1 to 100 printable characters",
		valid: func(v string) bool {
			name, err := dmarcd.ParseTeamName(v)
			return err == nil && name == v
		},
	}
}

// listenAddress allows host:port where the host may be empty (every address)
// and the port may be 0 (a free one).
func listenAddress(want string) rule[string] {
	return rule[string]{want: want, valid: func(v string) bool {
		host, port, err := net.SplitHostPort(v)
		return err == nil && (host == "" || isHost(host)) && isPort(port, 0)
	}}
}

// serverAddress allows the host:port of a remote server.
func serverAddress() rule[string] {
	return rule[string]{want: "host:port", valid: func(v string) bool {
		host, port, err := net.SplitHostPort(v)
		return err == nil && isHost(host) && isPort(port, 1)
	}}
}

// hostPattern is generous: names on private networks may have underscores and
// a single label.
var hostPattern = regexp.MustCompile(`^[0-9A-Za-z]([0-9A-Za-z._-]*[0-9A-Za-z.])?$`)

// isHost rejects zones ("fe80::1%eth0"), which are invalid in a base URL.
func isHost(v string) bool {
	ip, err := netip.ParseAddr(v)
	return err == nil && ip.Zone() == "" || hostPattern.MatchString(v)
}

func isPort(v string, least uint64) bool {
	n, err := strconv.ParseUint(v, 10, 16)
	return err == nil && n >= least
}

// tokenPattern is the form of a token; its last six characters are a checksum
// that package auth knows.
var tokenPattern = regexp.MustCompile(`^dmd_[0-9A-Za-z]{40}$`)

func token() rule[string] {
	return rule[string]{
		want:  `"dmd_" and 40 letters and digits, as "dmarcd token create" prints it`,
		valid: tokenPattern.MatchString,
	}
}

// keywordPattern matches PostgreSQL keyword connection strings, which would otherwise be
// used as the name of an SQLite file.
var keywordPattern = regexp.MustCompile(`(?i)(^|\s)(host|hostaddr|port|user|password|dbname|service)\s*=`)

func database() rule[string] {
	return rule[string]{
		want: "the path of an SQLite file, or postgres://user:password@host:port/database",
		valid: func(v string) bool {
			if isPostgres(v) {
				u, err := url.Parse(v)
				return err == nil && (u.Host != "" || u.Query().Get("host") != "")
			}
			// SQLite's special names are no files: each connection to
			// ":memory:" would get a database of its own.
			return path().valid(v) && !strings.Contains(v, "://") && !keywordPattern.MatchString(v) &&
				!strings.HasPrefix(v, ":") && !strings.HasPrefix(v, "file:") && !strings.Contains(v, "?")
		},
	}
}

// pathPattern allows the characters that stand for themselves in a URL
// (RFC 3986 §2.3), so that the prefix is compared byte for byte.
var pathPattern = regexp.MustCompile(`^(/[0-9A-Za-z._~-]+)*/?$`)

// baseURL allows an absolute URL whose path leaves alone what the server
// answers outside the API.
func baseURL() rule[string] {
	taken := []string{"app", "healthz", "readyz", "metrics", "tlsrpt"}
	return rule[string]{
		want: "an http or https URL without user, query and fragment, such as https://dmarc.example.com/api; " +
			"its path must not start with /" + strings.Join(taken, ", /"),
		valid: func(v string) bool {
			u, err := url.Parse(v)
			if err != nil || !isOrigin(u) || u.RawQuery != "" || u.ForceQuery || strings.Contains(v, "#") {
				return false
			}
			segments := strings.Split(strings.TrimPrefix(u.EscapedPath(), "/"), "/")
			return pathPattern.MatchString(u.EscapedPath()) && !slices.Contains(taken, segments[0]) &&
				!slices.Contains(segments, ".") && !slices.Contains(segments, "..")
		},
	}
}

// origin allows what a browser sends in the field Origin (RFC 6454 §6.2), and
// "*" for every origin.
func origin() rule[string] {
	return rule[string]{want: "an origin", valid: func(v string) bool {
		u, err := url.Parse(v)
		return v == "*" || err == nil && isOrigin(u) && v == u.Scheme+"://"+u.Host
	}}
}

// isOrigin reports whether u has the scheme and the host of a web server.
func isOrigin(u *url.URL) bool {
	port := u.Port()
	return (u.Scheme == "http" || u.Scheme == "https") && u.User == nil && isHost(u.Hostname()) &&
		!strings.HasSuffix(u.Host, ":") && (port == "" || isPort(port, 0))
}

// domainName allows a domain name in the form of dmarcd.ParseName.
func domainName() rule[string] {
	return rule[string]{
		want: "a domain name, such as reports.example.com",
		valid: func(v string) bool {
			name, err := dmarcd.ParseName(v)
			return err == nil && name == v
		},
	}
}
