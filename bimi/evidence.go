package bimi

import (
	"bytes"
	"crypto/rsa"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
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

const (
	// maxCertificates limits the certificates per document.
	maxCertificates = 10
	// maxKeyBits limits the size of RSA keys: with a key of 1 MiB, verifying a signature
	// takes minutes.
	maxKeyBits = 8192
)

// readChain parses the certificates of a document in order.
func readChain(document []byte, found *problems) []*x509.Certificate {
	if len(document) > maxDocumentBytes {
		found.note(true, DocumentTooLarge, "", errTooLarge.Error())
		return nil
	}
	var chain []*x509.Certificate
	for {
		var block *pem.Block
		block, document = pem.Decode(document)
		switch {
		case block == nil:
			return chain
		case block.Type != "CERTIFICATE":
			found.note(true, UnexpectedBlock, "", block.Type)
			continue
		case len(chain) == maxCertificates:
			found.note(true, TooManyCertificates, "", "")
			return chain
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			found.note(true, BadCertificate, "", err.Error())
			continue
		}
		if key, ok := c.PublicKey.(*rsa.PublicKey); ok && key.N.BitLen() > maxKeyBits {
			found.note(true, BadCertificate, c.Subject.CommonName, "its key is too long")
			continue
		}
		chain = append(chain, c)
	}
}

// checkOrder reports several mark certificates, and a chain that does not start with the
// mark certificate and continue from issuer to issuer.
func checkOrder(chain []*x509.Certificate, mark int, found *problems) {
	for _, c := range chain[mark+1:] {
		found.note(!c.IsCA, SeveralMarks, c.Subject.CommonName, "")
	}
	found.note(mark != 0, OutOfOrder, chain[mark].Subject.CommonName, "")
	for i, c := range chain[1:] {
		before := chain[i]
		found.note(!bytes.Equal(before.RawIssuer, c.RawSubject), OutOfOrder, c.Subject.CommonName, before.Issuer.CommonName)
	}
}

// checkTrust reports a mark certificate without a path to a trusted root, and a missing
// key usage for marks in it or in its issuer.
func checkTrust(mark *x509.Certificate, chain []*x509.Certificate, want Expectation, found *problems) {
	found.note(!isForMarks(mark), WrongKeyUsage, mark.Subject.CommonName, "")
	path, err := verify(mark, chain, want)
	if err != nil {
		found.note(true, UntrustedChain, mark.Subject.CommonName, err.Error())
		return
	}
	// The immediate issuer needs the key usage for marks too; a root does not.
	if len(path) > 2 {
		found.note(!isForMarks(path[1]), WrongKeyUsage, path[1].Subject.CommonName, "")
	}
}

// verify returns the path from the mark certificate to a trusted root.
func verify(mark *x509.Certificate, chain []*x509.Certificate, want Expectation) ([]*x509.Certificate, error) {
	roots := want.Roots
	if roots == nil {
		// A nil pool would mean the system roots, which are trusted for servers but not
		// for marks.
		roots = x509.NewCertPool()
	}
	intermediates := x509.NewCertPool()
	for _, c := range chain {
		if c.IsCA {
			intermediates.AddCert(c)
		}
	}
	// The logotype extension may be critical, and we handle it.
	leaf := *mark
	leaf.UnhandledCriticalExtensions = slices.DeleteFunc(slices.Clone(mark.UnhandledCriticalExtensions), oidLogotype.Equal)
	paths, err := leaf.Verify(x509.VerifyOptions{
		Roots: roots, Intermediates: intermediates, CurrentTime: within(mark, want.At),
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
	})
	if err != nil {
		return nil, err
	}
	return paths[0], nil
}

// within returns the time nearest to at within the validity of the certificate, so that
// an expired certificate is not also reported as untrusted.
func within(c *x509.Certificate, at time.Time) time.Time {
	switch {
	case at.Before(c.NotBefore):
		return c.NotBefore
	case at.After(c.NotAfter):
		return c.NotAfter
	default:
		return at
	}
}

// isForMarks reports whether the certificate has the extended key usage for marks.
func isForMarks(c *x509.Certificate) bool {
	return slices.ContainsFunc(c.UnknownExtKeyUsage, func(id asn1.ObjectIdentifier) bool { return id.Equal(oidBIMIKeyUsage) })
}
