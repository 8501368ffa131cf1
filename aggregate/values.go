package aggregate

import (
	"net/netip"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dmarcd/dmarcd/internal/reporttext"
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
// also with decimals, in milliseconds, or as a date in one of the usual forms. What
// cannot be read counts as absent.
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
	date, _, ok := reporttext.Time(value)
	if !ok || date.Unix() < 0 || date.Unix() > latestSeconds {
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
// mail address, of which the domain is kept, or a name in U-labels, which DNS and
// the teams that own it do not know.
func (r *Reader) domain(value string) string {
	name := value
	for i := range len(name) {
		if c := name[i]; c >= 'A' && c <= 'Z' || c == '@' || c >= utf8.RuneSelf {
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
	labels := reporttext.ALabels(plain)
	r.quirks.noteIf(labels != plain, DomainULabels)
	return labels
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

// address reads a source address in one of the usual forms, and returns it with its
// canonical form.
func (r *Reader) address(text string) (netip.Addr, string) {
	addr, err := netip.ParseAddr(text)
	if err == nil && addr.Is4() {
		return addr, text // there is only one way to write it
	}
	if err == nil {
		addr = addr.Unmap().WithZone("")
	} else {
		var ok bool
		if addr, ok = reporttext.Address(text); !ok {
			r.quirks.note(SourceIPUnreadable)
			return netip.Addr{}, text
		}
	}
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
	if err != nil {
		n, err = strconv.ParseInt(plainNumber(text), 10, countBits)
		r.quirks.noteIf(err == nil && n >= 0, CountForm)
	}
	if err != nil || n < 0 {
		r.quirks.note(CountInvalid)
		return 0, false
	}
	return n, true
}

// plainNumber returns a whole number without a fraction of zeros and without the
// commas between groups of three digits. Other texts stay as they are.
func plainNumber(text string) string {
	whole, fraction, _ := strings.Cut(text, ".")
	if strings.Trim(fraction, "0") != "" {
		return text
	}
	const group = 3
	groups := strings.Split(whole, ",")
	for i, digits := range groups {
		if i > 0 && len(digits) != group || i == 0 && len(groups) > 1 && (digits == "" || len(digits) > group) {
			return text
		}
	}
	return strings.Join(groups, "")
}
