package bimi

import (
	"crypto/x509"
	"encoding/asn1"
	"slices"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd/dns"
)

// expiryWarning is how long before expiry a certificate is reported.
const expiryWarning = 14 * 24 * time.Hour

// Object identifiers of mark certificates.
var (
	oidBIMIKeyUsage = asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 3, 31}
	oidLogotype     = asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 1, 12}
	oidMarkType     = asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 53087, 1, 13}
)

// Mark is the type of a mark certificate.
type Mark uint8

const (
	// MarkUnknown means that the certificate does not say.
	MarkUnknown Mark = iota
	// Verified is a Verified Mark Certificate (VMC): the mark is a registered trademark
	// or a government mark.
	Verified
	// Common is a Common Mark Certificate (CMC): the mark was in use before, or is a
	// variant of a registered one.
	Common
)

var markWords = [...]string{MarkUnknown: "unknown", Verified: "VMC", Common: "CMC"}

// String returns the usual abbreviation.
func (m Mark) String() string { return markWords[m] }

// Expectation is what an evidence document is validated against.
type Expectation struct {
	// Query is the query for the record: the certificate must be for its domain or its
	// organizational domain, with or without the selector.
	Query Query
	// ImageSHA256 is the hash of the image of the record, as in Image.SHA256; "" skips
	// the comparison.
	ImageSHA256 string
	// Roots are the CAs trusted for marks. If nil, none is trusted.
	Roots *x509.CertPool
	// At is the time at which the certificates must be valid.
	At time.Time
}

// Evidence is the result of checking an evidence document.
type Evidence struct {
	// Certificate is the mark certificate, nil if there is none.
	Certificate *x509.Certificate
	// Mark is its type, MarkType the text in the certificate.
	Mark     Mark
	MarkType string
	// Image is the result for the image in the certificate, with its own problems; the
	// zero value if there is none.
	Image Image
	// Problems contains at most 100 problems.
	Problems []Problem
}

// CheckEvidence validates an evidence document: certificates in PEM, the mark certificate
// first, each followed by that of its issuer.
func CheckEvidence(document []byte, want Expectation) Evidence {
	var e Evidence
	var found problems
	chain := readChain(document, &found)
	i := slices.IndexFunc(chain, func(c *x509.Certificate) bool { return !c.IsCA })
	if i < 0 {
		found.note(true, NoCertificate, "", "")
		e.Problems = found
		return e
	}
	mark := chain[i]
	e.Certificate = mark
	checkOrder(chain, i, &found)
	checkDates(mark, want.At, &found)
	checkTrust(mark, chain, want, &found)
	checkDomains(mark, want.Query, &found)
	e.readMark(&found)
	e.readLogotype(want.ImageSHA256, &found)
	e.Problems = found
	return e
}

// checkDates reports a certificate that is expired, not yet valid or about to expire.
func checkDates(c *x509.Certificate, at time.Time, found *problems) {
	name := c.Subject.CommonName
	begin, end := c.NotBefore.UTC().Format(time.RFC3339), c.NotAfter.UTC().Format(time.RFC3339)
	switch {
	case at.Before(c.NotBefore):
		found.note(true, NotYetValid, name, begin)
	case at.After(c.NotAfter):
		found.note(true, Expired, name, end)
	case c.NotAfter.Sub(at) <= expiryWarning:
		found.note(true, ExpiresSoon, name, end)
	}
}

// checkDomains reports a certificate for other domains. Its names must be the domain or
// the organizational domain, alone or with selector and _bimi.
func checkDomains(c *x509.Certificate, q Query, found *problems) {
	q = q.normalized()
	var wanted []string
	for _, domain := range []string{q.Domain, q.Organization} {
		wanted = append(wanted, domain, QueryName(q.Selector, domain))
	}
	ok := slices.ContainsFunc(c.DNSNames, func(name string) bool { return slices.Contains(wanted, dns.Name(name)) })
	found.note(!ok, WrongDomain, c.Subject.CommonName, strings.Join(c.DNSNames, " "))
}

// readMark reads the mark type from the subject of the certificate.
func (e *Evidence) readMark(found *problems) {
	for _, name := range e.Certificate.Subject.Names {
		if value, ok := name.Value.(string); ok && name.Type.Equal(oidMarkType) {
			e.MarkType = value
		}
	}
	switch e.MarkType {
	case "Registered Mark", "Government Mark":
		e.Mark = Verified
	case "Prior Use Mark", "Modified Registered Mark":
		e.Mark = Common
	default:
		found.note(true, UnknownMark, e.Certificate.Subject.CommonName, e.MarkType)
	}
}

// readLogotype validates the image in the certificate.
func (e *Evidence) readLogotype(imageSHA256 string, found *problems) {
	name := e.Certificate.Subject.CommonName
	logo, err := logotypeOf(e.Certificate)
	if err != nil {
		found.note(true, MissingLogotype, name, err.Error())
		return
	}
	e.Image = CheckImage(logo.data)
	found.note(!logo.hashesMatch(), LogotypeHash, name, e.Image.SHA256)
	found.note(imageSHA256 != "" && imageSHA256 != e.Image.SHA256, ImageMismatch, name, e.Image.SHA256)
}
