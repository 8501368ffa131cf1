package spf_test

import (
	"context"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/dns/dnstest"
	"github.com/dmarcd/dmarcd/internal/corpustest"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/spf"
)

func TestEvaluateTable(t *testing.T) {
	t.Parallel()
	known := corpustest.Disagreements{
		"spf-evaluate-017": "the included record is a:%%, which the grammar of §7.1 allows: domain-end may be any macro-expand; the name is looked for and not found",
	}
	var in struct {
		Zone struct {
			TXT, A, AAAA, MX, PTR map[string][]string
			ServFail              []string `json:"SERVFAIL"`
		}
		Cases []struct {
			ID, IP, Helo string
			MailFrom     string `json:"mail_from"`
			Expect       struct{ SPF, Explanation string }
		}
	}
	corpustest.Table(t, "mjl-+mox/spf-evaluate.json", &in)
	zone := dnstest.New("")
	for name, strs := range in.Zone.TXT { // the strings of one record
		zone.Add(dns.Record{Name: name, Type: dns.TXT, Text: strs})
	}
	for _, addresses := range []map[string][]string{in.Zone.A, in.Zone.AAAA} {
		for name, addrs := range addresses {
			for _, addr := range addrs {
				zone.Add(addressRecord(name, netip.MustParseAddr(addr)))
			}
		}
	}
	for name, lines := range in.Zone.MX {
		for _, line := range lines {
			preference, host, _ := strings.Cut(line, " ")
			n := musttest.Get(strconv.ParseUint(preference, 10, 16))(t)
			zone.Add(dns.Record{Name: name, Type: dns.MX, Preference: uint16(n), Host: host})
		}
	}
	for addr, names := range in.Zone.PTR {
		for _, name := range names {
			zone.Add(dns.Record{Name: reverseName(t, addr), Type: dns.PTR, Host: name})
		}
	}
	for _, line := range in.Zone.ServFail {
		_, name, _ := strings.Cut(line, " ")
		zone.Fail(name, dns.TXT)
	}
	comparison := corpustest.Compare(t, known)
	for _, c := range in.Cases {
		v := spf.Check(context.Background(), zone, spf.Identity{
			IP: netip.MustParseAddr(c.IP), Helo: c.Helo, MailFrom: c.MailFrom,
		})
		comparison.Compare(c.ID, v.Result.String() == c.Expect.SPF, v, c.Expect)
		if v.Explanation != c.Expect.Explanation {
			t.Errorf("%s: got explanation %q, want %q", c.ID, v.Explanation, c.Expect.Explanation)
		}
	}
}

func TestMacroTable(t *testing.T) {
	t.Parallel()
	known := corpustest.Disagreements{
		"spf-macro-expand-031": "a trailing dot is no part of the name: §7.3 calls the value a validated domain name, its examples have none",
	}
	var in struct {
		Cases []struct {
			ID, Macro, IP string
			Expect        struct {
				Expansion string
				Error     bool
			}
		}
	}
	corpustest.Table(t, "mjl-+mox/spf-macro-expand.json", &in)
	comparison := corpustest.Compare(t, known)
	for _, c := range in.Cases {
		zone := dnstest.New(`
			email.example.com       TXT "v=spf1 -all exp=why.example.com"
			mx.mox.example          A   10.0.0.1
			sub.mx.mox.example      A   10.0.0.2
			other.example           A   10.0.0.3
			1.0.0.10.in-addr.arpa   PTR other.example
			1.0.0.10.in-addr.arpa   PTR sub.mx.mox.example
			1.0.0.10.in-addr.arpa   PTR mx.mox.example
			2.0.0.10.in-addr.arpa   PTR other.example
			2.0.0.10.in-addr.arpa   PTR sub.mx.mox.example
			2.0.0.10.in-addr.arpa   PTR mx.mox.example`)
		zone.Add(dns.Record{Name: "why.example.com", Type: dns.TXT, Text: []string{c.Macro}})
		ip := netip.MustParseAddr("192.0.2.3")
		if c.IP != "" {
			ip = netip.MustParseAddr(c.IP)
		}
		v := spf.Check(context.Background(), zone, spf.Identity{
			IP: ip, Helo: "mx.mox.example", MailFrom: "strong-bad@email.example.com", Receiver: "self.example",
		})
		// A text with an error in it is no explanation.
		if c.Expect.Error {
			c.Expect.Expansion = ""
		}
		comparison.Compare(c.ID, v.Explanation == c.Expect.Expansion, v, c.Expect)
	}
}

