package demo

import "github.com/dmarcd/dmarcd/aggregate"

// receiver is a mail receiver of the scenario that sends reports.
type receiver struct {
	name    string // as it calls itself
	domain  string
	share   float64 // of all mail that goes to receivers which report
	method  string  // of discovery
	trusts  bool    // delivers what mailing lists and forwarders it knows have broken
	lenient bool    // quarantines some of what is to be rejected
	// failures and tls select which other reports it sends.
	failures, tls bool
}

// receivers are all of them, the biggest first.
var receivers = []receiver{
	{name: "Bigmail", domain: "bigmail.example", share: 0.41, method: "treewalk", trusts: true, tls: true},
	{name: "Corpmail Cloud", domain: "corpmail.example", share: 0.24, method: "psl", lenient: true, tls: true},
	{name: "mailbox-host.example", domain: "mailbox-host.example", share: 0.13, method: "treewalk", trusts: true, failures: true},
	{name: "Webpost", domain: "webpost.example", share: 0.09, method: "psl"},
	{name: "Telco Mail", domain: "telco.example", share: 0.06, method: "psl", lenient: true},
	{name: "University of Somewhere", domain: "campus.example", share: 0.04, method: "treewalk", trusts: true, failures: true},
	{name: "smallhost.example", domain: "smallhost.example", share: 0.03, method: "treewalk"},
}

// override returns what a receiver does instead of what the policy asks for, and why;
// it is false where it does as it is asked. dice is a random number below 1.
func (r *receiver) override(s *stream, asked aggregate.Policy, dice float64) (aggregate.Policy, aggregate.Reason, bool) {
	switch {
	case asked == aggregate.PolicyNone:
		return asked, aggregate.Reason{}, false
	case r.trusts && s.list:
		return aggregate.PolicyNone, aggregate.Reason{Type: "mailing_list", Comment: "arc=pass"}, true
	case r.trusts && s.forwarded:
		return aggregate.PolicyNone, aggregate.Reason{Type: "trusted_forwarder"}, true
	case r.lenient && asked == aggregate.PolicyReject && dice < 0.2:
		return aggregate.PolicyQuarantine, aggregate.Reason{Type: "local_policy", Comment: "not sure enough to reject"}, true
	default:
		return asked, aggregate.Reason{}, false
	}
}
