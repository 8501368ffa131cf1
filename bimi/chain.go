package bimi

import (
	"bytes"
	"crypto/rsa"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"slices"
	"time"
)

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
