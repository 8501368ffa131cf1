package dane_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd/dane"
	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/certtest"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		raw  []byte
		want dane.Record
		ok   bool
	}{
		{name: "all fields", raw: []byte{3, 1, 2, 0xab, 0xcd}, want: dane.Record{Usage: dane.DANEEE, Selector: dane.PublicKey, Matching: dane.SHA512, Data: []byte{0xab, 0xcd}}, ok: true},
		{name: "values of the future are kept", raw: []byte{255, 254, 253, 0}, want: dane.Record{Usage: 255, Selector: 254, Matching: 253, Data: []byte{0}}, ok: true},
		{name: "no data", raw: []byte{3, 1, 1}},
		{name: "cut short", raw: []byte{3}},
		{name: "nothing"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, ok := dane.Parse(tt.raw)
			if ok != tt.ok {
				t.Errorf("got ok %v want %v", ok, tt.ok)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("record (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParsePreservesItsOwnData(t *testing.T) {
	t.Parallel()
	raw := []byte{3, 1, 0, 7}
	record, _ := dane.Parse(raw)
	raw[3] = 8
	if record.Data[0] != 7 {
		t.Errorf("got data %v want [7]", record.Data)
	}
}

func TestRecordFlaw(t *testing.T) {
	t.Parallel()
	c := issue(t, nil, "server", "mx.example.com").Leaf
	for _, tt := range []struct {
		name   string
		record dane.Record
		want   dane.Kind
	}{
		{"3 1 1", recordOf(3, 1, 1, c), ""},
		{"2 0 2", recordOf(2, 0, 2, c), ""},
		{"3 0 0 with a certificate", recordOf(3, 0, 0, c), ""},
		{"3 1 0 with a public key", recordOf(3, 1, 0, c), ""},
		{"usage 0", recordOf(0, 1, 1, c), dane.PKIXUsage},
		{"usage 1", recordOf(1, 1, 1, c), dane.PKIXUsage},
		{"usage 4", recordOf(4, 1, 1, c), dane.UnknownUsage},
		{"selector 2", recordOf(3, 2, 1, c), dane.UnknownSelector},
		{"matching type 3", recordOf(3, 1, 3, c), dane.UnknownMatching},
		{"SHA-256 cut short", dane.Record{Usage: 3, Selector: 1, Matching: 1, Data: make([]byte, 31)}, dane.BadData},
		{"SHA-512 as long as SHA-256", dane.Record{Usage: 3, Selector: 1, Matching: 2, Data: make([]byte, 32)}, dane.BadData},
		{"no certificate", dane.Record{Usage: 3, Selector: 0, Matching: 0, Data: []byte("x")}, dane.BadData},
		{"a certificate instead of a public key", dane.Record{Usage: 3, Selector: 1, Matching: 0, Data: c.Raw}, dane.BadData},
		{"the usage is told first", dane.Record{Usage: 0, Selector: 9, Matching: 9}, dane.PKIXUsage},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := tt.record.Flaw(); got != tt.want {
				t.Errorf("got %q want %q", got, tt.want)
			}
			if got, want := tt.record.Usable(), tt.want == ""; got != want {
				t.Errorf("usable: got %v want %v", got, want)
			}
		})
	}
}

func TestRecordString(t *testing.T) {
	t.Parallel()
	record := dane.Record{Usage: dane.DANETA, Selector: dane.FullCertificate, Matching: dane.SHA256, Data: []byte{0x0f, 0xf0}}
	if got, want := record.String(), "2 0 1 0ff0"; got != want {
		t.Errorf("got %q want %q", got, want)
	}
}

func TestSecurityOf(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		answer dns.Answer
		want   string
	}{
		{"validated data", dns.Answer{Outcome: dns.Data, Authentic: true}, "secure"},
		{"validated absence", dns.Answer{Outcome: dns.NoSuchName, Authentic: true}, "secure"},
		{"data", dns.Answer{Outcome: dns.Data}, "insecure"},
		{"absence", dns.Answer{Outcome: dns.NoData}, "insecure"},
		{"no answer", dns.Answer{}, "unknown"},
		{"no answer, whatever its flag says", dns.Answer{Authentic: true}, "unknown"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := dane.SecurityOf(tt.answer).String(); got != tt.want {
				t.Errorf("got %s want %s", got, tt.want)
			}
		})
	}
}

