package dmarcd

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

// Setup are the records to publish so that reports about a domain arrive at its reporting
// address. Without a report domain Address is "" and there are no records.
type Setup struct {
	Domain  Domain
	Address string
	Records []SetupRecord
}