func TestParseTables(t *testing.T) {
	t.Parallel()
	const (
		quoted   = "the quotation marks belong to the zone file; as content they are no SPF record (§4.5)"
		extra    = "extra is no known mechanism, which is an error of syntax (§4.6)"
		loop     = "the record alone is well formed; that it loops is told by Explain, see TestExplainTable"
		resolved = "the record alone is well formed; what DNS limits come to is told by Explain and Check"
	)
	tables := []struct {
		file  string
		known corpustest.Disagreements
	}{
		{"mjl-+mox/spf-record-parse.json", corpustest.Disagreements{
			"spf-record-parse-005": "a:x has no dot before its top-level label, which §7.1 demands",
		}},
		{"domainaware+checkdmarc/spf-record-parse.json", corpustest.Disagreements{
			"Test.testSPFMissingMXRecord":                   quoted,
			"Test.testSPFMissingARecord":                    quoted,
			"TestSPFExpModifier.testTextAfterExpValueWarns": extra,
			"TestSPFRedirect.testRedirectLoop":              loop,
			"TestSPFMxBranches.testTooManyMxRecords":        resolved,
		}},
		{"georgestarcher+dmarcgo/spf-record-parse.json", corpustest.Disagreements{
			"spf-record-parse-012": resolved,
		}},
	}
	for _, tab := range tables {
		t.Run(tab.file, func(t *testing.T) {
			t.Parallel()
			var in struct {
				Cases []struct {
					ID, Record string
					Expect     struct {
						Valid  *bool
						Status string
					}
				}
			}
			corpustest.Table(t, tab.file, &in)
			comparison := corpustest.Compare(t, tab.known)
			for _, c := range in.Cases {
				valid := c.Expect.Status == "valid" || (c.Expect.Valid != nil && *c.Expect.Valid)
				_, err := spf.Parse(c.Record)
				comparison.Compare(c.ID, (err == nil) == valid, err, "valid: "+strconv.FormatBool(valid))
			}
		})
	}
}

// TestExplainTable compares the number of lookups.
func TestExplainTable(t *testing.T) {
	t.Parallel()
	var in struct {
		Cases []struct {
			ID, Record string
			Expect     struct {
				Error   string
				Lookups *int `json:"dns_lookups"`
			}
		}
	}
	corpustest.Table(t, "domainaware+checkdmarc/spf-record-parse.json", &in)
	compared := 0
	for _, c := range in.Cases {
		zone := dnstest.New("")
		zone.Add(dns.Record{Name: "example.com", Type: dns.TXT, Text: []string{strings.Trim(c.Record, `"`)}})
		for n := range 11 {
			zone.Add(dns.Record{Name: "example.com", Type: dns.MX, Host: "mx" + strconv.Itoa(n) + ".example.com"})
		}
		x := spf.Explain(context.Background(), zone, "example.com", spf.Limits{})
		if c.Expect.Lookups != nil {
			compared++
			if x.Lookups != *c.Expect.Lookups {
				t.Errorf("%s: got %d lookups, want %d", c.ID, x.Lookups, *c.Expect.Lookups)
			}
		}
		if c.Expect.Error != "" {
			compared++
			if x.Status != spf.StatusPermError {
				t.Errorf("%s: got status %q, want %q", c.ID, x.Status, spf.StatusPermError)
			}
		}
	}
	if compared != 29 {
		t.Errorf("got %d comparisons, want 29", compared)
	}
}

func TestLookupTable(t *testing.T) {
	t.Parallel()
	var in struct {
		Cases []struct {
			ID     string
			TXT    []string
			Expect struct{ Error, Record, Warning string }
		}
	}
	corpustest.Table(t, "domainaware+checkdmarc/spf-lookup.json", &in)
	for _, c := range in.Cases {
		zone := dnstest.New(`example.com A 192.0.2.1`)
		for _, text := range c.TXT {
			zone.Add(dns.Record{Name: "example.com", Type: dns.TXT, Text: []string{strings.Trim(text, `"`)}})
		}
		x := spf.Explain(context.Background(), zone, "example.com", spf.Limits{})
		var want spf.Status
		switch c.Expect.Error {
		case "SPFRecordNotFound":
			want = spf.StatusNone
		case "multiple records":
			want = spf.StatusMultiple
		default:
			want = x.Status
		}
		if x.Status != want || (c.Expect.Record != "" && x.Root.Record.Text != c.Expect.Record) {
			t.Errorf("%s: got status %q and record %q, want %+v", c.ID, x.Status, x.Root.Record.Text, c.Expect)
		}
		warnings := map[string]spf.Kind{
			"deprecated Sender ID record": spf.SenderID,
			"a TXT string over 255 bytes": spf.LongString,
		}
		if kind := warnings[c.Expect.Warning]; c.Expect.Warning != "" && !hasProblem(x.Problems, kind) {
			t.Errorf("%s: got problems %v, want one of kind %q", c.ID, x.Problems, kind)
		}
	}
}

func hasProblem(problems []spf.Problem, kind spf.Kind) bool {
	for _, p := range problems {
		if p.Kind == kind {
			return true
		}
	}
	return false
}
