package aggregate

import "net/netip"

// Record is one row of a report: messages from one address with one outcome. Its
// domains are in lower case without a trailing dot.
type Record struct {
	// Addr is the address that the messages came from: IPv4 where it is an
	// IPv4-mapped one, without a zone, and the zero Addr where it cannot be read.
	Addr netip.Addr
	// Source is Addr in canonical form, or the text as it stands where that is no
	// address.
	Source string
	// Count is the number of messages, from 0 to 2^53-1.
	Count int64

	// Disposition is what the receiver did with the messages.
	Disposition Policy
	// DKIM and SPF are the results with alignment (policy_evaluated). They decide
	// whether the messages are compliant.
	DKIM, SPF Result
	// Reasons says why the receiver did not do what the policy asks for.
	Reasons []Reason

	HeaderFrom   string
	EnvelopeFrom string
	EnvelopeTo   string

	// DKIMResults and SPFResults are what was authenticated, aligned or not
	// (auth_results).
	DKIMResults []DKIMResult
	SPFResults  []SPFResult

	// Disagrees reports whether DKIMResults, SPFResults and alignment by the Public
	// Suffix List give another compliance than Compliant. It is a hint: the
	// receiver may know another organizational domain. It is false where there is
	// nothing to evaluate: no results, or a policy that follows the records.
	Disagrees bool
}

// Compliant reports whether the messages passed DMARC, by the word of the
// receiver.
func (r Record) Compliant() bool {
	return r.DKIM.Known() == ResultPass || r.SPF.Known() == ResultPass
}

// Reason is one reason for another disposition than the policy's.
type Reason struct {
	// Type is a word of RFC 7489 or RFC 9990, or what the reporter wrote instead.
	Type    string
	Comment string
}

// DKIMResult is the result of one DKIM signature.
type DKIMResult struct {
	Domain   string
	Selector string
	Result   Result
	// HumanResult is the reporter's remark.
	HumanResult string
}

// SPFResult is the result of one SPF check.
type SPFResult struct {
	Domain string
	// Scope is "mfrom", "helo", what the reporter wrote instead, or "", which stands
	// for mfrom.
	Scope  string
	Result Result
	// HumanResult is the reporter's remark.
	HumanResult string
}
