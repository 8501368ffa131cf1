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
		Purpose: dmarcd.SetupDMARC, Name: dmarc.QueryName(domain.Name), Value: BaseRecord(domain, address, func(u dmarc.URI) bool {
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

// BaseRecord returns the DMARC record to publish without a change of policy: the domain's
// own with the address added, one with the policy that the record of a domain above gives
// it or, where there is nothing to keep, one that only watches. What stands in the way of
// the policy and addresses that are gone are left out, all else stays. address may be "",
// and gone nil.
func BaseRecord(domain dmarcd.Domain, address string, gone func(dmarc.URI) bool) string {
	record, ok := dmarc.Parse(domain.Record)
	if ok && domain.RecordDomain != domain.Name {
		policy, _ := record.Policy(dmarc.Subdomain)
		record, _ = dmarc.Parse("v=DMARC1; p=" + max(policy, dmarc.None).String())
	}
	if !ok {
		record, _ = dmarc.Parse("v=DMARC1; p=none")
	}
	return proposed(record, address, gone)
}

// proposed returns a record that receivers can use and that has reports sent to address.
func proposed(record dmarc.Record, address string, gone func(dmarc.URI) bool) string {
	var changes []dmarc.Tag
	if record.P == dmarc.Unstated || record.State == dmarc.Void {
		changes = append(changes, dmarc.Tag{Name: "p", Value: max(record.P, dmarc.None).String()})
	}
	if record.State != dmarc.OK {
		changes = append(changes, dmarc.Tag{Name: "sp", Value: record.SP.String()}, dmarc.Tag{Name: "np", Value: record.NP.String()})
	}
	kept := record.RUA
	if gone != nil {
		kept = slices.DeleteFunc(slices.Clone(kept), gone)
	}
	if address != "" && !slices.ContainsFunc(kept, func(u dmarc.URI) bool { return strings.EqualFold(u.Address, address) }) {
		kept = append(slices.Clip(kept), dmarc.URI{Text: "mailto:" + address, Scheme: "mailto", Address: address})
	}
	if len(kept) != len(record.RUA) || !slices.Equal(kept, record.RUA) {
		texts := make([]string, len(kept))
		for i, u := range kept {
			texts[i] = u.String()
		}
		changes = append(changes, dmarc.Tag{Name: "rua", Value: strings.Join(texts, ",")})
	}
	if len(changes) == 0 {
		return record.Text
	}
	return record.Edit(changes...)
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
