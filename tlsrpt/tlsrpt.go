// Package tlsrpt speaks SMTP TLS Reporting (RFC 8460): the records by which a
// domain asks for reports about the encryption of mail sent to it, and the reports
// themselves.
//
// ParseRecord reads one record and says everything that is wrong with it.
// LookupRecord finds the record of a domain; it is not inherited by subdomains.
// The package asks through a dns.Resolver and leaves deadlines, retries and
// caching to it. It knows nothing of how a problem is told to people: a Problem is
// a kind, a field and the text concerned.
//
// ReadReport reads a report. Reporters write much that RFC 8460 does not allow. The
// reader takes what can be understood, and notes each kind of deviation once, with
// a count, as a Quirk of the report; the quirks are listed in one table in
// quirk.go. Of a damaged report the complete policies are read. What is no report,
// or has nothing usable in it, is refused with a *RefusedError that says why.
// Report.Key and Report.Content say when two documents are the same report, and
// Render writes a report in canonical form. Containers (gzip, mail), the limit of
// all bytes and the limit of time are the caller's: they belong to the io.Reader
// that it hands in. The package sends no reports.
//
// Domain names go in as A-labels in any case, with or without a trailing dot, and
// come out in the form of dns.Name.
package tlsrpt

// maxKept bounds the fields, problems and URIs that are kept of one source, so that
// a hostile record stays cheap.
const maxKept = 100
