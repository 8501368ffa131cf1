package mtasts

import (
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/dns/txt"
)

// Mode is how senders treat a host that violates the policy (RFC 8461 §5).
type Mode uint8

const (
	// ModeUnstated means that the policy has no known mode.
	ModeUnstated Mode = iota
	// ModeEnforce means that senders do not deliver to it.
	ModeEnforce
	// ModeTesting means that senders deliver, and report the failure in TLS reports.
	ModeTesting
	// ModeNone means that the domain withdraws its policy.
	ModeNone
)

var modeWords = [...]string{ModeEnforce: "enforce", ModeTesting: "testing", ModeNone: "none"}

// String returns the word of the policy, "" for ModeUnstated.
func (m Mode) String() string { return modeWords[m] }

// Policy is an MTA-STS policy.
type Policy struct {
	// Text is the policy as served.
	Text string
	// Valid is true if the policy follows the grammar and has all required fields.
	Valid bool
	Mode  Mode
	// MaxAge is how long senders may cache the policy; 0 if missing or invalid.
	MaxAge time.Duration
	// MX are the valid host patterns, in the form of dns.Name; see MatchMX.
	MX []string
	// Problems lists at most 100 problems: first those of single lines in order, then
	// those of the whole policy.
	Problems []Problem
}

// Allows reports whether an MX host matches one of the patterns of the policy.
func (p Policy) Allows(host string) bool {
	for _, pattern := range p.MX {
		if MatchMX(pattern, host) {
			return true
		}
	}
	return false
}

// String returns the canonical form of the fields of p.
func (p Policy) String() string {
	var b strings.Builder
	write := func(field, value string) { b.WriteString(field + ": " + value + "\n") }
	write(fieldVersion, policyVersion)
	if p.Mode != ModeUnstated {
		write(fieldMode, p.Mode.String())
	}
	for _, pattern := range p.MX {
		write(fieldMX, pattern)
	}
	write(fieldMaxAge, strconv.FormatInt(int64(p.MaxAge/time.Second), 10))
	return b.String()
}

// MatchMX reports whether a host matches a pattern of a policy: it equals it in any
// case or, where the pattern begins with "*.", it has exactly one label in place
// of the asterisk (RFC 8461 §4.1).
func MatchMX(pattern, host string) bool {
	pattern, host = dns.Name(pattern), dns.Name(host)
	suffix, wild := strings.CutPrefix(pattern, "*.")
	if !wild {
		return host != "" && pattern == host
	}
	label, parent, _ := strings.Cut(host, ".")
	return label != "" && parent != "" && parent == suffix
}

// The fields of a policy (RFC 8461 §3.2). Their names are case-sensitive.
const (
	fieldVersion = "version"
	fieldMode    = "mode"
	fieldMaxAge  = "max_age"
	fieldMX      = "mx"

	policyVersion = "STSv1"
)

const (
	// MaxPolicySize is the maximum size of a policy, as RFC 8461 §3.3 suggests.
	MaxPolicySize = 64 << 10
	// maxAgeDigits and maxAgeSeconds bound max_age.
	maxAgeDigits  = 10
	maxAgeSeconds = 31557600
	// crampedMaxAge and shortMaxAge are the warning thresholds of max_age in seconds: RFC
	// 8461 §3.2 recommends weeks or more.
	crampedMaxAge = 7 * 24 * 60 * 60
	shortMaxAge   = 24 * 60 * 60
)

// ParsePolicy parses a policy. Every text is a policy, however broken, with its problems.
// Fields may be in any order. A text longer than MaxPolicySize is not parsed.
func ParsePolicy(text string) Policy {
	p := policyParser{policy: Policy{Text: text, Valid: true}, seen: make(map[string]bool), patterns: make(map[string]bool)}
	if len(text) > MaxPolicySize {
		p.note(true, Problem{Kind: TooLarge, Limit: MaxPolicySize})
		return p.policy
	}
	p.lines(text)
	p.finish()
	return p.policy
}

// policyParser builds a policy from its lines.
type policyParser struct {
	policy   Policy
	seen     map[string]bool
	patterns map[string]bool
}

// note adds a problem if the condition is true.
func (p *policyParser) note(condition bool, problem Problem) {
	txt.Note(&p.policy.Valid, &p.policy.Problems, condition, problem)
}

