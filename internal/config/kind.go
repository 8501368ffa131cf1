package config

import (
	"log/slog"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
)

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
			d, err := time.ParseDuration(text)
			return d, err == nil
		},
		print: printDuration,
	}
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
