package mtasts

import (
	"strconv"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd/dns"
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
