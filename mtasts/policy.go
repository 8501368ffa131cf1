package mtasts

import (
	"strconv"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd/dns"
)

// Mode tells what senders do with a host that does not keep the policy (RFC 8461
// §5).
type Mode uint8

const (
	// ModeUnstated means that the policy states no mode, or none that is known.
	ModeUnstated Mode = iota
	// ModeEnforce means that they do not deliver to it.
	ModeEnforce
	// ModeTesting means that they deliver, and say so in their TLS reports.
	ModeTesting
	// ModeNone means that the domain withdraws its policy.
	ModeNone
)

// String returns the word of the policy, "" for ModeUnstated.
func (m Mode) String() string {
	switch m {
	case ModeEnforce:
		return "enforce"
	case ModeTesting:
		return "testing"
	case ModeNone:
		return "none"
	default:
		return ""
	}
}

// Policy is an MTA-STS policy.
type Policy struct {
	// Text is the policy as it was served.
	Text string
	// Valid tells whether the policy keeps the grammar and has all the fields that
	// it needs.
	Valid bool
	// Mode is what senders are asked to do.
	Mode Mode
	// MaxAge is how long senders may keep the policy, 0 where it is missing or
	// invalid.
	MaxAge time.Duration
	// MX holds the valid patterns of the hosts that mail may be sent to, in the
	// form of dns.Name; see MatchMX.
	MX []string
	// Problems holds what is wrong, at most 100: first what concerns single lines
	// in their order, then what concerns the whole.
	Problems []Problem
}

// Allows reports whether a host, found as an MX record of the domain, matches one
// of the patterns of the policy.
func (p Policy) Allows(host string) bool {
	for _, pattern := range p.MX {
		if MatchMX(pattern, host) {
			return true
		}
	}
	return false
}

// String returns a policy that states the fields of p and nothing else, in one
// canonical form.
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
