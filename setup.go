package dmarcd

import "strings"

// SetupPurpose is the purpose of a setup record.
type SetupPurpose string

const (
	// SetupDMARC is the DMARC record, which asks for aggregate reports.
	SetupDMARC SetupPurpose = "dmarc"
	// SetupConsent is the record with which the report domain accepts reports about
	// another organization's domain (RFC 9990 §4).
	SetupConsent SetupPurpose = "report_authorization"
	// SetupTLS is the TLS-RPT record.
	SetupTLS SetupPurpose = "tls_rpt"
)

// SetupRecord is a TXT record to publish so that reports about a domain arrive here.
type SetupRecord struct {
	Purpose     SetupPurpose
	Name, Value string
	// Seen is true if DNS has the record; it is meaningful only if Known is true.
	Known, Seen bool
	// Why explains the record in a sentence.
	Why string
}

// Published is what the latest full check says about the destinations of reports.
type Published struct {
	// Consent is whether the reporting address may receive reports about the domain, in
	// the terms of the check; "" if the DMARC record does not contain the address.
	Consent string
	// TLSRecord is the TLS-RPT record, "" if there is none; it is meaningful only if
	// TLSKnown is true.
	TLSRecord string
	TLSKnown  bool
	// Repaired is the DMARC record that the findings of the check propose without a change
	// of policy, "" if they propose none.
	Repaired string
}

// Setup are the records to publish so that reports about a domain arrive at its reporting
// address. Without a report domain Address is "" and there are no records.
type Setup struct {
	Domain  Domain
	Address string
	Records []SetupRecord
}

// Published returns the published destinations according to a check, as far as they
// concern the address. It is empty for a check without facts.
func (c Check) Published(address string) Published {
	if c.Facts == nil {
		return Published{}
	}
	published := Published{TLSRecord: c.Facts.TLSRPT.Record, TLSKnown: c.Facts.TLSRPT.Status != inconclusive}
	for _, d := range c.Facts.DMARC.Destinations {
		if strings.EqualFold(d.URI, "mailto:"+address) {
			published.Consent = d.Consent
		}
	}
	return published
}
