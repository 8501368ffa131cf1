// Package tlsrpt reads and finds the records of SMTP TLS Reporting (RFC 8460 §3),
// by which a domain asks for reports about the encryption of mail sent to it.
//
// ParseRecord reads one record and says everything that is wrong with it.
// LookupRecord finds the record of a domain; it is not inherited by subdomains.
//
// The package asks through a dns.Resolver and leaves deadlines, retries and
// caching to it. It sends no reports, and it knows nothing of how a problem is told
// to people: a Problem is a kind, a field and the text concerned.
//
// Domain names go in as A-labels in any case, with or without a trailing dot, and
// come out in the form of dns.Name.
package tlsrpt

// maxKept bounds the fields, problems and URIs that are kept of one source, so that
// a hostile record stays cheap.
const maxKept = 100
