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

// LegacyDiscovery is the result of policy discovery under RFC 7489.
type LegacyDiscovery struct {
	// Domain is the author domain.
	Domain string
	// Status is as in Discovery. Several records at a name end the discovery.
	Status Status
	// Record is the applicable record, parsed by the rules of RFC 9989; nil if there is
	// none. Only Policy and Percent follow RFC 7489.
	Record *Record
	// RecordDomain is the domain that publishes Record, or "".
	RecordDomain string
	// Policy is the policy of the record for Domain; Unstated if there is no usable
	// record.
	Policy Policy
	// Percent is the share of failing mail to which the policy applies (pct). The rest is
	// treated one level weaker. It is 0 if Policy is Unstated.
	Percent int
	// Organization is the registrable domain according to the Public Suffix List.
	Organization string
	// Queried are the one or two queried names.
	Queried []string
	// Reason is why Status is StatusInconclusive; "" otherwise.
	Reason string
}

// DiscoverLegacy finds the policy under RFC 7489 §6.6.3: the record of the domain itself,
// else that of its registrable domain, and no other.
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

// take uses the result for one name. It returns false if there was none, so that discovery
// continues.
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
		d.Status, d.Policy, d.Percent = StatusOK, record.P, record.Percent()
		if domain != d.Domain && record.SP != Unstated {
			d.Policy = record.SP
		}
	case ActsAsNone:
		d.Status, d.Policy, d.Percent = StatusOK, None, everything
	default:
		d.Status = StatusUnusable
	}
}

// isLegacyRecord reports whether a semicolon follows the version, which RFC 7489 §6.4
// requires.
func isLegacyRecord(r Record) bool {
	_, separated, _ := cutVersion(r.Text)
	return separated
}

// legacyState evaluates a record by RFC 7489 §6.3 and §6.6.3: p must be the first tag after
// the version, and np is unknown and ignored.
func legacyState(r Record) State {
	if r.State == Void {
		return Void
	}
	first := len(r.Tags) > 0 && strings.EqualFold(r.Tags[0].Name, tagP)
	_, hasSP := legacyTag(r, tagSP)
	valid := first && r.P != Unstated && (!hasSP || r.SP != Unstated)
	return state(valid, false, len(r.RUA) > 0)
}

// Percent returns the share of failing mail to which receivers of RFC 7489 apply the policy (pct);
// an invalid value means the default.
func (r Record) Percent() int {
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

// LegacyOrganization returns the organizational domain of a name by the Public Suffix List (RFC
// 7489 §3.2). A public suffix is its own.
func LegacyOrganization(name string) string {
	name = dns.Name(name)
	organization, err := publicsuffix.EffectiveTLDPlusOne(name)
	if err != nil {
		return name
	}
	return organization
}

// IsPublicSuffix reports whether a name is a public suffix according to the Public Suffix
// List. RFC 9989 requires psd=y in the record of such a name.
func IsPublicSuffix(name string) bool {
	name = dns.Name(name)
	suffix, _ := publicsuffix.PublicSuffix(name)
	return suffix == name
}

// LegacyAlign checks whether an authenticated identifier is aligned with the author domain
// under RFC 7489 §3.1.
func LegacyAlign(author, identifier string, mode Mode) bool {
	author, identifier = dns.Name(author), dns.Name(identifier)
	if mode == Strict {
		return author == identifier
	}
	return LegacyOrganization(author) == LegacyOrganization(identifier)
}
