package aggregate

import (
	"net/netip"
	"strconv"
	"strings"
	"time"
	"unicode"
)

const (
	// latestSeconds is where a number of seconds ends (the year 5138) and a number
	// of milliseconds (from 1973 on) begins.
	latestSeconds = 100_000_000_000
	millisecond   = 1000
	// countBits holds the sign and the 53 bits that every reader of JSON knows
	// exactly.
	countBits = 54
)

// time reads one end of the time range: seconds since 1970 by the specifications,
// also with decimals, in milliseconds, or as a date of RFC 3339. What cannot be
// read counts as absent.
func (r *Reader) time(n node, value string) int64 {
	whole, fraction, hasFraction := strings.Cut(value, ".")
	seconds, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || seconds < 0 || strings.Trim(fraction, "0123456789") != "" {
		return r.timeText(n, value)
	}
	if seconds > latestSeconds {
		r.quirks.note(TimeMilliseconds)
		seconds /= millisecond
	}
	if seconds > latestSeconds {
		return r.timeUnreadable(n)
	}
	r.quirks.noteIf(hasFraction, TimeFraction)
	return seconds
}

func (r *Reader) timeText(n node, value string) int64 {
	date, err := time.Parse(time.RFC3339, value)
	if err != nil || date.Unix() < 0 || date.Unix() > latestSeconds {
		return r.timeUnreadable(n)
	}
	r.quirks.note(TimeText)
	return date.Unix()
}

func (r *Reader) timeUnreadable(n node) int64 {
	r.seen &^= 1 << n
	return 0
}

// domain puts a domain into the form of dns.Name. Some reporters give a whole
// mail address, of which the domain is kept.
func (r *Reader) domain(value string) string {
	name := value
	for i := range len(name) {
		if c := name[i]; c >= 'A' && c <= 'Z' || c == '@' {
			break
		} else if i == len(name)-1 && c != '.' {
			return name // the usual case
		}
	}
	name = lowerASCII(name)
	r.quirks.noteIf(name != value, DomainCase)
	plain := trimDomain(name, ".")
	if _, host, ok := cutLast(plain, '@'); ok {
		if host = trimDomain(strings.TrimSpace(host), ".>"); host != "" {
			plain = host
		}
	}
	r.quirks.noteIf(plain != name, DomainForm)
	return plain
}

// trimDomain cuts the given characters and blanks off the end.
func trimDomain(name, cutset string) string {
	return strings.TrimRightFunc(name, func(c rune) bool { return unicode.IsSpace(c) || strings.ContainsRune(cutset, c) })
}

func cutLast(s string, separator byte) (before, after string, ok bool) {
	if i := strings.LastIndexByte(s, separator); i >= 0 {
		return s[:i], s[i+1:], true
	}
	return s, "", false
}

// lowerASCII leaves characters beyond ASCII alone: what is lower case for them
// is a question for IDNA.
func lowerASCII(s string) string {
	return strings.Map(func(c rune) rune {
		if c >= 'A' && c <= 'Z' {
			return c + 'a' - 'A'
		}
		return c
	}, s)
}

// address reads a source address, also in brackets, with a zone, or behind the
// "IPv6:" of an address literal, and returns it with its canonical form.
func (r *Reader) address(text string) (netip.Addr, string) {
	addr, err := netip.ParseAddr(text)
	if err == nil && addr.Is4() {
		return addr, text // there is only one way to write it
	}
	if err != nil {
		bare := strings.Trim(text, "[]")
		if len(bare) > len("ipv6:") && strings.EqualFold(bare[:len("ipv6:")], "ipv6:") {
			bare = bare[len("ipv6:"):]
		}
		if addr, err = netip.ParseAddr(strings.TrimSpace(bare)); err != nil {
			r.quirks.note(SourceIPUnreadable)
			return netip.Addr{}, text
		}
	}
	addr = addr.Unmap().WithZone("")
	r.scratch = addr.AppendTo(r.scratch[:0])
	if string(r.scratch) == text {
		return addr, text
	}
	r.quirks.note(SourceIPForm)
	return addr, r.interned(r.scratch)
}

// count reads a number of messages, and notes why it cannot.
func (r *Reader) count(text string) (int64, bool) {
	if text == "" {
		r.quirks.note(CountMissing)
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, countBits)
	if err != nil || n < 0 {
		r.quirks.note(CountInvalid)
		return 0, false
	}
	return n, true
}
