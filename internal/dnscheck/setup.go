package dnscheck

import (
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/tlsrpt"
)

// Setup returns the records to publish so that reports about a domain reach its address at
// the report domain, and whether the latest check found them. It makes no DNS queries.
// Without a report domain it returns none. With a baseURL, the public URL of this server,
// TLS reports may also arrive over HTTPS.
//
// Addresses at the report domain for which active returns false belong to deleted domains
// and are removed from the record to publish.
func Setup(domain dmarcd.Domain, reportDomain, baseURL string, published facts.Published, active func(mailbox string) bool) []dmarcd.SetupRecord {
	address := domain.ReportAddress(reportDomain)
	if address == "" {
		return nil
	}
	records := []dmarcd.SetupRecord{{
		Purpose: dmarcd.SetupDMARC, Name: dmarc.QueryName(domain.Name), Value: baseRecord(domain, published.Repaired, address, func(u dmarc.URI) bool {
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

// Challenge returns the record that proves control of a domain, if a proof is required and its DMARC
// record, which has to name address, is none.
func Challenge(domain dmarcd.Domain, address string) (record dmarcd.SetupRecord, needed bool) {
	why := "Proves that you control " + domain.Name + ". Until a check finds it, the domain is not active, and new records do not count. " +
		"Keep it published, and without an alias (CNAME): checks repeat the proof."
	if address != "" {
		why += " Not needed once the domain's own DMARC record names the reporting address."
	}
	return dmarcd.SetupRecord{
		Purpose: dmarcd.SetupChallenge, Name: domain.ChallengeName(), Value: domain.ChallengeText(),
		Known: !domain.KnownAt.IsZero(), Seen: domain.Proof == dmarcd.ProofChallenge,
		Why: why,
	}, domain.Proof == dmarcd.ProofMissing || domain.Proof == dmarcd.ProofChallenge
}

// consentRecord returns the record with which the report domain authorizes reports about
// another organization's domain (RFC 9990 §4). It is not needed within an organization.
func consentRecord(domain, reportDomain string, published facts.Published) (dmarcd.SetupRecord, bool) {
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

// baseRecord returns the DMARC record to publish without a change of policy: repaired, which
// the findings of the latest check propose, or else the domain's own without its errors, one
// with the policy that the record of a domain above gives it or, where there is nothing to
// keep, one that only watches. It has the address, which may be "", and not the addresses
// that are gone; gone may be nil.
func baseRecord(domain dmarcd.Domain, repaired, address string, gone func(dmarc.URI) bool) string {
	record, ok := dmarc.Parse(repaired)
	if !ok {
		if record, ok = dmarc.Parse(domain.Record); ok && domain.RecordDomain != domain.Name {
			policy, _ := record.Policy(dmarc.Subdomain)
			record = inherited(record, record.Applied(policy))
		}
	}
	if !ok {
		record, _ = dmarc.Parse("v=DMARC1; p=none")
	}
	return proposed(record, address, gone)
}

// proposed returns a record without errors that has reports sent to address. Its policy and
// unknown tags stay.
func proposed(record dmarc.Record, address string, gone func(dmarc.URI) bool) string {
	var changes []dmarc.Tag
	if record.P == dmarc.Unstated || record.State == dmarc.Void {
		changes = append(changes, dmarc.Tag{Name: "p", Value: max(record.P, dmarc.None).String()})
	}
	if record.State != dmarc.OK {
		changes = append(changes, dmarc.Tag{Name: "sp", Value: record.SP.String()}, dmarc.Tag{Name: "np", Value: record.NP.String()})
	}
	rewrite := len(changes) > 0
	for _, p := range record.Problems {
		switch p.Kind {
		case dmarc.UnknownTag, dmarc.UnsupportedScheme, dmarc.TooManyURIs:
			continue
		case dmarc.HistoricTag:
			if p.Tag == "pct" && record.P > dmarc.None {
				continue // without it the policy is stricter
			}
			changes = append(changes, dmarc.Tag{Name: p.Tag})
		case dmarc.InvalidValue:
			if !slices.Contains([]string{"p", "sp", "np"}, p.Tag) {
				changes = append(changes, dmarc.Tag{Name: p.Tag})
			}
		case dmarc.UnusedFailureOptions:
			changes = append(changes, dmarc.Tag{Name: "fo"})
		case dmarc.FailureReportsOnPSD:
			changes = append(changes, dmarc.Tag{Name: "ruf"})
		case dmarc.BadURI, dmarc.SizeSuffix, dmarc.DuplicateURI:
			if p.Tag == "ruf" {
				changes = append(changes, dmarc.Tag{Name: "ruf", Value: uriList(unique(record.RUF))})
			}
		}
		rewrite = true
	}
	addresses := unique(record.RUA)
	if gone != nil {
		addresses = slices.DeleteFunc(addresses, gone)
	}
	addresses = withAddress(addresses, address)
	if !slices.Equal(addresses, record.RUA) {
		rewrite = true
	}
	if !rewrite {
		return record.Text
	}
	return record.Edit(append(changes, dmarc.Tag{Name: "rua", Value: uriList(addresses)})...)
}

// inherited returns a record for a domain whose policy comes from the record of a domain
// above: of the tags of that record for its subdomains, np alone applies to names below.
func inherited(above dmarc.Record, policy dmarc.Policy) dmarc.Record {
	own := dmarc.Record{P: max(policy, dmarc.None), NP: above.NP, ADKIM: above.ADKIM, ASPF: above.ASPF, RUA: above.RUA}
	own, _ = dmarc.Parse(own.String())
	return own
}

// unique returns the destinations, each once.
func unique(uris []dmarc.URI) []dmarc.URI {
	return together(nil, uris)
}

// withAddress returns the destinations with address, unless it is "".
func withAddress(uris []dmarc.URI, address string) []dmarc.URI {
	if address == "" || sendsTo(uris, address) {
		return uris
	}
	return append(slices.Clip(uris), dmarc.URI{Text: "mailto:" + address, Scheme: "mailto", Address: address})
}

// sendsTo reports whether one of the destinations is address.
func sendsTo(uris []dmarc.URI, address string) bool {
	return slices.ContainsFunc(uris, func(u dmarc.URI) bool { return strings.EqualFold(u.Address, address) })
}

func uriList(uris []dmarc.URI) string {
	texts := make([]string, len(uris))
	for i, u := range uris {
		texts[i] = u.String()
	}
	return strings.Join(texts, ",")
}

// cutDomain returns the local part of an address at a domain, in lower case.
func cutDomain(address, domain string) (mailbox string, ok bool) {
	return strings.CutSuffix(strings.ToLower(address), "@"+domain)
}

// asksDMARC reports whether a DMARC record has aggregate reports sent to an
// address.
func asksDMARC(text, address string) bool {
	record, ok := dmarc.Parse(text)
	return ok && sendsTo(record.RUA, address)
}

// asksTLS reports whether a TLS-RPT record has reports sent to one of the URIs.
func asksTLS(text string, uris []string) bool {
	record, ok := tlsrpt.ParseRecord(text)
	return ok && slices.ContainsFunc(record.RUA, func(u tlsrpt.URI) bool {
		return containsFold(uris, u.Text) || containsFold(uris, "mailto:"+u.Address)
	})
}