// FuzzParse checks that a record is its wire form again, that its presentation form
// is plain text of four fields, and that a digest of a wrong length is never taken
// for usable.
func FuzzParse(f *testing.F) {
	f.Add([]byte{3, 1, 1})
	f.Add(append([]byte{3, 1, 1}, make([]byte, 32)...))
	f.Add(append([]byte{2, 0, 2}, make([]byte, 64)...))
	f.Add([]byte{3, 1, 0, 0x30, 0x03, 1, 2, 3})
	f.Add([]byte{9, 9, 9, 9})
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, ok := dane.Parse(raw)
		if ok != (len(raw) > 3) {
			t.Fatalf("%d octets: got ok %v", len(raw), ok)
		}
		if !ok {
			return
		}
		again := append([]byte{byte(r.Usage), byte(r.Selector), byte(r.Matching)}, r.Data...)
		if !bytes.Equal(again, raw) {
			t.Errorf("got %x want %x", again, raw)
		}
		if fields := strings.Fields(r.String()); len(fields) != 4 || len(fields[3]) != 2*len(r.Data) {
			t.Errorf("got presentation form %q", r.String())
		}
		length := map[dane.Matching]int{dane.SHA256: 32, dane.SHA512: 64}[r.Matching]
		if length > 0 && len(r.Data) != length && r.Usable() {
			t.Errorf("%s is taken for usable", r)
		}
	})
}

func TestMatch(t *testing.T) {
	t.Parallel()
	type (
		chain   = []*x509.Certificate
		records = []dane.Record
	)
	root := issue(t, nil, "root")
	middle := issue(t, root, "middle")
	leaf := issue(t, middle, "server", "mx.example.com").Leaf
	other := issue(t, nil, "other")
	served := chain{leaf, middle.Leaf, root.Leaf}
	names := []string{"mx.example.com", "example.com"}
	for _, tt := range []struct {
		name    string
		chain   chain
		records records
		names   []string
		after   time.Duration // since today
		matched *x509.Certificate
		want    []dane.Kind
	}{
		{name: "3 1 1", chain: served, records: records{recordOf(3, 1, 1, leaf)}, names: names, matched: leaf},
		{name: "3 1 2", chain: served, records: records{recordOf(3, 1, 2, leaf)}, names: names, matched: leaf},
		{name: "3 0 0", chain: served, records: records{recordOf(3, 0, 0, leaf)}, names: names, matched: leaf},
		{name: "3 1 0", chain: served, records: records{recordOf(3, 1, 0, leaf)}, names: names, matched: leaf},
		{name: "usage 3 ignores dates and names", chain: chain{leaf}, records: records{recordOf(3, 0, 1, leaf)}, after: 9000 * time.Hour, matched: leaf},
		{name: "usage 3 is not about an issuer", chain: served, records: records{recordOf(3, 1, 1, root.Leaf)}, names: names, want: []dane.Kind{dane.NoMatch}},
		{name: "the second of two records", chain: served, records: records{recordOf(3, 1, 1, other.Leaf), recordOf(3, 1, 1, leaf)}, names: names, matched: leaf},
		{name: "2 0 1 for the root", chain: served, records: records{recordOf(2, 0, 1, root.Leaf)}, names: names, matched: root.Leaf},
		{name: "2 1 1 for an authority in between", chain: served, records: records{recordOf(2, 1, 1, middle.Leaf)}, names: names, matched: middle.Leaf},
		{name: "2 1 1 for an authority without the root", chain: chain{leaf, middle.Leaf}, records: records{recordOf(2, 1, 1, middle.Leaf)}, names: names, matched: middle.Leaf},
		{name: "usage 2 is not about the server's own certificate", chain: served, records: records{recordOf(2, 1, 1, leaf)}, names: names, want: []dane.Kind{dane.NoMatch}},
		{name: "usage 2 without the chain", chain: chain{leaf}, records: records{recordOf(2, 0, 1, root.Leaf)}, names: names, want: []dane.Kind{dane.ChainNotServed}},
		{name: "usage 2 with a gap in the chain", chain: chain{leaf, root.Leaf}, records: records{recordOf(2, 0, 1, root.Leaf)}, names: names, want: []dane.Kind{dane.ChainInvalid}},
		{name: "usage 2 with a chain that is not the server's", chain: chain{leaf, middle.Leaf, other.Leaf}, records: records{recordOf(2, 0, 1, other.Leaf)}, names: names, want: []dane.Kind{dane.ChainInvalid}},
		{name: "usage 2 minds dates", chain: served, records: records{recordOf(2, 0, 1, root.Leaf)}, names: names, after: 9000 * time.Hour, want: []dane.Kind{dane.ChainInvalid}},
		{name: "usage 2 minds names", chain: served, records: records{recordOf(2, 0, 1, root.Leaf)}, names: []string{"other.example.com", ""}, want: []dane.Kind{dane.NameMismatch}},
		{name: "a record of usage 3 makes good for one of usage 2", chain: served, records: records{recordOf(2, 0, 1, root.Leaf), recordOf(3, 1, 1, leaf)}, matched: leaf},
		{name: "usage 1 is passed over", chain: served, records: records{recordOf(1, 1, 1, leaf)}, names: names, want: []dane.Kind{dane.NoMatch}},
		{name: "no records", chain: served, names: names, want: []dane.Kind{dane.NoMatch}},
		{name: "no certificates", records: records{recordOf(3, 1, 1, leaf)}, names: names, want: []dane.Kind{dane.NoMatch}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := dane.Match(tt.chain, tt.records, tt.names, today.Add(tt.after))
			if got.OK != (tt.matched != nil) || got.Certificate != tt.matched {
				t.Errorf("got ok %v, certificate %v; want %v", got.OK, subject(got.Certificate), subject(tt.matched))
			}
			if kinds := kindsOf(got.Problems); !slices.Equal(kinds, tt.want) {
				t.Errorf("problems: got %v want %v", got.Problems, tt.want)
			}
			if got.OK && !slices.ContainsFunc(tt.records, func(r dane.Record) bool { return r.String() == got.Record.String() }) {
				t.Errorf("got record %v, want one of those given", got.Record)
			}
		})
	}
}

