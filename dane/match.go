package dane

import (
	"crypto/x509"
	"slices"
	"strings"
	"time"
)

// Matched tells whether the certificates of a server fit the TLSA records of its
// host.
type Matched struct {
	// OK reports that a client would take the server for authentic.
	OK bool
	// Record is the record that decided, where OK is true.
	Record Record
	// Certificate is the certificate that it matches, where OK is true.
	Certificate *x509.Certificate
	// Problems tells why OK is false; it is empty otherwise.
	Problems []Problem
}

// Match compares the certificates that a server presents, its own first, with TLSA
// records. Records that are not usable are passed over.
//
// A record with usage DANEEE is about the server's own certificate, whatever its
// names and dates (RFC 7672 §3.1.1). A record with usage DANETA is about another
// of the certificates presented: the server's own must lead to it, be within its
// dates at the given time, and bear one of the names (§3.1.2): the base name of
// the records, the host and the mail domain are what §3.2.2 asks for.
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

// matchAnchor returns the certificate above the server's own that a record with
// usage DANETA matches and that the server's own leads to.
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

// note keeps a problem, once.
func (m *Matched) note(kind Kind, text string) {
	p := Problem{Kind: kind, Text: text}
	if !slices.Contains(m.Problems, p) {
		m.Problems = append(m.Problems, p)
	}
}

// verify reports why the server's certificate does not lead to the anchor.
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
