package bimi

// The relevant DMARC policies.
const (
	policyNone       = "none"
	policyQuarantine = "quarantine"
)

// Policy contains the relevant parts of a domain's DMARC record.
type Policy struct {
	Domain string
	// P and SP are the policies in lower case, "" if not stated. A domain without P has
	// no policy.
	P, SP string
	// Percent is the text of pct, "" if not stated.
	Percent string
	// Testing is t=y.
	Testing bool
	// Collapsed is true for a broken record, which receivers treat as p=none or ignore.
	Collapsed bool
}

// Preconditions returns the problems in DMARC policies that prevent BIMI (§7.1). The
// policy of the author domain is required, and that of its organizational domain if
// different. Testing mode and broken records are newer than the draft, which refers to
// RFC 7489; they fail here because the stated policy is not applied.
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
