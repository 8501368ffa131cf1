package dnscheck_test

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/dns/dnstest"
	"github.com/dmarcd/dmarcd/internal/dnscheck"
	"github.com/dmarcd/dmarcd/internal/facts"
)

// findingCase is a zone and the findings it must produce.
type findingCase struct {
	name string
	// domain to examine; default example.com.
	domain string
	zone   string
	// signed lists names at and below which answers are validated.
	signed  []string
	request dnscheck.Request
	// files are the contents of all web servers, by host and path.
	files map[string]served
	// probed enables connections to mail servers.
	probed bool
	// want lists finding ids that must be present, not those that must be absent.
	want, not []string
	// fix is a record that one of the findings must recommend.
	fix string
	// unproposed is a text that no recommended record may contain.
	unproposed string
	// message is a text that one of the findings must contain.
	message string
	// now is the clock, noon if nil.
	now func() time.Time
}

// sound is the zone of a domain without problems; cases modify it.
const sound = `
example.com             SOA 00
example.com             NS  ns.example.com
example.com             MX  10 mx.example.com
mx.example.com          A   192.0.2.1
example.com             TXT "v=spf1 mx -all"
_dmarc.example.com      TXT "v=DMARC1; p=reject; rua=mailto:dmarc@example.com"
default._domainkey.example.com TXT "v=DKIM1; k=ed25519; p=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="
_smtp._tls.example.com  TXT "v=TLSRPTv1; rua=mailto:tls@example.com"
`

// without returns the sound zone without the lines that contain one of the texts.
func without(texts ...string) string {
	var lines []string
	for line := range strings.Lines(sound) {
		if !slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(line, text) }) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// examine runs one case.
func (c findingCase) examine(t *testing.T, web *policyWeb) facts.Check {
	t.Helper()
	zone := dnstest.New(c.zone)
	for _, name := range c.signed {
		zone.Authenticate(name)
	}
	request := c.request
	request.Domain = c.domain
	request.Domain = cmp.Or(request.Domain, "example.com")
	options := dnscheck.Options{Resolver: zone, Dialer: web.dialer(t, c.files), WebRoots: web.roots, MarkRoots: web.marks, Now: noon}
	if c.now != nil {
		options.Now = c.now
	}
	if c.probed {
		options.DialMX = web.dialMX
	}
	return dnscheck.New(options).Examine(t.Context(), request)
}

// noon is the clock of these tests.
func noon() time.Time { return time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC) }

func TestFindings(t *testing.T) {
	t.Parallel()
	web := newPolicyWeb(t)
	provoked := map[string]bool{}
	for _, c := range slices.Concat(dmarcCases, dmarcTagCases, destinationCases, parkedCases, spfCases, dkimCases(t), transportCases, bimiCases, managedCases) {
		t.Run(c.name, func(t *testing.T) {
			check := c.examine(t, web)
			checkWords(t, check)
			var ids []string
			for _, f := range check.Findings {
				ids = append(ids, f.ID)
				provoked[f.ID] = true
			}
			for _, id := range c.want {
				if !slices.Contains(ids, id) {
					t.Errorf("got %v, want %s", ids, id)
				}
			}
			for _, id := range c.not {
				if slices.Contains(ids, id) {
					t.Errorf("got %v, want no %s", ids, id)
				}
			}
			if c.fix != "" && !slices.ContainsFunc(check.Findings, func(f dmarcd.Finding) bool { return f.Record.String() == c.fix }) {
				t.Errorf("got %+v, want the record %s", check.Findings, c.fix)
			}
			if c.unproposed != "" && slices.ContainsFunc(check.Findings, func(f dmarcd.Finding) bool { return strings.Contains(f.Record.String(), c.unproposed) }) {
				t.Errorf("got %+v, want no record with %s", check.Findings, c.unproposed)
			}
			if slices.ContainsFunc(check.Findings, func(f dmarcd.Finding) bool { return strings.Contains(f.What+f.Why, "….") }) {
				t.Errorf("got %+v, want one sign at the end of a sentence", check.Findings)
			}
			if c.message != "" && !slices.ContainsFunc(check.Findings, func(f dmarcd.Finding) bool { return strings.Contains(f.What, c.message) }) {
				t.Errorf("got %+v, want the words %q", check.Findings, c.message)
			}
		})
	}
	for _, e := range dnscheck.Catalogue() {
		if !provoked[e.ID] {
			t.Errorf("got no case that provokes %s, want one", e.ID)
		}
	}
}

// checkWords checks that the texts of every finding are complete: no placeholder left, and
// a record if the fix announces one.
func checkWords(t *testing.T, check facts.Check) {
	t.Helper()
	entries := map[string]dnscheck.Entry{}
	for _, e := range dnscheck.Catalogue() {
		entries[e.ID] = e
	}
	for _, f := range check.Findings {
		e := entries[f.ID]
		for _, pair := range [][2]string{{e.What, f.What}, {e.Why, f.Why}, {e.Fix, f.Fix}} {
			for _, rest := range strings.Split(pair[0], "{")[1:] {
				name, _, _ := strings.Cut(rest, "}")
				if strings.Contains(pair[1], "{"+name+"}") {
					t.Errorf("%s: got %q, want a word for %s", f.ID, pair[1], name)
				}
			}
		}
		if announced := strings.HasSuffix(f.Fix, ":"); announced != (f.Record.String() != "") {
			t.Errorf("%s: got the fix %q and the record %q, want both or neither", f.ID, f.Fix, f.Record)
		}
	}
}

