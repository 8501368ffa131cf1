package bimi

import (
	"bytes"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"slices"
	"time"
)

// maxCertificates bounds the certificates that are read of one document.
const maxCertificates = 10

// readChain reads the certificates of a document in their order.
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
		chain = append(chain, c)
	}
}

// checkOrder tells of several mark certificates, and of a chain that does not
// begin with the mark certificate and go on from issuer to issuer.
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

// checkTrust tells of a mark certificate that does not lead to a trusted root, and
// of one that is not meant for marks, nor its issuer's.
func checkTrust(mark *x509.Certificate, chain []*x509.Certificate, want Expectation, found *problems) {
	found.note(!isForMarks(mark), WrongKeyUsage, mark.Subject.CommonName, "")
	path, err := verify(mark, chain, want)
	if err != nil {
		found.note(true, UntrustedChain, mark.Subject.CommonName, err.Error())
		return
	}
	// The immediate issuer must be meant for marks too; a root need not be.
	if len(path) > 2 {
		found.note(!isForMarks(path[1]), WrongKeyUsage, path[1].Subject.CommonName, "")
	}
}

// verify returns the way from the mark certificate to a trusted root.
func verify(mark *x509.Certificate, chain []*x509.Certificate, want Expectation) ([]*x509.Certificate, error) {
	roots := want.Roots
	if roots == nil {
		// A nil pool would mean the authorities of the system, which are trusted
		// for servers and not for marks.
		roots = x509.NewCertPool()
	}
	intermediates := x509.NewCertPool()
	for _, c := range chain {
		if c.IsCA {
			intermediates.AddCert(c)
		}
	}
	// The logotype may be marked critical, and it is handled.
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

// within returns the time nearest to at within the dates of the certificate, so
// that an expired one is not told to be untrusted as well.
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

// isForMarks reports whether the certificate has the extended key usage of marks.
func isForMarks(c *x509.Certificate) bool {
	return slices.ContainsFunc(c.UnknownExtKeyUsage, func(id asn1.ObjectIdentifier) bool { return id.Equal(oidBIMIKeyUsage) })
}
