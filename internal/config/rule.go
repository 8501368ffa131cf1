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

// rule defines the valid values of a setting.
type rule[T any] struct {
	want  string // completes the error "must be ..."
	valid func(T) bool
	words []string // all valid values, for a setting of the kind "word"
}

// durationFrom allows durations from least to most.
func durationFrom(least, most time.Duration) rule[time.Duration] {
	return rule[time.Duration]{
		want:  "a duration from " + printDuration(least) + " to " + printDuration(most),
		valid: func(d time.Duration) bool { return least <= d && d <= most },
	}
}

// ageFrom allows durations from least to most, and 0 for "forever".
func ageFrom(least, most time.Duration) rule[time.Duration] {
	return orZero(durationFrom(least, most), "forever")
}

// orZero allows 0; zero is its meaning.
func orZero(within rule[time.Duration], zero string) rule[time.Duration] {
	return rule[time.Duration]{
		want:  within.want + ", or 0s (" + zero + ")",
		valid: func(d time.Duration) bool { return d == 0 || within.valid(d) },
	}
}

// numberUpTo allows numbers from 0 to most, but not NaN. zero is the meaning of 0.
func numberUpTo(most float64, zero string) rule[float64] {
	return rule[float64]{
		want:  "a number from 0 (" + zero + ") to " + strconv.FormatFloat(most, 'f', -1, 64),
		valid: func(v float64) bool { return 0 <= v && v <= most },
	}
}

// oneOf allows these words.
func oneOf(words ...string) rule[string] {
	return rule[string]{
		want:  "one of " + strings.Join(words, ", "),
		valid: func(v string) bool { return slices.Contains(words, v) },
		words: words,
	}
}

// each allows lists whose items r allows. It replaces the want of r.
func each(r rule[string], want string) rule[[]string] {
	return rule[[]string]{
		want: want,
		valid: func(items []string) bool {
			return !slices.ContainsFunc(items, func(v string) bool { return !r.valid(v) })
		},
	}
}

// orEmpty allows the empty string in addition to r.
func orEmpty(r rule[string]) rule[string] {
	return rule[string]{want: r.want, valid: func(v string) bool { return v == "" || r.valid(v) }}
}

// wholeBetween allows whole numbers from least to most. note follows least in the error.
func wholeBetween(least, most int, note string) rule[int] {
	return rule[int]{
		want:  "a whole number from " + strconv.Itoa(least) + note + " to " + strconv.Itoa(most),
		valid: func(v int) bool { return least <= v && v <= most },
	}
}

// bytesBetween allows sizes from least to most. note follows least in the error.
func bytesBetween(least, most int, note string) rule[int] {
	return rule[int]{
		want:  "a size from " + bytesKind().print(least) + note + " to " + bytesKind().print(most) + ", in bytes or with KiB, MiB or GiB",
		valid: wholeBetween(least, most, note).valid,
	}
}

// anyLevel allows every level: levelKind accepts only the four with a name.
func anyLevel() rule[slog.Level] {
	words := []string{"debug", "info", "warn", "error"}
	return rule[slog.Level]{
		want:  "one of " + strings.Join(words, ", "),
		valid: func(slog.Level) bool { return true },
		words: words,
	}
}

// anyNetworks allows every list: networksKind accepts only networks.
func anyNetworks() rule[[]netip.Prefix] {
	return rule[[]netip.Prefix]{
		want:  "a comma-separated list of addresses and networks, such as 127.0.0.1,10.1.2.0/24,2001:db8::/64",
		valid: func([]netip.Prefix) bool { return true },
	}
}

// folder allows every path without a zero byte. It does not check that the path exists.
func folder() rule[string] {
	return rule[string]{
		want:  "the path of a folder",
		valid: func(v string) bool { return v != "" && !strings.ContainsRune(v, 0) },
	}
}

// file allows the same paths as folder.
func file() rule[string] {
	return rule[string]{want: "the path of a file", valid: folder().valid}
}

// teamName allows names that dmarcd.ParseTeamName returns unchanged.
func teamName() rule[string] {
	return rule[string]{
		want: "the name of a team, 1 to 100 printable characters",
		valid: func(v string) bool {
			name, err := dmarcd.ParseTeamName(v)
			return err == nil && name == v
		},
	}
}

// listenAddress allows host:port. An empty host means all addresses, port 0 a free port.
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

// hostPattern is permissive: host names on private networks may contain underscores or
// have a single label.
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

// tokenPattern matches tokens. Package auth verifies the checksum in the last six
// characters.
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
			// Special names of SQLite are not files: each connection to ":memory:"
			// would get its own database.
			return file().valid(v) && !strings.Contains(v, "://") && !keywordPattern.MatchString(v) &&
				!strings.HasPrefix(v, ":") && !strings.HasPrefix(v, "file:") && !strings.Contains(v, "?")
		},
	}
}

// pathPattern allows only unreserved characters (RFC 3986 §2.3), so that the prefix can be
// compared byte by byte.
var pathPattern = regexp.MustCompile(`^(/[0-9A-Za-z._~-]+)*/?$`)

// baseURL allows absolute URLs whose path does not collide with the other endpoints of the
// server.
func baseURL() rule[string] {
	taken := []string{"app", "healthz", "readyz", "metrics", "mcp", "tlsrpt"}
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

// origin allows values of the header field Origin (RFC 6454 §6.2), and "*" for all origins.
func origin() rule[string] {
	return rule[string]{want: "an origin", valid: func(v string) bool {
		u, err := url.Parse(v)
		return v == "*" || err == nil && isOrigin(u) && v == u.Scheme+"://"+u.Host
	}}
}

// isOrigin reports whether u is an http or https URL with a valid host and port, and
// without a user. It ignores the path.
func isOrigin(u *url.URL) bool {
	port := u.Port()
	return (u.Scheme == "http" || u.Scheme == "https") && u.User == nil && isHost(u.Hostname()) &&
		!strings.HasSuffix(u.Host, ":") && (port == "" || isPort(port, 0))
}

// domainName allows names that dmarcd.ParseName returns unchanged.
func domainName() rule[string] {
	return rule[string]{
		want: "a domain name, such as reports.example.com",
		valid: func(v string) bool {
			name, err := dmarcd.ParseName(v)
			return err == nil && name == v
		},
	}
}
