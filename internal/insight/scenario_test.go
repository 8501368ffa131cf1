package insight_test

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/rollup"
	"github.com/dmarcd/dmarcd/internal/senders"
	"github.com/dmarcd/dmarcd/internal/senders/mmdb"
)

// flow is mail of one source: some messages on each day of a period.
type flow struct {
	source string
	// first is the first day, days how many there are: 30 if 0.
	first, days int
	perDay      int64
	from        string // example.com if ""
	signed      string // signatures, separated by commas: selector, domain, result
	spf         string // envelope domain and result
	reasons     rollup.Reasons
	blocked     bool // receivers rejected it
}

// want is what a consultant would say of a sender. cause and fix are a part of the
// sentence, "-" stands for none at all.
type want struct {
	sender     string
	class      dmarcd.Class
	cause, fix string
}

// scenario is a history of example.com.
type scenario struct {
	name string
	// record is the DMARC record, "v=DMARC1; p=none; rua=mailto:d@example.com" if "",
	// "-" for none.
	record string
	facts  facts.Facts
	checks []facts.StoredCheck // of the period, the latest first; none for facts alone
	team   map[string]dmarcd.Class
	own    []dmarcd.TeamSender
	mail   []flow
	want   []want
	// senders are the keys of all senders, nil if others do not matter; evidence is a part of
	// that of a sender.
	senders  []string
	evidence map[string]string
	// parked is the mark of a user, accepted how many forwarded messages a person accepted.
	parked   bool
	accepted int64
	stage    dmarcd.Stage
	action   dmarcd.ActionID // "" for none
	// about is the key of the sender that the action is about.
	about string
	// publish is the record of the action.
	publish string
}

const watching = "v=DMARC1; p=none; rua=mailto:d@example.com"

// hostNames are the names of the sources of scenarios. All others have none.
var hostNames = hosts{
	"198.51.100.10": "o1.ptr1.sendgrid.net", "198.51.100.11": "mail1.mcdlv.net", "198.51.100.12": "a1.smtp-out.amazonses.com",
	"198.51.100.13": "mta1.mlsend.com", "198.51.100.14": "outbyoip4.pod17.euc1.zdsys.com", "198.51.100.15": "mail-wr1-f41.google.com",
	"198.51.100.16": "mail-am6.outbound.protection.outlook.com", "198.51.100.17": "mail02.groups.io", "198.51.100.18": "mx1.forwardemail.net",
	"198.51.100.19": "sonic308-1.consmr.mail.ne1.yahoo.com", "198.51.100.20": "mx.example.com", "198.51.100.21": "lists.debian.org",
	"198.51.100.30": "www1.your-server.de", "198.51.100.31": "www2.your-server.de", "198.51.100.32": "mx0a.pphosted.com",
	"198.51.100.22": "mail-db3.outbound.protection.outlook.com",
	"192.0.2.2":     "mail2.example.com", "192.0.2.40": "out.isp.example", "192.0.2.41": "out.isp.example", "2001:db8:0:2::1": "mx6.example.com",
}

// scenarioService knows four networks beside the catalogue.
func scenarioService(t testing.TB) *insight.Service {
	t.Helper()
	path := filepath.Join(t.TempDir(), "networks.mmdb")
	file := musttest.Get(os.Create(path))(t)
	err := mmdb.Write(file, mmdb.Options{Type: "Test", Description: "A test.", Built: time.Unix(1e9, 0)}, func(yield func(mmdb.Range, error) bool) {
		for _, r := range []struct {
			first, last, name string
			number            uint32
		}{
			{"192.0.2.0", "192.0.2.255", "Office", 64496},
			{"198.51.100.0", "198.51.100.255", "Rented Servers", 64497},
			{"203.0.113.0", "203.0.113.255", "Access Provider", 64498},
			{"2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", "Office Six", 64499},
		} {
			if !yield(mmdb.Range{First: netip.MustParseAddr(r.first), Last: netip.MustParseAddr(r.last), Number: r.number, Name: r.name, Country: "NL"}, nil) {
				return
			}
		}
	})
	musttest.Do(t, err)
	musttest.Do(t, file.Close())
	atlas := musttest.Get(senders.OpenAtlas(senders.Files{Networks: path}))(t)
	return insight.New(atlas, senders.NewCatalogue(senders.Known()), hostNames, nil)
}

// reports makes the records that receivers would have sent.
func (s scenario) reports() *team {
	record, _ := dmarc.Parse(s.published())
	t := &team{own: s.own}
	for _, f := range s.mail {
		from := cmp.Or(f.from, "example.com")
		identity, dkim, spf := f.identity(from, record)
		t.Identities = append(t.Identities, identity)
		t.Addresses = append(t.Addresses, f.source)
		disposition := aggregate.PolicyNone
		if f.blocked {
			disposition = aggregate.PolicyReject
		}
		for day := range cmp.Or(f.days, 30) {
			t.Shares = append(t.Shares, rollup.Share{
				Report: dmarcd.ReportID(len(t.Shares) + 1), Reporter: "receiver.example", Day: dmarcd.Day(20000 + f.first + day), From: from,
				Records: []rollup.Record{{
					Count: f.perDay, Address: uint32(len(t.Addresses) - 1), Identity: uint32(len(t.Identities) - 1),
					Outcome: mail{dkim: dkim, spf: spf, disposition: disposition}.outcome(),
				}},
			})
		}
	}
	t.perBlock = 50
	return t
}

