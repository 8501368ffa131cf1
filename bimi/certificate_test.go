package bimi_test

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/internal/certtest"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/packtest"
)

var (
	// today is within the validity of every test certificate.
	today = time.Date(2026, time.November, 15, 9, 30, 0, 0, time.UTC)

	markUsage  = []asn1.ObjectIdentifier{{1, 3, 6, 1, 5, 5, 7, 3, 31}}
	logotypeID = asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 1, 12}
	markTypeID = asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 53087, 1, 13}
	sha256ID   = asn1.ObjectIdentifier{2, 16, 840, 1, 101, 3, 4, 2, 1}
)

// issue creates a certificate from a template. It is valid for a year around today unless
// the template says otherwise, and self-signed without an issuer.
func issue(t testing.TB, issuer *tls.Certificate, template x509.Certificate) *tls.Certificate {
	t.Helper()
	if template.NotAfter.IsZero() {
		template.NotBefore, template.NotAfter = today.AddDate(0, -6, 0), today.AddDate(0, 6, 0)
	}
	return certtest.New(t, issuer, template)
}

// withKey is issue with a given public key.
func withKey(t testing.TB, issuer *tls.Certificate, template x509.Certificate, key any) *tls.Certificate {
	t.Helper()
	template.SerialNumber, template.BasicConstraintsValid = big.NewInt(1), true
	template.NotBefore, template.NotAfter = today.AddDate(0, -6, 0), today.AddDate(0, 6, 0)
	der := musttest.Get(x509.CreateCertificate(rand.Reader, &template, issuer.Leaf, key, issuer.PrivateKey))(t)
	return &tls.Certificate{Leaf: musttest.Get(x509.ParseCertificate(der))(t)}
}

// rsaKey returns a public key of that length. There is no private one.
func rsaKey(bits int) *rsa.PublicKey {
	return &rsa.PublicKey{N: new(big.Int).SetBit(big.NewInt(1), bits-1, 1), E: 65537}
}

// authority returns the template of a CA certificate, with or without the key usage for
// marks.
func authority(name string, marks bool) x509.Certificate {
	c := x509.Certificate{Subject: pkix.Name{CommonName: name}, IsCA: true}
	if marks {
		c.UnknownExtKeyUsage = markUsage
	}
	return c
}

// mark returns the template of a valid mark certificate for example.com.
func mark(t testing.TB) x509.Certificate {
	t.Helper()
	return x509.Certificate{
		Subject: pkix.Name{CommonName: "mark", ExtraNames: []pkix.AttributeTypeAndValue{
			{Type: asn1.ObjectIdentifier{2, 5, 4, 3}, Value: "mark"}, {Type: markTypeID, Value: "Registered Mark"},
		}},
		DNSNames:           []string{"Example.com"},
		UnknownExtKeyUsage: markUsage,
		ExtraExtensions:    []pkix.Extension{logotype(t, packtest.Gzip(goodSVG), []byte(goodSVG))},
	}
}

// logotype returns an extension that embeds data with the hashes of hashed.
func logotype(t testing.TB, data []byte, hashed ...[]byte) pkix.Extension {
	t.Helper()
	return logotypeURI(t, "data:image/svg+xml;base64,"+base64.StdEncoding.EncodeToString(data), hashed...)
}

// logotypeURI returns a logotype extension (RFC 9399 §4.1).
func logotypeURI(t testing.TB, uri string, hashed ...[]byte) pkix.Extension {
	t.Helper()
	type (
		hash struct {
			Algorithm pkix.AlgorithmIdentifier
			Value     []byte
		}
		details struct {
			MediaType string `asn1:"ia5"`
			Hashes    []hash
			URIs      []asn1.RawValue
		}
		image struct{ Details details }
		data  struct{ Images []image }
	)
	var hashes []hash
	for _, h := range hashed {
		sum := sha256.Sum256(h)
		hashes = append(hashes, hash{pkix.AlgorithmIdentifier{Algorithm: sha256ID}, sum[:]})
	}
	ia5 := asn1.RawValue{Tag: asn1.TagIA5String, Bytes: []byte(uri)}
	direct := marshal(t, data{[]image{{details{
		MediaType: "image/svg+xml",
		Hashes:    hashes,
		URIs:      []asn1.RawValue{ia5},
	}}}}, "tag:0")
	subject := asn1.RawValue{Class: asn1.ClassContextSpecific, Tag: 2, IsCompound: true, Bytes: direct}
	issuer := asn1.RawValue{Class: asn1.ClassContextSpecific, Tag: 1, IsCompound: true, Bytes: direct}
	return pkix.Extension{Id: logotypeID, Value: marshal(t, []asn1.RawValue{issuer, subject}, "")}
}

func marshal(t testing.TB, value any, params string) []byte {
	t.Helper()
	return musttest.Get(asn1.MarshalWithParams(value, params))(t)
}

// document returns the certificates in PEM.
func document(identities ...*tls.Certificate) []byte {
	var b bytes.Buffer
	for _, i := range identities {
		b.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.Leaf.Raw}))
	}
	return b.Bytes()
}