func TestGradeAndNextStep(t *testing.T) {
	t.Parallel()
	web := newPolicyWeb(t)
	for _, tt := range []struct {
		name, zone  string
		signed      []string
		files       map[string]served
		grade, next string
	}{
		{
			name: "everything is there", signed: []string{"example.com"}, files: enforced, grade: "A+", next: "",
			zone: sound + stsRecord + "example.com DS 00010d02\nexample.com DNSKEY 00\n",
		},
		{name: "only the policy is there", zone: sound, grade: "A", next: "mta_sts.missing"},
		{
			name: "the policy is none", grade: "C", next: "dmarc.policy_none",
			zone: without("_dmarc") + `_dmarc.example.com TXT "v=DMARC1; p=none; rua=mailto:dmarc@example.com"`,
		},
		{name: "no DMARC record", zone: without("_dmarc"), grade: "F", next: "dmarc.missing"},
		{name: "failed lookup", zone: without("_dmarc") + "_dmarc.example.com INCONCLUSIVE", grade: "", next: "mta_sts.missing"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := findingCase{zone: tt.zone, signed: tt.signed, files: tt.files}
			check := c.examine(t, web)
			next := ""
			if check.Next != nil {
				next = check.Next.ID
			}
			if check.Grade != tt.grade || next != tt.next {
				t.Errorf("got grade %q and next step %q, want %q and %q; findings: %+v", check.Grade, next, tt.grade, tt.next, check.Findings)
			}
		})
	}
}

func TestExamineIsRepeatable(t *testing.T) {
	t.Parallel()
	web := newPolicyWeb(t)
	c := findingCase{zone: sound + stsRecord, files: enforced}
	first, second := c.examine(t, web), c.examine(t, web)
	if diff := diffFacts(first, second); diff != "" {
		t.Errorf("two checks of the same zone differ (-first +second):\n%s", diff)
	}
}

func TestBudgetIsOneForAll(t *testing.T) {
	t.Parallel()
	zone := dnstest.New(sound)
	const budget = 20
	check := dnscheck.New(dnscheck.Options{Resolver: zone, Budget: budget, Now: noon}).
		Examine(t.Context(), dnscheck.Request{Domain: "example.com"})
	if got := len(zone.Asked()); got > budget {
		t.Errorf("got %d questions, want at most %d", got, budget)
	}
	if !slices.ContainsFunc(check.Findings, func(f dmarcd.Finding) bool {
		return strings.HasSuffix(f.ID, ".inconclusive") && strings.Contains(f.What, "limit of 20 DNS queries")
	}) {
		t.Errorf("got %+v, want a part that reports the query limit", check.Findings)
	}
}

func TestNoQuestionIsAskedTwice(t *testing.T) {
	t.Parallel()
	zone := dnstest.New(sound)
	dnscheck.New(dnscheck.Options{Resolver: zone, Now: noon}).Examine(t.Context(), dnscheck.Request{Domain: "example.com"})
	asked := map[dns.Question]int{}
	for _, q := range zone.Asked() {
		if asked[q]++; asked[q] > 1 {
			t.Errorf("got the question %v again, want it once", q)
		}
	}
}

// TestConsentIsAskedForOnce checks that all destinations at a host produce one finding,
// since one record fixes them all.
func TestConsentIsAskedForOnce(t *testing.T) {
	t.Parallel()
	zone := own("v=DMARC1; p=reject; rua=mailto:a@reports.example.net,mailto:b@reports.example.net; ruf=mailto:f@reports.example.net") +
		"reports.example.net MX 10 mx.example.net"
	check := dnscheck.New(dnscheck.Options{Resolver: dnstest.New(zone), Now: noon}).
		Examine(t.Context(), dnscheck.Request{Domain: "example.com"})
	got := 0
	for _, f := range check.Findings {
		if f.ID == "dmarc.destination_refused" {
			got++
		}
	}
	if got != 1 {
		t.Errorf("got %d findings, want 1", got)
	}
}

// TestAddressesAreBounded checks that the stored addresses of a mail server do not depend on
// their order in the answer.
func TestAddressesAreBounded(t *testing.T) {
	t.Parallel()
	zone := dnstest.New(mailed("example.com MX 10 mx.example.com"))
	for i := range 250 {
		octet := byte(249 - i)
		zone.Add(
			dns.Record{Name: "mx.example.com", Type: dns.A, Addr: netip.AddrFrom4([4]byte{192, 0, 2, octet})},
			dns.Record{Name: "mx.example.com", Type: dns.AAAA, Addr: netip.AddrFrom16([16]byte{0: 0x20, 1: 0x01, 15: octet})},
		)
	}
	check := dnscheck.New(dnscheck.Options{Resolver: zone, Now: noon}).Examine(t.Context(), dnscheck.Request{Domain: "example.com"})
	hosts := check.Facts.MX.Hosts
	if len(hosts) != 1 || len(hosts[0].Addresses) != 40 || !slices.Contains(hosts[0].Addresses, "192.0.2.19") || !slices.Contains(hosts[0].Addresses, "2001::13") {
		t.Errorf("got %+v, want the 20 lowest addresses of each family", hosts)
	}
}

// TestMissingDomainIsNext wants the spelling of a name to be checked before records are
// published.
func TestMissingDomainIsNext(t *testing.T) {
	t.Parallel()
	checker := dnscheck.New(dnscheck.Options{Resolver: dnstest.New("example A 192.0.2.1"), Now: time.Now})
	check := checker.Examine(t.Context(), dnscheck.Request{Domain: "nope.example"})
	if check.Next == nil || check.Next.ID != "domain.missing" || check.Findings[0].ID != "domain.missing" || check.Grade == "A" {
		t.Errorf("got the next step %+v, the findings %+v and the grade %s, want domain.missing first, and a bad grade", check.Next, check.Findings, check.Grade)
	}
}
