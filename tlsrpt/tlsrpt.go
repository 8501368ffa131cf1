// Package tlsrpt implements SMTP TLS Reporting (RFC 8460): the records with which a
// domain requests reports about the encryption of mail sent to it, and the reports.
//
// ParseRecord parses one record and lists its problems. LookupRecord looks up the record
// of a domain; subdomains do not inherit it. The dns.Resolver is responsible for
// deadlines, retries and caching. The caller turns a Problem into a message for users.
//
// ReadReport and Reader read reports. Many violate RFC 8460. The reader accepts what it
// can understand and counts each kind of deviation as a Quirk of the report; quirk.go
// lists them. Of a damaged report it returns the complete policies. A document that is
// not a report, or not usable, is rejected with a *RejectedError. Report.Key and
// Report.Content identify duplicates and versions of a report. Render writes a report in
// canonical form. Containers (gzip, mail) and limits on total bytes and time are left to
// the caller and its io.Reader. The package does not send reports.
//
// Domain names are accepted in A-labels, in any case and with or without a trailing dot,
// and returned like dns.Name does.
package tlsrpt

// maxListed limits the fields, problems and URIs per record, so that a hostile record stays
// cheap.
const maxListed = 100
