package dmarc

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/publicsuffix"

	"github.com/dmarcd/dmarcd/dns"
)

// everything is the default of the pct tag.
const everything = 100

// LegacyDiscovery is what a receiver finds that follows RFC 7489.
type LegacyDiscovery struct {
	// Domain is the author domain.
	Domain string
	// Status tells how things stand; see Discovery. Several records at a name end
	// the discovery.
	Status Status
	// Record is the record that applies, read by the rules of RFC 9989; nil where
	// there is none. Only Policy and Percent follow the rules of RFC 7489.
	Record *Record
	// RecordDomain is the domain that publishes Record, "" where there is none.
	RecordDomain string
	// Policy is what the record asks for Domain, Unstated where there is no record
	// or it is not usable.
	Policy Policy
	// Percent is the share of failing mail that the policy is for (pct). The rest
	// is treated one level weaker. It is 0 where Policy is Unstated.
	Percent int
	// Organization is the registrable domain by the Public Suffix List.
	Organization string
	// Queried holds the names that were asked for, one or two.
	Queried []string
	// Reason says in words why Status is StatusInconclusive; "" otherwise.
	Reason string
}

// DiscoverLegacy finds the policy that a receiver applies that follows RFC 7489
// §6.6.3: the record of the domain itself, else that of its registrable domain,
// and no other.
func DiscoverLegacy(ctx context.Context, r dns.Resolver, name string) LegacyDiscovery {
	name = dns.Name(name)
	d := LegacyDiscovery{Domain: name, Status: StatusNone, Organization: LegacyOrganization(name)}
	if !dns.ValidName(name) {
		return d
	}
	if d.take(look(ctx, r, name)) || d.Organization == name {
		return d
	}
	d.take(look(ctx, r, d.Organization))
	return d
}

// take uses what was found at one name. It reports false where that was nothing,
// so that the discovery goes on.
func (d *LegacyDiscovery) take(s Step) bool {
	d.Queried = append(d.Queried, QueryName(s.Domain))
	found := slices.DeleteFunc(slices.Clone(s.Records), func(r Record) bool { return !isLegacyRecord(r) })
	switch {
	case s.Answer.Outcome == dns.Inconclusive:
		d.Status, d.Reason = StatusInconclusive, s.Answer.Reason
	case len(found) == 0:
		return false
	case len(found) > 1:
		d.Status = StatusMultiple
	default:
		d.apply(found[0], s.Domain)
	}
	return true
}

// apply states the policy of a record.
func (d *LegacyDiscovery) apply(record Record, domain string) {
	d.Record, d.RecordDomain = &record, domain
	switch legacyState(record) {
	case OK:
		d.Status, d.Policy, d.Percent = StatusOK, record.P, legacyPercent(record)
		if domain != d.Domain && record.SP != Unstated {
			d.Policy = record.SP
		}
	case ActsAsNone:
		d.Status, d.Policy, d.Percent = StatusOK, None, everything
	default:
		d.Status = StatusUnusable
	}
}

// isLegacyRecord reports whether the version is followed by a semicolon, without
// which RFC 7489 §6.4 knows no record.
func isLegacyRecord(r Record) bool {
	_, separated, _ := cutVersion(r.Text)
	return separated
}

// legacyState judges a record by RFC 7489 §6.3 and §6.6.3: p must be the first tag
// after the version, and np is not known, so that its value cannot do harm.
func legacyState(r Record) State {
	if r.State == Void {
		return Void
	}
	first := len(r.Tags) > 0 && strings.EqualFold(r.Tags[0].Name, tagP)
	_, hasSP := legacyTag(r, tagSP)
	valid := first && r.P != Unstated && (!hasSP || r.SP != Unstated)
	return state(valid, false, len(r.RUA) > 0)
}

// legacyPercent reads pct, for which an invalid value means the default.
func legacyPercent(r Record) int {
	value, _ := legacyTag(r, "pct")
	percent, err := strconv.ParseUint(value, 10, 8)
	if err != nil || percent > everything {
		return everything
	}
	return int(percent)
}

// legacyTag returns the value of the first tag of that name.
func legacyTag(r Record, name string) (value string, ok bool) {
	for _, t := range r.Tags {
		if strings.EqualFold(t.Name, name) {
			return t.Value, true
		}
	}
	return "", false
}

// LegacyOrganization returns the organizational domain of a name by the Public
// Suffix List (RFC 7489 §3.2). A public suffix stands for itself.
func LegacyOrganization(name string) string {
	name = dns.Name(name)
	organization, err := publicsuffix.EffectiveTLDPlusOne(name)
	if err != nil {
		return name
	}
	return organization
}

// IsPublicSuffix reports whether others register names directly below a name, by the
// Public Suffix List. RFC 9989 wants psd=y in the record of such a name.
func IsPublicSuffix(name string) bool {
	name = dns.Name(name)
	suffix, _ := publicsuffix.PublicSuffix(name)
	return suffix == name
}

// LegacyAlign tells whether an authenticated identifier is aligned with the author
// domain for a receiver that follows RFC 7489 §3.1.
func LegacyAlign(author, identifier string, mode Mode) bool {
	author, identifier = dns.Name(author), dns.Name(identifier)
	if mode == Strict {
		return author == identifier
	}
	return LegacyOrganization(author) == LegacyOrganization(identifier)
}
