package dmarcd

import "strings"

// SetupPurpose is what a record of the set-up is for.
type SetupPurpose string

// The purposes of records.
const (
	// SetupDMARC is the DMARC record, which asks for aggregate reports.
	SetupDMARC SetupPurpose = "dmarc"
	// SetupConsent is the record by which the report domain takes reports about
	// another organization's domain (RFC 9990 §4).
	SetupConsent SetupPurpose = "report_authorization"
	// SetupTLS asks for reports about mail that could not be encrypted.
	SetupTLS SetupPurpose = "tls_rpt"
)

// SetupRecord is a TXT record to publish so that reports about a domain come here.
type SetupRecord struct {
	Purpose     SetupPurpose
	Name, Value string
	// Seen tells that the DNS has it, which counts where Known tells that the DNS
	// gave an answer.
	Known, Seen bool
	// Why says in a sentence what it does.
	Why string
}

// Published is what the latest look at everything about a domain says of where its
// reports go.
type Published struct {
	// Consent is the word of the check for whether the reporting address may get
	// reports about the domain, "" where the DMARC record does not name it.
	Consent string
	// TLSRecord is the TLS reporting record, "" if there is none, which counts where
	// TLSKnown tells that the DNS gave an answer.
	TLSRecord string
	TLSKnown  bool
}

// Setup is what to publish so that reports about a domain come to its reporting address.
// Address is "" and there are no records where the installation has no report domain.
type Setup struct {
	Domain  Domain
	Address string
	Records []SetupRecord
}

// Published returns what a check says of where reports go, of which those to that address
// count. A check without facts says nothing.
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
