package dane

import (
	"bytes"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/hex"
	"fmt"
)

// Usage is the certificate usage of a TLSA record (RFC 6698 §2.1.1, with the names
// of RFC 7218).
type Usage uint8

// The usages.
const (
	PKIXTA Usage = 0
	PKIXEE Usage = 1
	DANETA Usage = 2
	DANEEE Usage = 3
)

// Selector is the part of a certificate that a TLSA record covers (RFC 6698 §2.1.2).
type Selector uint8

// The selectors.
const (
	FullCertificate Selector = 0
	PublicKey       Selector = 1
)

// Matching is how that part is compared (RFC 6698 §2.1.3).
type Matching uint8

// The matching types.
const (
	Exact  Matching = 0
	SHA256 Matching = 1
	SHA512 Matching = 2
)

// headerLength is the length of usage, selector and matching type on the wire.
const headerLength = 3

// Record is a TLSA record.
type Record struct {
	Usage    Usage
	Selector Selector
	Matching Matching
	// Data is the certificate association data: a digest, or the part itself.
	Data []byte
}

// Parse parses TLSA record data in wire format. It returns false if there is no
// association data. See Flaw for whether the record is usable.
func Parse(raw []byte) (Record, bool) {
	if len(raw) <= headerLength {
		return Record{}, false
	}
	return Record{
		Usage:    Usage(raw[0]),
		Selector: Selector(raw[1]),
		Matching: Matching(raw[2]),
		Data:     bytes.Clone(raw[headerLength:]),
	}, true
}

// Flaw returns the first reason why SMTP clients cannot use the record, or "".
func (r Record) Flaw() Kind {
	switch {
	case r.Usage == PKIXTA || r.Usage == PKIXEE:
		return PKIXUsage
	case r.Usage > DANEEE:
		return UnknownUsage
	case r.Selector > PublicKey:
		return UnknownSelector
	case r.Matching > SHA512:
		return UnknownMatching
	case !r.hasPlausibleData():
		return BadData
	default:
		return ""
	}
}

// Usable reports whether SMTP clients can use the record.
func (r Record) Usable() bool { return r.Flaw() == "" }

// hasPlausibleData reports whether some certificate could match the data.
func (r Record) hasPlausibleData() bool {
	switch {
	case r.Matching == SHA256:
		return len(r.Data) == sha256.Size
	case r.Matching == SHA512:
		return len(r.Data) == sha512.Size
	case r.Selector == PublicKey:
		_, err := x509.ParsePKIXPublicKey(r.Data)
		return err == nil
	default:
		_, err := x509.ParseCertificate(r.Data)
		return err == nil
	}
}

// matches reports whether the association data is that of the certificate.
func (r Record) matches(c *x509.Certificate) bool {
	part := c.Raw
	if r.Selector == PublicKey {
		part = c.RawSubjectPublicKeyInfo
	}
	switch r.Matching {
	case SHA256:
		sum := sha256.Sum256(part)
		part = sum[:]
	case SHA512:
		sum := sha512.Sum512(part)
		part = sum[:]
	}
	return bytes.Equal(part, r.Data)
}

// String returns the record in its presentation form (RFC 6698 §2.2).
func (r Record) String() string {
	return fmt.Sprintf("%d %d %d %s", r.Usage, r.Selector, r.Matching, hex.EncodeToString(r.Data))
}
