package bimi

// The policies of DMARC that matter here.
const (
	policyNone       = "none"
	policyQuarantine = "quarantine"
)

// Policy is what BIMI wants to know of the DMARC record of a domain.
type Policy struct {
	// Domain is the domain that the record is for.
	Domain string
	// P and SP are the policies in lower case, "" where they are not stated. A
	// domain without P has no policy.
	P, SP string
	// Percent is the value of pct as it was written, "" where it is not stated.
	Percent string
	// Testing is t=y.
	Testing bool
	// Collapsed reports that the record is broken, so that receivers take it for
	// p=none or do without DMARC.
	Collapsed bool
}

// Preconditions tells what in the DMARC policies stands in the way of BIMI (§7.1).
// The policy of the author domain must be given, and that of its organizational
// domain where it is another. Testing mode and broken records came after the
// draft's rules, which name RFC 7489; they fail here because the policy is not
// applied as it stands.
func Preconditions(policies ...Policy) []Problem {
	var found problems
	for _, p := range policies {
		switch {
		case p.Collapsed:
			found.note(true, PolicyCollapsed, p.Domain, p.P)
		case p.P == "":
			found.note(true, PolicyMissing, p.Domain, "")
		}
		found.note(p.P == policyNone, PolicyNone, p.Domain, p.P)
		found.note(p.SP == policyNone, SubdomainPolicyNone, p.Domain, p.SP)
		found.note(p.P == policyQuarantine && p.Percent != "" && p.Percent != "100", PartialQuarantine, p.Domain, p.Percent)
		found.note(p.Testing, PolicyTesting, p.Domain, p.P)
	}
	return found
}