func subject(c *x509.Certificate) string {
	if c == nil {
		return "none"
	}
	return c.Subject.CommonName
}

func kindsOf(problems []dane.Problem) []dane.Kind {
	var kinds []dane.Kind
	for _, p := range problems {
		kinds = append(kinds, p.Kind)
	}
	return kinds
}

func TestHostProbe(t *testing.T) {
	t.Parallel()
	root := issue(t, nil, "root")
	leaf := issue(t, root, "server", "base.example.net").Leaf
	dial := func(_ context.Context, host, serverName string) ([]*x509.Certificate, error) {
		if host != "mx.example.com" || serverName != "base.example.net" {
			return nil, errors.New("dialled " + host + " as " + serverName)
		}
		return []*x509.Certificate{leaf, root.Leaf}, nil
	}
	host := dane.Host{Name: "mx.example.com", BaseName: "base.example.net", Records: []dane.Record{recordOf(2, 1, 1, root.Leaf)}}

	t.Run("the base name is asked for and will do as a name", func(t *testing.T) {
		t.Parallel()
		got, err := host.Probe(t.Context(), dial, "example.com", today)
		if err != nil || !got.OK {
			t.Errorf("got %+v, error %v; want a match", got, err)
		}
	})
	t.Run("problems bear the host", func(t *testing.T) {
		t.Parallel()
		other := host
		other.Records = []dane.Record{recordOf(3, 1, 1, root.Leaf)}
		got := musttest.Get(other.Probe(t.Context(), dial, "example.com", today))(t)
		if len(got.Problems) != 1 || got.Problems[0].Host != "mx.example.com" || got.Problems[0].Text != other.Records[0].String() {
			t.Errorf("got problems %v want one of mx.example.com with the record", got.Problems)
		}
	})
	t.Run("without records the host itself is asked for", func(t *testing.T) {
		t.Parallel()
		_, err := dane.Host{Name: "mx.example.com"}.Probe(t.Context(), dial, "example.com", today)
		if err == nil || !strings.Contains(err.Error(), "dialled mx.example.com as mx.example.com") {
			t.Errorf("got error %v want that of dial", err)
		}
	})
}

// today lies within the dates of every certificate of the tests.
var today = time.Date(2026, time.November, 15, 9, 30, 0, 0, time.UTC)

// issue makes a certificate that lives for a month around today. Without an issuer
// it signs itself, without names it is an authority.
func issue(t *testing.T, issuer *tls.Certificate, subject string, names ...string) *tls.Certificate {
	t.Helper()
	return certtest.New(t, issuer, x509.Certificate{
		Subject: pkix.Name{CommonName: subject}, DNSNames: names, IsCA: len(names) == 0,
		NotBefore: today.AddDate(0, 0, -15), NotAfter: today.AddDate(0, 0, 15),
	})
}

// recordOf returns the TLSA record of the given parameters that matches c.
func recordOf(usage dane.Usage, selector dane.Selector, matching dane.Matching, c *x509.Certificate) dane.Record {
	part := c.Raw
	if selector == dane.PublicKey {
		part = c.RawSubjectPublicKeyInfo
	}
	switch matching {
	case dane.SHA256:
		sum := sha256.Sum256(part)
		part = sum[:]
	case dane.SHA512:
		sum := sha512.Sum512(part)
		part = sum[:]
	}
	return dane.Record{Usage: usage, Selector: selector, Matching: matching, Data: part}
}
