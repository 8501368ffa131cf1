package dmarc

import (
	"context"
	"slices"

	"github.com/dmarcd/dmarcd/dns"
)

// Status tells how things stand at the domain's own name, also where the record of
// an ancestor applies.
type Status uint8

const (
	// StatusInconclusive means that a question that was needed to tell the policy
	// had no usable answer. Nothing is stated about the policy.
	StatusInconclusive Status = iota
	// StatusOK means that a usable record applies, the domain's own or, where it
	// has none, an ancestor's.
	StatusOK
	// StatusNone means that no record applies.
	StatusNone
	// StatusMultiple means that the name has several records. Receivers discard
	// them all; the record of an ancestor may apply.
	StatusMultiple
	// StatusUnusable means that the record that applies cannot be acted on.
	StatusUnusable
)

// String returns the status in one word.
func (s Status) String() string {
	switch s {
	case StatusOK:
		return "ok"
	case StatusNone:
		return "none"
	case StatusMultiple:
		return "multiple"
	case StatusUnusable:
		return "unusable"
	default:
		return "inconclusive"
	}
}

// Existence tells whether a domain exists in DNS.
type Existence uint8

const (
	// ExistenceUnknown means that it was not needed, or could not be told.
	ExistenceUnknown Existence = iota
	// Exists means that the name, or one below it, has a record of some type.
	Exists
	// Missing means NXDOMAIN.
	Missing
)

// Discovery is the outcome of policy discovery for an author domain.
//
// The policy and the organizational domain are known independently: a domain with
// a record of its own has a policy even where the names above it cannot be looked
// up.
type Discovery struct {
	// Domain is the author domain.
	Domain string
	// Status tells how things stand at Domain.
	Status Status
	// Record is the record that applies, usable or not; nil where there is none or
	// Status is StatusInconclusive.
	Record *Record
	// RecordDomain is the domain that publishes Record, "" where there is none.
	RecordDomain string
	// Policy is what Record asks for Domain. It is Unstated where there is no
	// record or it is not usable.
	Policy Policy
	// Applied is Policy after the t tag.
	Applied Policy
	// Source is the tag that supplied Policy: p, sp or np; "" where it is Unstated.
	Source string
	// Organization is the organizational domain of Domain, "" where a question
	// needed to find it was inconclusive.
	Organization string
	// Existence tells whether Domain exists, where that was asked or is plain from
	// the walk. Only a record with np makes it matter.
	Existence Existence
	// Steps holds the tree walk in order, the domain's own name first.
	Steps []Step
	// Reason says in words why Status is StatusInconclusive or Organization is
	// not known; "" otherwise.
	Reason string
}

// Queried returns the names that the tree walk asked for, in order.
func (d Discovery) Queried() []string {
	names := make([]string, len(d.Steps))
	for i, s := range d.Steps {
		names[i] = QueryName(s.Domain)
	}
	return names
}

// Discover finds the policy that applies to mail from a domain, as RFC 9989
// §4.10.1 describes. It asks at most eight questions for records, one after the
// other, and at most one more to learn whether the domain exists. A name that DNS
// cannot carry has no record and is not asked for.
func Discover(ctx context.Context, r dns.Resolver, name string) Discovery {
	name = dns.Name(name)
	d := Discovery{Domain: name}
	if !dns.ValidName(name) {
		d.Status, d.Organization = StatusNone, name
		return d
	}
	d.Steps = walk(ctx, r, name)
	d.Organization, _ = organization(name, d.Steps)
	d.Reason = d.Steps[len(d.Steps)-1].Answer.Reason
	d.Existence = impliedExistence(d.Steps[0].Answer)
	own := d.Steps[0]
	if record, ok := own.Record(); ok {
		d.apply(record, name, Itself)
		return d
	}
	if d.Organization == "" {
		return d
	}
	d.inherit(ctx, r)
	if d.Status != StatusInconclusive && len(own.Records) > 1 {
		d.Status = StatusMultiple
	}
	return d
}

// inherit takes the policy from the record of the organizational domain or, where
// that has none, of the public suffix domain above it. Records at other names on
// the way supply no policy.
func (d *Discovery) inherit(ctx context.Context, r dns.Resolver) {
	record, domain, ok := d.inherited()
	if !ok {
		d.Status = StatusNone
		return
	}
	subject := Subdomain
	if record.State == OK && record.NP != Unstated {
		if d.Existence == ExistenceUnknown {
			d.Existence, d.Reason = existence(ctx, r, d.Domain)
		}
		switch d.Existence {
		case ExistenceUnknown:
			return
		case Missing:
			subject = MissingSubdomain
		}
	}
	d.apply(record, domain, subject)
}

// inherited returns the record that applies to a domain without one of its own.
func (d *Discovery) inherited() (record Record, domain string, ok bool) {
	at := slices.IndexFunc(d.Steps, func(s Step) bool { return s.Domain == d.Organization })
	if at >= 0 {
		if record, ok = d.Steps[at].Record(); ok {
			return record, d.Organization, true
		}
	}
	// Any record but one with psd=y would have made its name, or a shorter one, the
	// organizational domain; and psd=y ends the walk.
	last := d.Steps[len(d.Steps)-1]
	record, ok = last.Record()
	return record, last.Domain, ok
}

// apply states the policy of a record.
func (d *Discovery) apply(record Record, domain string, subject Subject) {
	d.Record, d.RecordDomain = &record, domain
	d.Policy, d.Source = record.Policy(subject)
	d.Applied = record.Applied(d.Policy)
	d.Status = StatusUnusable
	if record.Usable() {
		d.Status = StatusOK
	}
}

// impliedExistence tells what the answer for _dmarc.<name> says about the name: as
// one below it exists, so does the name (RFC 8020). An alias says nothing, since a
// DNAME makes up names that are not there.
func impliedExistence(a dns.Answer) Existence {
	if len(a.Aliases) == 0 && (a.Outcome == dns.Data || a.Outcome == dns.NoData) {
		return Exists
	}
	return ExistenceUnknown
}

// existence asks whether a name exists: it does unless the answer is NXDOMAIN
// (RFC 9989 §4.7, np). The type does not matter by the rules; addresses are what
// the oddest of servers answers rightly.
func existence(ctx context.Context, r dns.Resolver, name string) (e Existence, reason string) {
	a := r.Resolve(ctx, dns.Question{Name: name, Type: dns.A})
	switch {
	case a.Outcome == dns.Inconclusive:
		return ExistenceUnknown, a.Reason
	case a.Outcome == dns.NoSuchName && len(a.Aliases) == 0:
		return Missing, ""
	default:
		// NXDOMAIN behind an alias is about the target of the alias.
		return Exists, ""
	}
}
