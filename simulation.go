package dmarcd

import "github.com/dmarcd/dmarcd/dmarc"

// Handled counts messages by what receivers do with them.
type Handled struct{ Delivered, Quarantined, Rejected int64 }

// Simulation is what receivers would have done under a policy with the mail of a domain.
type Simulation struct {
	Domain   string
	From, To Day
	Policy   dmarc.Record
	// Record is the record to publish for the policy.
	Record string
	// Observed is what receivers did, the others what they would have done by each standard.
	Observed, RFC9989, RFC7489 Handled
	// Legitimate counts the messages of the classes yours and service; Forwarder, Unknown and
	// Spoofing those of the class of that name. Effect counts how many of each receivers of RFC 9989
	// would have quarantined or rejected.
	Legitimate, Forwarder, Unknown, Spoofing int64
	Effect
	// Senders are those with the most messages.
	Senders []SimulatedSender
}

// SimulatedSender is a sender, and how many of its messages would have been quarantined or rejected.
type SimulatedSender struct {
	Key, Name          string
	Class              Class
	Messages, Affected int64
	// Addresses is the number of its addresses. An IPv6 /64 counts as one.
	Addresses int
	// Cause explains why most of its failing messages fail, Fix what to do about it. Each may be "".
	Cause, Fix string
}
