package demo

import (
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
)

// domain is a domain of the scenario. Changes during the year are chapters, the oldest
// first, each of which applies until the next.
type domain struct {
	name    string
	team    string
	purpose dmarcd.Purpose
	parked  bool
	streams []stream

	policies []policy
	spf      []sending
	keys     []key
	// delegated are names below the domain that a mailNetwork uses as envelope sender.
	delegated map[string]*mailNetwork

	// mx holds the hosts that take its mail, none where the domain takes no mail.
	mx []*mailNetwork
	// signed says that the zone is signed with DNSSEC, and its hosts have TLSA
	// records.
	signed bool
	// tlsReports is since how many days it asks for TLS reports, 0 if it does not.
	tlsReports int
	// failureReports says that it asks for failure reports.
	failureReports bool
}

// policy is the DMARC policy from a day on.
type policy struct {
	since   int // days before the present
	p       aggregate.Policy
	sp      aggregate.Policy // "" for the same
	testing bool
}

// sending is the SPF record from a day on.
type sending struct {
	since   int
	ip      []*mailNetwork // whose networks are listed
	include []*mailNetwork // whose records are included
	terms   string         // what else is in the record, with a blank behind it
	all     string
}

// key is a DKIM key that is published from one day until another.
type key struct {
	selector     string
	since, until int // until is 0 where it still is
	bits         int
}

// at returns the chapter that a day is in.
func at[C any](chapters []C, since func(C) int, ago int) C {
	found := chapters[0]
	for _, chapter := range chapters {
		if since(chapter) >= ago {
			found = chapter
		}
	}
	return found
}

func (d *domain) policyAt(ago int) policy {
	return at(d.policies, func(p policy) int { return p.since }, ago)
}

func (d *domain) sendingAt(ago int) sending {
	return at(d.spf, func(s sending) int { return s.since }, ago)
}

// published reports whether there is a key under the selector on a day.
func (d *domain) published(selector string, ago int) bool {
	return slices.ContainsFunc(d.keys, func(k key) bool { return k.selector == selector && k.there(ago) })
}

func (k key) there(ago int) bool { return ago <= k.since && (k.until == 0 || ago > k.until) }

// signs reports whether mail is signed under the selector on a day: from when its key
// was first published on, even where it was taken away later.
func (d *domain) signs(selector string, ago int) bool {
	return slices.ContainsFunc(d.keys, func(k key) bool { return k.selector == selector && ago <= k.since })
}

// turns returns the days on which the records of the domain changed.
func (d *domain) turns() []int {
	var agos []int
	for _, p := range d.policies {
		agos = append(agos, p.since)
	}
	for _, s := range d.spf {
		agos = append(agos, s.since)
	}
	for _, k := range d.keys {
		agos = append(agos, k.since, k.until)
	}
	agos = append(agos, d.tlsReports)
	return slices.DeleteFunc(agos, func(ago int) bool { return ago == 0 })
}

// applies returns what the policy asks for mail of an author domain.
func (p policy) applies(d *domain, from string) aggregate.Policy {
	if from != d.name && p.sp != "" {
		return p.sp
	}
	return p.p
}

// record returns the DMARC record of a day.
func (d *domain) record(ago int, address string) string {
	p := d.policyAt(ago)
	var b strings.Builder
	b.WriteString("v=DMARC1; p=" + string(p.p))
	if p.sp != "" {
		b.WriteString("; sp=" + string(p.sp))
	}
	if p.testing {
		b.WriteString("; t=y")
	}
	b.WriteString("; rua=mailto:" + address)
	if d.failureReports {
		b.WriteString("; ruf=mailto:" + address + "; fo=1")
	}
	return b.String()
}

// record returns the text of the SPF record.
func (s sending) record() string {
	var b strings.Builder
	b.WriteString("v=spf1 ")
	for _, h := range s.ip {
		b.WriteString("ip4:" + h.v4.String() + " ")
		if h.v6.IsValid() {
			b.WriteString("ip6:" + h.v6.String() + " ")
		}
	}
	b.WriteString(s.terms)
	for _, h := range s.include {
		b.WriteString("include:" + h.spfName() + " ")
	}
	return b.String() + s.all
}

// spfResult returns the SPF result of mail from a mailNetwork with an envelope sender.
func (d *domain) spfResult(from *mailNetwork, envelope string, ago int) aggregate.Result {
	switch {
	case envelope == d.name:
		return d.sendingAt(ago).evaluate(from)
	case envelope == from.envelope(), d.delegated[envelope] == from:
		return aggregate.ResultPass
	default:
		return aggregate.ResultNone // there is no record
	}
}

// maxLookups is how many terms that ask the DNS an SPF record may have in all (RFC
// 7208 §4.6.4).
const maxLookups = 10

// evaluate returns the SPF result of mail from a mailNetwork with the domain as envelope
// sender.
func (s sending) evaluate(from *mailNetwork) aggregate.Result {
	if slices.Contains(s.ip, from) {
		return aggregate.ResultPass // before any question is asked
	}
	lookups := len(strings.Fields(s.terms))
	for _, h := range s.include {
		for _, asked := range h.spfNames() {
			if lookups++; lookups > maxLookups {
				return aggregate.ResultPermerror
			}
			if h == from && asked.holds {
				return aggregate.ResultPass
			}
		}
	}
	if s.all == "-all" {
		return aggregate.ResultFail
	}
	return aggregate.ResultSoftfail
}
