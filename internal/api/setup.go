package api

import (
	"errors"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/internal/wire"
	"github.com/dmarcd/dmarcd/tlsrpt"
)

// setup tells which records to publish so that reports come here, and whether
// they were seen. It asks no DNS: what it says is as old as the latest check.
func (a *API) setup(c *call) error {
	domain, err := namedDomain(c)
	if err != nil {
		return err
	}
	var latest wire.KeptCheck
	kept, err := c.team.LatestCheck(c.r.Context(), domain.Name)
	switch {
	case err == nil:
		if latest, err = newKeptCheck(kept); err != nil {
			return err
		}
	case !errors.Is(err, dmarcd.ErrNotFound):
		return err
	}
	writeCacheable(c, newSetup(domain, a.options.ReportDomain, latest))
	return nil
}

func newSetup(domain dmarcd.Domain, reportDomain string, latest wire.KeptCheck) wire.Setup {
	setup := wire.Setup{Domain: domain.Name, Records: []wire.SetupRecord{}}
	if !domain.CheckedAt.IsZero() {
		checkedAt := wire.Time(domain.CheckedAt)
		setup.CheckedAt = &checkedAt
	}
	address := domain.ReportAddress(reportDomain)
	if address == "" {
		return setup
	}
	setup.ReportAddress = &address
	setup.Records = append(setup.Records, wire.SetupRecord{
		Purpose: "dmarc", Name: dmarc.QueryName(domain.Name), Type: "TXT", Value: dmarcRecord(domain, address),
		Seen: known(!domain.KnownAt.IsZero(), asksDMARC(domain.Record, address)),
		Why:  "Tells receivers your policy, and to send aggregate reports here.",
	})
	if consent, needed := consentRecord(domain.Name, reportDomain, address, latest); needed {
		setup.Records = append(setup.Records, consent)
	}
	checked := latest.ID != ""
	setup.Records = append(setup.Records, wire.SetupRecord{
		Purpose: "tls_rpt", Name: "_smtp._tls." + domain.Name, Type: "TXT", Value: "v=TLSRPTv1; rua=mailto:" + address,
		Seen: known(checked && latest.TLSRPT.Status != "inconclusive", asksTLS(latest.TLSRPT.Record, address)),
		Why:  "Asks senders to report mail to you that could not be encrypted.",
	})
	return setup
}

// consentRecord is what the report domain publishes so that receivers send it
// reports about another organization's domain (RFC 9990 §4). It is not needed
// within one.
func consentRecord(domain, reportDomain, address string, latest wire.KeptCheck) (wire.SetupRecord, bool) {
	name, fits := dmarc.ConsentName(domain, reportDomain)
	record := wire.SetupRecord{
		Purpose: "report_authorization", Name: name, Type: "TXT", Value: "v=DMARC1",
		Why: "Tells receivers that " + reportDomain + " takes reports about " + domain + ". The operator of this service publishes it, " +
			"for all domains at once as *._report._dmarc." + reportDomain + ".",
	}
	needed := fits && dmarc.LegacyOrganization(domain) != dmarc.LegacyOrganization(reportDomain)
	for _, d := range latest.DMARC.Destinations {
		if strings.EqualFold(d.URI, "mailto:"+address) {
			needed = fits && d.Consent != "not needed"
			record.Seen = known(d.Consent != "unknown", d.Consent == "authorized")
		}
	}
	return record, needed
}

// dmarcRecord returns the record to publish: the domain's own with the address
// added, one with the policy that the record of a domain above gives it or, where
// there is nothing to keep, one that only watches.
func dmarcRecord(domain dmarcd.Domain, address string) string {
	record, ok := dmarc.Parse(domain.Record)
	switch {
	case !ok || !record.Usable():
		return "v=DMARC1; p=none; rua=mailto:" + address
	case domain.RecordDomain != domain.Name:
		policy, _ := record.Policy(dmarc.Subdomain)
		return "v=DMARC1; p=" + policy.String() + "; rua=mailto:" + address
	case asksDMARC(domain.Record, address):
		return record.Text
	}
	record.RUA = append(record.RUA, dmarc.URI{Text: "mailto:" + address, Scheme: "mailto", Address: address})
	return record.String()
}

// asksDMARC reports whether a DMARC record has aggregate reports sent to an
// address.
func asksDMARC(text, address string) bool {
	record, ok := dmarc.Parse(text)
	return ok && slices.ContainsFunc(record.RUA, func(u dmarc.URI) bool { return strings.EqualFold(u.Address, address) })
}

// asksTLS is asksDMARC for TLS reports.
func asksTLS(text, address string) bool {
	record, ok := tlsrpt.ParseRecord(text)
	return ok && slices.ContainsFunc(record.RUA, func(u tlsrpt.URI) bool { return strings.EqualFold(u.Address, address) })
}

// known returns whether something was seen, nil where nobody has looked.
func known(looked, seen bool) *bool {
	if !looked {
		return nil
	}
	return &seen
}
