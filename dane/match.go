package dane

import (
	"crypto/x509"
	"slices"
	"strings"
	"time"
)

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
