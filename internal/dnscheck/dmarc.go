package dnscheck

import (
	"context"
	"slices"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/facts"
)

// checkDMARC records the policy that receivers of RFC 9989 find, and discovers the one that receivers
// of RFC 7489 find.
func (e *examination) checkDMARC(ctx context.Context, found dmarc.Discovery) {
	f := &e.facts.DMARC
	f.Status, f.Reason = found.Status.String(), found.Reason
	f.RecordDomain, f.OrganizationalDomain = found.RecordDomain, found.Organization
	f.Policy, f.Applied, f.Source = found.Policy.String(), found.Applied.String(), found.Source
	f.Queries = found.Queried()
	if len(found.Steps) > 0 {
		e.ownName(ctx, f, found.Steps[0])
	}
	if apex := e.dns.Resolve(ctx, dns.Question{Name: e.Domain, Type: dns.TXT}); apex.Outcome == dns.Data {
		for _, text := range apex.Texts() {
			if _, ok := dmarc.Parse(text); ok {
				f.ApexRecords = append(f.ApexRecords, storable(text))
			}
		}
	}
	e.checkLegacy(ctx)
	if f.OrganizationalDomain != "" {
		// A registrable domain cannot be above the one of the Public Suffix List, unless
		// it declares itself with psd=n.
		f.OrganizationIsSuffix = above(f.OrganizationalDomain, f.Legacy.OrganizationalDomain)
	}
	f.RecordIsSuffix = above(f.RecordDomain, f.Legacy.OrganizationalDomain)
	if found.Record == nil {
		return
	}
	recordFacts(f, *found.Record)
	e.checkDestinations(ctx, *found.Record)
}

// ownName records what is published at the domain's own name.
func (e *examination) ownName(ctx context.Context, f *facts.DMARC, step dmarc.Step) {
	f.Aliases = step.Answer.Aliases
	empty := step.Answer.Outcome == dns.NoData || step.Answer.Outcome == dns.NoSuchName
	f.Dangling = len(f.Aliases) > 0 && empty && !e.wildcardAlias(ctx, step.Answer)
	for _, r := range step.Records {
		f.OwnRecords = append(f.OwnRecords, storable(r.Text))
	}
	for _, text := range step.Others {
		f.Misses = append(f.Misses, facts.Problem{Kind: string(dmarc.ClassifyMiss(text)), At: step.Domain, Text: storable(text)})
	}
}

// wildcardAlias reports whether the aliases in an answer come from a wildcard and
// therefore exist for every name below the domain.
func (e *examination) wildcardAlias(ctx context.Context, a dns.Answer) bool {
	if len(a.Aliases) == 0 {
		return false
	}
	unused := e.dns.Resolve(ctx, dns.Question{Name: unusedLabel + "." + e.Domain, Type: dns.TXT})
	return slices.Equal(a.Aliases, unused.Aliases)
}

// recordFacts records the facts of the record that applies.
func recordFacts(f *facts.DMARC, r dmarc.Record) {
	f.Record, f.State = storable(r.Text), r.State.String()
	f.P, f.SP, f.NP = r.P.String(), r.SP.String(), r.NP.String()
	f.PSD, f.Testing = r.PSD.String(), r.Testing
	for _, tag := range r.Tags {
		if f.Percent == "" && tag.Name == "pct" {
			f.Percent = storable(tag.Value)
		}
	}
	for _, p := range r.Problems {
		f.Problems = append(f.Problems, facts.Problem{Kind: string(p.Kind), At: f.RecordDomain, Part: p.Tag, Text: storable(p.Text)})
	}
}

// checkLegacy discovers the policy as RFC 7489 describes.
func (e *examination) checkLegacy(ctx context.Context) {
	found := dmarc.DiscoverLegacy(ctx, e.dns, e.Domain)
	e.facts.DMARC.Legacy = facts.Legacy{
		Status: found.Status.String(), RecordDomain: found.RecordDomain, OrganizationalDomain: found.Organization,
		Policy: found.Policy.String(),
	}
}

// above reports whether name is a proper ancestor of other.
func above(name, other string) bool {
	return name != "" && name != other && dmarcd.Covers(name, other)
}

// checkDestinations checks whether reports can reach their destinations.
func (e *examination) checkDestinations(ctx context.Context, record dmarc.Record) {
	f := &e.facts.DMARC
	for _, d := range dmarc.Destinations(ctx, e.dns, f.RecordDomain, record) {
		f.Destinations = append(f.Destinations, facts.Destination{
			Tag: d.Tag, URI: storable(d.URI.Text), Address: storable(d.URI.Address), Host: d.URI.Host,
			Consent: d.Consent.String(), Queried: d.Queried,
		})
	}
	// A record may list a hundred hosts to keep us busy. Ten are enough for any real
	// record.
	const most = 10
	mail := map[string]string{}
	for i := range f.Destinations {
		d := &f.Destinations[i]
		if d.Address == "" {
			continue
		}
		if _, known := mail[d.Host]; !known && len(mail) < most {
			mail[d.Host] = e.takesMail(ctx, d.Host)
		}
		d.Mail = mail[d.Host]
	}
}

// takesMail returns whether a host accepts mail (RFC 5321 §5.1, RFC 7505): yes, no or
// unknown.
func (e *examination) takesMail(ctx context.Context, host string) string {
	mx := e.dns.Resolve(ctx, dns.Question{Name: host, Type: dns.MX})
	switch mx.Outcome {
	case dns.Data:
		if slices.ContainsFunc(mx.Records, func(r dns.Record) bool { return r.Host != "" }) {
			return "yes"
		}
		return "no"
	case dns.NoSuchName:
		return "no"
	case dns.Inconclusive:
		return "unknown"
	}
	answer := "no"
	for _, t := range []dns.Type{dns.A, dns.AAAA} {
		switch e.dns.Resolve(ctx, dns.Question{Name: host, Type: t}).Outcome {
		case dns.Data:
			return "yes"
		case dns.Inconclusive:
			answer = "unknown"
		}
	}
	return answer
}
