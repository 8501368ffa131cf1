package aggregate

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dmarcd/dmarcd/internal/reporttext"
)

// Policy is a requested policy or an applied disposition: one of the keywords below, or
// other text of the reporter.
type Policy string

const (
	PolicyNone       Policy = "none"
	PolicyQuarantine Policy = "quarantine"
	PolicyReject     Policy = "reject"
	// PolicyPass is only a disposition: the messages passed under an enforcing policy
	// (RFC 9990).
	PolicyPass Policy = "pass"
)

// Result is an authentication result: one of the keywords below, an alias in lower case,
// or other text of the reporter.
type Result string

// The results of RFC 8601 §2.7.
const (
	ResultNone      Result = "none"
	ResultPass      Result = "pass"
	ResultFail      Result = "fail"
	ResultSoftfail  Result = "softfail"
	ResultNeutral   Result = "neutral"
	ResultPolicy    Result = "policy"
	ResultTemperror Result = "temperror"
	ResultPermerror Result = "permerror"
)

// Known resolves an alias. It returns "" for unknown keywords.
func (r Result) Known() Result {
	if slices.Contains(authWords, string(r)) {
		return r
	}
	return aliases[string(r)]
}

// aliases are keywords of older specifications and of some software.
var aliases = map[string]Result{
	"hardfail": ResultFail,
	"unknown":  ResultTemperror,
	"error":    ResultPermerror,
}

// The keywords of the elements.
var (
	policyWords      = []string{"none", "quarantine", "reject"}
	dispositionWords = []string{"none", "quarantine", "reject", "pass"}
	modeWords        = []string{"r", "s"}
	testingWords     = []string{"n", "y"}
	discoveryWords   = []string{"psl", "treewalk"}
	evaluatedWords   = []string{"pass", "fail"}
	authWords        = []string{"pass", "fail", "none", "softfail", "neutral", "policy", "temperror", "permerror"}
	scopeWords       = []string{"mfrom", "helo"}
	reasonWords      = []string{
		"forwarded", "sampled_out", "trusted_forwarder", "mailing_list", "local_policy", "other", "policy_test_mode",
	}
)

// word normalizes a keyword and notes deviations. An unknown keyword is returned
// unchanged.
func (t *tally) word(value string, vocabulary []string) string {
	if value == "" || slices.Contains(vocabulary, value) {
		return value
	}
	for _, known := range vocabulary {
		if strings.EqualFold(value, known) {
			t.Note(ValueCase)
			return known
		}
	}
	t.Note(ValueUnknown)
	return value
}

// result is word for the results in auth_results, which have aliases.
func (t *tally) result(value string) Result {
	if slices.Contains(authWords, value) {
		return Result(value)
	}
	if _, ok := aliases[strings.ToLower(value)]; ok {
		t.Note(ValueAlias)
		return Result(strings.ToLower(value))
	}
	return Result(t.word(value, authWords))
}

const (
	// latestSeconds is in the year 5138. Greater numbers are milliseconds.
	latestSeconds = 100_000_000_000
	millisecond   = 1000
	// countBits is the sign and 53 bits, which are exact in JSON.
	countBits = 54
)

// time parses one end of the period: seconds since 1970 as specified, or with decimals,
// in milliseconds, or as a date. Invalid times are treated as absent.
func (r *Reader) time(n node, value string) int64 {
	whole, fraction, hasFraction := strings.Cut(value, ".")
	seconds, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || seconds < 0 || strings.Trim(fraction, "0123456789") != "" {
		return r.timeText(n, value)
	}
	if seconds > latestSeconds {
		r.quirks.Note(TimeMilliseconds)
		seconds /= millisecond
	}
	if seconds > latestSeconds {
		return r.timeUnreadable(n)
	}
	r.quirks.NoteIf(hasFraction, TimeFraction)
	return seconds
}

func (r *Reader) timeText(n node, value string) int64 {
	date, _, ok := reporttext.Time(value)
	if !ok || date.Unix() < 0 || date.Unix() > latestSeconds {
		return r.timeUnreadable(n)
	}
	r.quirks.Note(TimeText)
	return date.Unix()
}

func (r *Reader) timeUnreadable(n node) int64 {
	r.seen &^= 1 << n
	return 0
}

// domain normalizes a domain like dns.Name. Of an email address it returns the domain,
// and it converts U-labels to A-labels.
func (r *Reader) domain(value string) string {
	name := value
	for i := range len(name) {
		if c := name[i]; c >= 'A' && c <= 'Z' || c == '@' || c >= utf8.RuneSelf {
			break
		} else if i == len(name)-1 && c != '.' {
			return name // the usual case
		}
	}
	name = reporttext.LowerASCII(name)
	r.quirks.NoteIf(name != value, DomainCase)
	plain := trimDomain(name, ".")
	if _, host, ok := cutLast(plain, '@'); ok {
		if host = trimDomain(strings.TrimSpace(host), ".>"); host != "" {
			plain = host
		}
	}
	r.quirks.NoteIf(plain != name, DomainForm)
	labels := reporttext.ALabels(plain)
	r.quirks.NoteIf(labels != plain, DomainULabels)
	return labels
}

// trimDomain trims the given characters and blanks at the end.
func trimDomain(name, cutset string) string {
	return strings.TrimRightFunc(name, func(c rune) bool { return unicode.IsSpace(c) || strings.ContainsRune(cutset, c) })
}

func cutLast(s string, separator byte) (before, after string, ok bool) {
	if i := strings.LastIndexByte(s, separator); i >= 0 {
		return s[:i], s[i+1:], true
	}
	return s, "", false
}

// address parses a source address in any common format, and returns it with its canonical
// form.
func (r *Reader) address(text string) (netip.Addr, string) {
	addr, err := netip.ParseAddr(text)
	if err == nil && addr.Is4() {
		return addr, text // IPv4 has only one form
	}
	if err == nil {
		addr = addr.Unmap().WithZone("")
	} else {
		var ok bool
		if addr, ok = reporttext.Address(text); !ok {
			r.quirks.Note(SourceIPUnreadable)
			return netip.Addr{}, text
		}
	}
	r.scratch = addr.AppendTo(r.scratch[:0])
	if string(r.scratch) == text {
		return addr, text
	}
	r.quirks.Note(SourceIPForm)
	return addr, r.interned(r.scratch)
}

// count parses a number of messages. It notes a quirk if it is missing or invalid.
func (r *Reader) count(text string) (int64, bool) {
	if text == "" {
		r.quirks.Note(CountMissing)
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, countBits)
	if err != nil {
		n, err = strconv.ParseInt(plainNumber(text), 10, countBits)
		r.quirks.NoteIf(err == nil && n >= 0, CountForm)
	}
	if err != nil || n < 0 {
		r.quirks.Note(CountInvalid)
		return 0, false
	}
	return n, true
}

// plainNumber removes a fraction of zeros, and commas between groups of three digits.
// Other texts are returned unchanged.
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
