package dane

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"
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

// matches reports whether the association data matches the certificate.
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

// Matched is the result of comparing the certificates of a server with its TLSA records.
type Matched struct {
	// OK reports that a client would accept the server as authentic.
	OK bool
	// Record is the record that matched, if OK.
	Record Record
	// Certificate is the certificate that it matches, if OK.
	Certificate *x509.Certificate
	// Problems is why OK is false; empty otherwise.
	Problems []Problem
}

// Match compares the certificates of a server, its own first, with TLSA records. It
// ignores unusable records.
//
// A DANE-EE record matches the server's own certificate, regardless of its names and
// validity period (RFC 7672 §3.1.1). A DANE-TA record matches another certificate of the
// chain: the server's own must chain to it, be valid at the given time, and have one of
// the names (§3.1.2): the base name of the records, the host and the mail domain (§3.2.2).
func Match(chain []*x509.Certificate, records []Record, names []string, at time.Time) Matched {
	var m Matched
	if len(chain) == 0 {
		m.note(NoMatch, "")
		return m
	}
	anchors := false
	for _, record := range records {
		switch {
		case !record.Usable():
		case record.Usage == DANEEE:
			if record.matches(chain[0]) {
				return Matched{OK: true, Record: record, Certificate: chain[0]}
			}
		default:
			anchors = true
			if anchor, ok := m.matchAnchor(chain, record, names, at); ok {
				return Matched{OK: true, Record: record, Certificate: anchor}
			}
		}
	}
	if len(m.Problems) == 0 {
		kind := NoMatch
		if anchors && len(chain) == 1 {
			kind = ChainNotServed
		}
		m.note(kind, joinRecords(records))
	}
	return m
}

// matchAnchor returns the CA certificate that a DANE-TA record matches and that the
// server's certificate chains to.
func (m *Matched) matchAnchor(chain []*x509.Certificate, record Record, names []string, at time.Time) (*x509.Certificate, bool) {
	above := chain[1:]
	i := slices.IndexFunc(above, record.matches)
	if i < 0 {
		return nil, false
	}
	anchor := above[i]
	if err := verify(chain, anchor, at); err != nil {
		m.note(ChainInvalid, err.Error())
		return nil, false
	}
	if !bearsName(chain[0], names) {
		m.note(NameMismatch, strings.Join(names, " "))
		return nil, false
	}
	return anchor, true
}

// note adds a problem once.
func (m *Matched) note(kind Kind, text string) {
	p := Problem{Kind: kind, Text: text}
	if !slices.Contains(m.Problems, p) {
		m.Problems = append(m.Problems, p)
	}
}

// verify returns why the server's certificate does not chain to the anchor.
func verify(chain []*x509.Certificate, anchor *x509.Certificate, at time.Time) error {
	roots, intermediates := x509.NewCertPool(), x509.NewCertPool()
	roots.AddCert(anchor)
	for _, c := range chain[1:] {
		intermediates.AddCert(c)
	}
	_, err := chain[0].Verify(x509.VerifyOptions{
		Roots: roots, Intermediates: intermediates, CurrentTime: at,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	return err
}

// bearsName reports whether the certificate is for one of the names.
func bearsName(c *x509.Certificate, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		return name != "" && c.VerifyHostname(name) == nil
	})
}

// joinRecords returns the usable records in their presentation form.
func joinRecords(records []Record) string {
	var texts []string
	for _, r := range records {
		if r.Usable() {
			texts = append(texts, r.String())
		}
	}
	return strings.Join(texts, ", ")
}

// Dial connects to the SMTP server of a host, starts TLS with serverName, and returns the
// certificates of the server, its own first. It must not verify them and must return by
// the deadline of ctx. It chooses the port and decides which addresses are allowed.
type Dial func(ctx context.Context, host, serverName string) ([]*x509.Certificate, error)

// Probe compares the certificates of a host with its TLSA records. The mail domain is the
// one whose MX records refer to the host. Errors are those of dial and say nothing about
// the records.
func (h Host) Probe(ctx context.Context, dial Dial, domain string, at time.Time) (Matched, error) {
	serverName := cmp.Or(h.BaseName, h.Name)
	chain, err := dial(ctx, h.Name, serverName)
	if err != nil {
		return Matched{}, fmt.Errorf("read certificates of %s: %w", h.Name, err)
	}
	m := Match(chain, h.Records, []string{serverName, h.Name, domain}, at)
	for i := range m.Problems {
		m.Problems[i].Host = h.Name
	}
	return m, nil
}
