package dane_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd/dane"
	"github.com/dmarcd/dmarcd/dns"
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

func TestParseKeepsItsOwnData(t *testing.T) {
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
		{"a certificate in place of a public key", dane.Record{Usage: 3, Selector: 1, Matching: 0, Data: c.Raw}, dane.BadData},
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
