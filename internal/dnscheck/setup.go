package dnscheck

import (
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/tlsrpt"
)

// Setup returns the records to publish so that reports about a domain reach its address at
// the report domain, and whether the latest check found them. It makes no DNS queries.
// Without a report domain it returns none. With a baseURL, the public URL of this server,
// TLS reports may also arrive over HTTPS.
//
// Addresses at the report domain for which active returns false belong to deleted domains
// and are removed from the record to publish.
func Setup(domain dmarcd.Domain, reportDomain, baseURL string, published dmarcd.Published, active func(mailbox string) bool) []dmarcd.SetupRecord {
	address := domain.ReportAddress(reportDomain)
	if address == "" {
		return nil
	}
	records := []dmarcd.SetupRecord{{
		Purpose: dmarcd.SetupDMARC, Name: dmarc.QueryName(domain.Name), Value: dmarcRecord(domain, address, func(u dmarc.URI) bool {
			mailbox, ours := cutDomain(u.Address, reportDomain)
			return ours && !strings.EqualFold(u.Address, address) && !active(mailbox)
		}),
		Known: !domain.KnownAt.IsZero(), Seen: asksDMARC(domain.Record, address),
		Why: "Publishes your policy and requests aggregate reports.",
	}}
	if consent, needed := consentRecord(domain.Name, reportDomain, published); needed {
		records = append(records, consent)
	}
	tls := domain.TLSReportURIs(reportDomain, baseURL)
	return append(records, dmarcd.SetupRecord{
		Purpose: dmarcd.SetupTLS, Name: tlsrpt.QueryName(domain.Name), Value: "v=TLSRPTv1; rua=" + strings.Join(tls, ","),
		Known: published.TLSKnown, Seen: asksTLS(published.TLSRecord, tls),
		Why: "Requests reports about mail to you that could not be encrypted.",
	})
}

// consentRecord returns the record with which the report domain authorizes reports about
// another organization's domain (RFC 9990 §4). It is not needed within an organization.
func consentRecord(domain, reportDomain string, published dmarcd.Published) (dmarcd.SetupRecord, bool) {
	name, fits := dmarc.ConsentName(domain, reportDomain)
	record := dmarcd.SetupRecord{
		Purpose: dmarcd.SetupConsent, Name: name, Value: "v=DMARC1",
		Why: "Authorizes reports about " + domain + " to " + reportDomain + ". The operator of this service publishes it, " +
			"for all domains at once as *._report._dmarc." + reportDomain + ".",
	}
	if published.Consent == "" {
		return record, fits && dmarc.LegacyOrganization(domain) != dmarc.LegacyOrganization(reportDomain)
	}
	record.Known = published.Consent != dmarc.ConsentUnknown.String()
	record.Seen = published.Consent == dmarc.Authorized.String()
	return record, fits && published.Consent != dmarc.NotNeeded.String()
}

// dmarcRecord returns the record to publish: the domain's own with the address added, one
// with the inherited policy, or p=none if there is none. Addresses for which gone returns
// true are removed.
func dmarcRecord(domain dmarcd.Domain, address string, gone func(dmarc.URI) bool) string {
	record, ok := dmarc.Parse(domain.Record)
	switch {
	case !ok || !record.Usable():
		return "v=DMARC1; p=none; rua=mailto:" + address
	case domain.RecordDomain != domain.Name:
		policy, _ := record.Policy(dmarc.Subdomain)
		return "v=DMARC1; p=" + policy.String() + "; rua=mailto:" + address
	case asksDMARC(domain.Record, address) && !slices.ContainsFunc(record.RUA, gone):
		return record.Text
	}
	record.RUA = slices.DeleteFunc(record.RUA, gone)
	if slices.ContainsFunc(record.RUA, func(u dmarc.URI) bool { return strings.EqualFold(u.Address, address) }) {
		return record.String()
	}
	record.RUA = append(record.RUA, dmarc.URI{Text: "mailto:" + address, Scheme: "mailto", Address: address})
	return record.String()
}

// cutDomain returns the local part of an address at a domain, in lower case.
func cutDomain(address, domain string) (mailbox string, ok bool) {
	return strings.CutSuffix(strings.ToLower(address), "@"+domain)
}

// asksDMARC reports whether a DMARC record has aggregate reports sent to an
// address.
func asksDMARC(text, address string) bool {
	record, ok := dmarc.Parse(text)
	return ok && slices.ContainsFunc(record.RUA, func(u dmarc.URI) bool { return strings.EqualFold(u.Address, address) })
}

// asksTLS reports whether a TLS-RPT record has reports sent to one of the URIs.
func asksTLS(text string, uris []string) bool {
	record, ok := tlsrpt.ParseRecord(text)
	return ok && slices.ContainsFunc(record.RUA, func(u tlsrpt.URI) bool {
		return containsFold(uris, u.Text) || containsFold(uris, "mailto:"+u.Address)
	})
}
