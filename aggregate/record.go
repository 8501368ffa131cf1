package aggregate

import "net/netip"

// Record is one row of a report: messages from one address with the same results. Domains
// are in lower case without a trailing dot.
type Record struct {
	// Addr is the source address, the zero Addr if it is invalid. IPv4-mapped addresses
	// are IPv4, and there is no zone.
	Addr netip.Addr
	// Source is Addr in canonical form, or the original text if it is invalid.
	Source string
	// Count is the number of messages, from 0 to 2^53-1.
	Count int64

	// Disposition is what the receiver did with the messages.
	Disposition Policy
	// DKIM and SPF are the aligned results (policy_evaluated). They decide whether the
	// messages are compliant.
	DKIM, SPF Result
	// Reasons explain why the receiver did not apply the policy.
	Reasons []Reason

	HeaderFrom   string
	EnvelopeFrom string
	EnvelopeTo   string

	// DKIMResults and SPFResults are the authentication results, aligned or not
	// (auth_results).
	DKIMResults []DKIMResult
	SPFResults  []SPFResult

	// Disagrees is true if DKIMResults, SPFResults and alignment according to the Public
	// Suffix List lead to a different result than Compliant. It is a hint: the receiver
	// may use another organizational domain. It is false without results, or if the
	// policy follows the records.
	Disagrees bool
}

// Compliant reports whether the messages pass DMARC, as reported by the receiver.
func (r Record) Compliant() bool {
	return r.DKIM.Known() == ResultPass || r.SPF.Known() == ResultPass
}

// Reason explains why the disposition differs from the policy.
type Reason struct {
	// Type is a keyword of RFC 7489 or RFC 9990, or other text of the reporter.
	Type    string
	Comment string
}

// DKIMResult is the result of one DKIM signature.
type DKIMResult struct {
	Domain   string
	Selector string
	Result   Result
	// HumanResult is a remark of the reporter.
	HumanResult string
}

// SPFResult is the result of one SPF check.
type SPFResult struct {
	Domain string
	// Scope is "mfrom", "helo" or other text of the reporter; "" means mfrom.
	Scope  string
	Result Result
	// HumanResult is a remark of the reporter.
	HumanResult string
}

// TextBytes returns the size of the texts of all results and reasons.
func (r *Record) TextBytes() (sum int) {
	for i := range r.Reasons {
		sum += r.Reasons[i].size()
	}
	for i := range r.DKIMResults {
		sum += r.DKIMResults[i].size()
	}
	for i := range r.SPFResults {
		sum += r.SPFResults[i].size()
	}
	return sum
}