// lines parses the lines, which end in LF or CRLF. The last line ending is optional.
func (p *policyParser) lines(text string) {
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		line = strings.TrimRight(line, whitespace)
		if line == "" {
			p.note(true, Problem{Kind: EmptyLine, Line: number})
			continue
		}
		p.line(number, line)
	}
}

// line parses one "name: value". White space may follow the colon, not precede it.
func (p *policyParser) line(number int, line string) {
	name, value, ok := strings.Cut(line, ":")
	value = strings.TrimLeft(value, whitespace)
	if !ok || !txt.IsExtensionName(name) || !isPolicyValue(value) {
		p.note(true, Problem{Kind: MalformedField, Text: line, Line: number})
		return
	}
	repeated := p.seen[name]
	p.seen[name] = true
	if repeated && name != fieldMX {
		// RFC 8461 §3.2: all entries except for the first are ignored.
		p.note(true, Problem{Kind: DuplicateField, Field: name, Text: value, Line: number})
		return
	}
	valid := true
	switch name {
	case fieldVersion:
		valid = value == policyVersion
	case fieldMode:
		p.policy.Mode, valid = parseMode(value)
	case fieldMaxAge:
		valid = p.maxAge(number, value)
	case fieldMX:
		valid = p.mx(number, value)
	default:
		lower := strings.ToLower(name)
		known := slices.Contains([]string{fieldVersion, fieldMode, fieldMaxAge, fieldMX}, lower)
		p.note(known, Problem{Kind: FieldCase, Field: lower, Text: name, Line: number})
		p.note(!known, Problem{Kind: UnknownField, Field: name, Text: value, Line: number})
	}
	p.note(!valid, Problem{Kind: InvalidValue, Field: name, Text: value, Line: number})
}

// parseMode reads the value of mode, which is case-sensitive.
func parseMode(value string) (Mode, bool) {
	for _, m := range []Mode{ModeEnforce, ModeTesting, ModeNone} {
		if value == m.String() {
			return m, true
		}
	}
	return ModeUnstated, false
}

// maxAge parses max_age and reports whether it is valid.
func (p *policyParser) maxAge(number int, value string) bool {
	if len(value) > maxAgeDigits || strings.ContainsFunc(value, func(r rune) bool { return r < '0' || r > '9' }) {
		return false
	}
	seconds, err := strconv.Atoi(value)
	if err != nil {
		return false
	}
	if seconds > maxAgeSeconds {
		p.note(true, Problem{Kind: LongMaxAge, Field: fieldMaxAge, Text: value, Line: number, Count: seconds, Limit: maxAgeSeconds})
		return true
	}
	p.policy.MaxAge = time.Duration(seconds) * time.Second
	return true
}

// mx parses mx and reports whether it is valid.
func (p *policyParser) mx(number int, value string) bool {
	if !isLDHName(strings.TrimPrefix(value, "*.")) {
		return false
	}
	pattern := dns.Name(value)
	if p.patterns[pattern] {
		p.note(true, Problem{Kind: DuplicateMX, Field: fieldMX, Text: value, Line: number})
		return true
	}
	p.patterns[pattern] = true
	p.policy.MX = append(p.policy.MX, pattern)
	return true
}

// finish checks the whole policy.
func (p *policyParser) finish() {
	for _, field := range []string{fieldVersion, fieldMode, fieldMaxAge} {
		p.note(!p.seen[field], Problem{Kind: MissingField, Field: field})
	}
	withdrawn := p.policy.Mode == ModeNone
	p.note(!p.seen[fieldMX] && !withdrawn, Problem{Kind: MissingField, Field: fieldMX})
	if !p.policy.Valid || withdrawn {
		return
	}
	seconds := int(p.policy.MaxAge / time.Second)
	problem := Problem{Kind: ShortMaxAge, Field: fieldMaxAge, Count: seconds, Limit: crampedMaxAge}
	if seconds < shortMaxAge {
		problem.Limit = shortMaxAge
	}
	p.note(seconds < crampedMaxAge, problem)
}

// isPolicyValue follows sts-policy-ext-value of RFC 8461 §3.2, which is what any
// value keeps to: printable ASCII, spaces inside, and UTF-8 beyond ASCII.
func isPolicyValue(value string) bool {
	for i := range len(value) {
		if value[i] < ' ' || value[i] == 0x7f {
			return false
		}
	}
	return value != "" && utf8.ValidString(value)
}