// identity evaluates a flow as a receiver does.
func (f flow) identity(from string, record dmarc.Record) (identity rollup.Identity, dkim, spf bool) {
	aligned := func(domain string, mode dmarc.Mode) bool {
		return domain == from || mode == dmarc.Relaxed && dmarcd.Covers("example.com", domain)
	}
	identity.Reasons = f.reasons
	for signature := range strings.SplitSeq(f.signed, ",") {
		var s rollup.Signature
		var result aggregate.Result
		if n, _ := fmt.Sscan(signature, &s.Selector, &s.Domain, &result); n == 3 {
			s.Result = rollup.ResultOf(result)
			identity.Signatures = append(identity.Signatures, s)
			dkim = dkim || s.Passed() && aligned(s.Domain, record.ADKIM)
		}
	}
	var c rollup.SPFCheck
	var result aggregate.Result
	if n, _ := fmt.Sscan(f.spf, &c.Domain, &result); n == 2 {
		c.Result = rollup.ResultOf(result)
		identity.Envelope, identity.SPF = c.Domain, []rollup.SPFCheck{c}
		spf = c.Passed() && aligned(c.Domain, record.ASPF)
	}
	return identity, dkim, spf
}

func (s scenario) published() string {
	if s.record == "-" {
		return ""
	}
	return cmp.Or(s.record, watching)
}

// TestScenarios holds what is said of made-up histories against what a DMARC consultant
// would say.
func TestScenarios(t *testing.T) {
	t.Parallel()
	all := slices.Concat(ownScenarios, serviceScenarios, relayScenarios, spoofScenarios, recordScenarios, teamScenarios, linkScenarios, divisionScenarios, classifiedScenarios, acceptScenarios)
	if len(all) < 40 {
		t.Errorf("got %d scenarios, want at least 40", len(all))
	}
	service := scenarioService(t)
	for _, s := range all {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			s.check(t, service)
		})
	}
}

// checked is a check that found these facts from a day on, until the next one.
func checked(day dmarcd.Day, found facts.Facts) facts.StoredCheck {
	found.Domain = "example.com"
	return facts.StoredCheck{FirstAt: time.Unix(int64(day)*24*60*60, 0).UTC(), Check: facts.Check{Facts: &found}}
}

func (s scenario) check(t *testing.T, service *insight.Service) {
	t.Helper()
	first, last := dmarcd.Day(20000), dmarcd.Day(20029)
	m := musttest.Get(service.Read(t.Context(), s.reports(), "example.com", dmarcd.Days{From: &first, To: &last}))(t)
	defer m.Close()
	s.facts.Domain = "example.com"
	about := insight.Domain{Name: "example.com", Facts: &s.facts, Checks: s.checks, Classes: s.team}
	m.SetDomains(about)
	list := musttest.Get(m.List(t.Context(), insight.Query{Group: insight.GroupSender, Limit: 100, Assess: true}))(t)
	s.checkSenders(t, list.Rows)
	record := s.published()
	all := musttest.Get(m.Advise(t.Context(), insight.Situation{Domain: about, Published: insight.Published{
		Record: record, Own: record != "", Base: cmp.Or(record, watching), Addressed: true, ReportsHere: true, Parked: s.parked, Accepted: s.accepted,
	}}))(t)
	simulated := musttest.Get(m.Simulate(t.Context(), insight.Trial{Domain: about, Policy: insight.Policy{Record: dmarc.Record{P: dmarc.Reject}}}))(t)
	s.checkAdvice(t, &all[0], &simulated[0])
}

func (s scenario) checkSenders(t *testing.T, rows []insight.Row) {
	t.Helper()
	found := make(map[string]*insight.Assessment)
	for _, row := range rows {
		found[row.Key] = row.Assessment
	}
	keys := slices.Sorted(maps.Keys(found))
	if s.senders != nil && !slices.Equal(keys, s.senders) {
		t.Errorf("got the senders %q, want %q", keys, s.senders)
	}
	for _, w := range s.want {
		got := found[w.sender]
		if got == nil {
			t.Errorf("got no sender %s among %q", w.sender, keys)
			continue
		}
		if got.Class != w.class || !contains(got.Cause, w.cause) || !contains(got.Fix, w.fix) {
			t.Errorf("%s: got %s, cause %q, fix %q\nevidence %q\nwant %s, %q, %q", w.sender, got.Class, got.Cause, got.Fix, got.Evidence, w.class, w.cause, w.fix)
		}
		if evidence := strings.Join(got.Evidence, " "); evidence == "" || !strings.Contains(evidence, s.evidence[w.sender]) {
			t.Errorf("%s: got the evidence %q, want %q", w.sender, evidence, s.evidence[w.sender])
		}
	}
}

func (s scenario) checkAdvice(t *testing.T, advice *dmarcd.Advice, simulated *insight.Simulation) {
	t.Helper()
	var got dmarcd.Action
	if next := advice.Next(); next != nil {
		got = *next
	}
	var published string
	if got.Record != nil {
		published = got.Record.Value
	}
	if advice.Stage != s.stage || got.ID != s.action || s.publish != "" && published != s.publish || s.about != "" && got.Sender != s.about {
		t.Errorf("got stage %s, action %+v with record %q, want %s, %q about %q, record %q", advice.Stage, got, published, s.stage, s.action, s.about, s.publish)
	}
	if advice.Conclusion == "" || len(advice.Steps) == 0 {
		t.Errorf("got the conclusion %q with %d steps, want both", advice.Conclusion, len(advice.Steps))
	}
	if got.ID != "" && (got.Title == "" || got.Reason == "") {
		t.Errorf("got the action %+v without a title or reason", got)
	}
	checkSteps(t, advice)
	if got.ID == dmarcd.ActionTighten {
		s.checkHarmless(t, got, simulated)
	}
}

// contains reports whether a sentence has a part; "-" stands for no sentence, "" for any.
func contains(text, part string) bool {
	if part == "-" {
		return text == ""
	}
	return strings.Contains(text, part)
}
