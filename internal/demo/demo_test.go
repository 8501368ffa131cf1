package demo_test

import (
	"bytes"
	"errors"
	"io"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/dkim"
	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/demo"
	"github.com/dmarcd/dmarcd/internal/dnscheck"
	"github.com/dmarcd/dmarcd/internal/intake/unpack"
	"github.com/dmarcd/dmarcd/internal/senders"
	"github.com/dmarcd/dmarcd/spf"
)

func question(name string) dns.Question { return dns.Question{Name: name, Type: dns.TXT} }

// The reports of a day must say what a receiver would have found in the DNS of that
// day.
func TestReportsAgreeWithTheDNS(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		return
	}
	s := scenario()
	for document := range days(s, 19) {
		if document.Kind != dmarcd.KindAggregate {
			continue
		}
		p := parse(t, document)
		zone := s.Zone(time.Unix(p.aggregate.Metadata.Begin, 0))
		for _, record := range p.records {
			identity := spf.Identity{IP: record.Addr, MailFrom: "bounce@" + record.EnvelopeFrom}
			want := aggregate.Result(strings.ToLower(spf.Check(t.Context(), zone, identity).Result.String()))
			if got := record.SPFResults[0].Result; got != want {
				t.Errorf("%s: got SPF %s for %s from %s, want %s", document.Name, got, record.EnvelopeFrom, record.Addr, want)
			}
			for _, signature := range record.DKIMResults {
				if signature.Domain != document.Domain {
					continue
				}
				there := dkim.LookupKey(t.Context(), zone, signature.Selector, signature.Domain).Status == dkim.StatusFound
				if signature.Result == aggregate.ResultPass && !there || signature.Result == aggregate.ResultPermerror && there {
					t.Errorf("%s: got DKIM %s, with a key in the DNS: %t", document.Name, signature.Result, there)
				}
			}
		}
	}
}

func TestResultsOfChecks(t *testing.T) {
	t.Parallel()
	s := scenario()
	for _, test := range []struct {
		name, domain string
		at           time.Time
		grades       []string
		findings     []string
	}{
		{"the good one", "harbourlight.example", end, []string{"A+", "A"}, []string{"dmarc.reject"}},
		{"the one in trouble", "tinwhistle.example", end, []string{"C", "D", "E", "F"}, []string{"spf.too_many_lookups"}},
		{"the one in trouble a year ago", "tinwhistle.example", s.Begin(), []string{"B", "C", "D"}, nil},
		{"the parked one", "oldmill.example", end, []string{"A+", "A"}, []string{"parked.locked"}},
		{"the spoofed one", "brightpay.example", end, []string{"C", "D"}, []string{"dmarc.policy_none"}},
		{"the school at first", "fernlea.example", s.Begin(), []string{"C", "D"}, []string{"dmarc.policy_none"}},
		{"the school at last", "fernlea.example", end, []string{"A+", "A", "B"}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			checker := dnscheck.New(dnscheck.Options{
				Resolver: s.Zone(test.at), ReportDomain: demo.ReportDomain, Now: func() time.Time { return test.at },
			})
			request := dnscheck.Request{Domain: test.domain}
			for _, d := range s.Domains() {
				if d.Name == test.domain {
					request.Purpose = d.Purpose
				}
			}
			check := checker.Examine(t.Context(), request)
			var found []string
			for _, finding := range check.Findings {
				found = append(found, string(finding.Level)+" "+finding.ID)
			}
			if !check.Conclusive || !check.Usable || !slices.Contains(test.grades, check.Grade) {
				t.Errorf("got grade %s (conclusive %t, usable %t), want one of %q; found %q", check.Grade, check.Conclusive, check.Usable, test.grades, found)
			}
			for _, want := range test.findings {
				if !slices.ContainsFunc(check.Findings, func(f dmarcd.Finding) bool { return f.ID == want }) {
					t.Errorf("got %q, want %s among them", found, want)
				}
			}
		})
	}
}

func TestReportAddress(t *testing.T) {
	t.Parallel()
	s := demo.New(demo.Options{Seed: 1, End: end, ReportAddress: func(domain string) string { return "box-" + domain + "@reports.example" }})
	zone := s.Zone(end)
	want := []string{"v=DMARC1; p=reject; rua=mailto:box-oldmill.example@reports.example"}
	if got := zone.Resolve(t.Context(), question("_dmarc.oldmill.example")).Texts(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := zone.Resolve(t.Context(), question("oldmill.example._report._dmarc.reports.example")); got.Outcome != dns.Data {
		t.Errorf("got %s for the leave to send reports there, want data", got.Outcome)
	}
}

func TestZone(t *testing.T) {
	t.Parallel()
	zone := scenario().Zone(end)
	for _, test := range []struct {
		name     string
		question dns.Question
		want     dns.Outcome
		signed   bool
	}{
		{"a record", dns.Question{Name: "harbourlight.example", Type: dns.MX}, dns.Data, true},
		{"another type", dns.Question{Name: "tinwhistle.example", Type: dns.AAAA}, dns.NoData, false},
		{"a name that has only names below", question("_domainkey.tinwhistle.example"), dns.NoData, false},
		{"no such name", question("unknown.tinwhistle.example"), dns.NoSuchName, false},
		{"no such name in a signed zone", question("unknown.harbourlight.example"), dns.NoSuchName, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := zone.Resolve(t.Context(), test.question)
			if got.Outcome != test.want || got.Authentic != test.signed {
				t.Errorf("got %s (authentic %t), want %s (%t)", got.Outcome, got.Authentic, test.want, test.signed)
			}
		})
	}
}

// Every sender must have a network, and a name that leads back where it has one.
func TestEverySourceHasANetwork(t *testing.T) {
	t.Parallel()
	s := scenario()
	atlas := new(senders.Atlas).Preferring(demo.Locate)
	zone, catalogue := s.Zone(end), senders.NewCatalogue(demo.Senders())
	named, known := map[netip.Addr]bool{}, map[string]bool{}
	for document := range days(s, 23) {
		for _, record := range parse(t, document).records {
			origin := atlas.Locate(record.Addr)
			if origin.Network.Number == 0 || origin.Network.Name == "" || origin.Country == "" {
				t.Fatalf("%s: got %+v for %s, want a network and a country", document.Name, origin, record.Addr)
			}
			if sender, ok := catalogue.Identify(senders.Clues{Network: origin.Network.Number}); ok {
				known[sender.Name] = true
			}
			pointers := zone.Resolve(t.Context(), dns.Question{Name: senders.PointerName(record.Addr), Type: dns.PTR})
			if pointers.Outcome == dns.Data {
				named[record.Addr] = true
			}
		}
	}
	if len(named) < 50 || len(known) != len(demo.Senders()) {
		t.Errorf("got %d named sources and the senders %v, want many, and all %d", len(named), known, len(demo.Senders()))
	}
}

// TestStepsFitTogether wants every step to be made by a user who is in the team by then
// and may do it, and to what is there.
func TestStepsFitTogether(t *testing.T) {
	t.Parallel()
	steps := scenario().Steps()
	if !slices.IsSortedFunc(steps, func(a, b demo.Step) int { return a.At.Compare(b.At) }) {
		t.Error("got steps out of order")
	}
	type in struct{ team, name string }
	roles, there := map[in]dmarcd.Role{}, map[in]bool{}
	for _, d := range steps {
		if !d.At.Before(end) {
			t.Errorf("%+v: got a step to come", d)
		}
		needs := dmarcd.RightManage
		switch d.Action {
		case demo.Joined:
			roles[in{d.Team, d.By}], needs = dmarcd.Role(d.Detail), dmarcd.RightSee
			if demo.NameOf(d.By) == "" {
				t.Errorf("%s: got no name", d.By)
			}
		case demo.AddedDomain, demo.CreatedToken:
			there[in{d.Team, d.Target}] = true
		case demo.SetPurpose, demo.RevokedToken:
			if !there[in{d.Team, d.Target}] {
				t.Errorf("%+v: got a step to what is not there", d)
			}
		case demo.UploadedReport:
			needs = dmarcd.RightChange
		case demo.Invited, demo.AddedMailbox:
		}
		if !roles[in{d.Team, d.By}].Can(needs) {
			t.Errorf("%+v: got a step by a user who may not make it", d)
		}
	}
	for _, d := range scenario().Domains() {
		if !there[in{d.Team, d.Name}] {
			t.Errorf("%s: got no member who adds it to %s", d.Name, d.Team)
		}
	}
	for _, role := range []dmarcd.Role{dmarcd.RoleOwner, dmarcd.RoleEditor, dmarcd.RoleViewer} {
		found := false
		for who, has := range roles {
			found = found || who.team == demo.FirstTeam && has == role
		}
		if !found {
			t.Errorf("got no %s in the first team", role)
		}
	}
	if owner := (in{demo.SecondTeam, demo.Ada}); roles[owner] != dmarcd.RoleOwner || roles[in{demo.FirstTeam, demo.Ada}] != dmarcd.RoleOwner {
		t.Error("got no member who owns both teams")
	}
}

func TestNonReportsCannotBeRead(t *testing.T) {
	t.Parallel()
	for _, nonReports := range scenario().NonReports() {
		var read int
		err := new(unpack.Walker).Walk(t.Context(), bytes.NewReader(nonReports.Content), unpack.DefaultLimits(), func(part *unpack.Part) error {
			if part.Kind != unpack.Aggregate {
				return nil
			}
			reader := aggregate.NewReader(part, aggregate.DefaultLimits())
			for _, err := range reader.All() {
				if err != nil {
					break
				}
				read++
			}
			return nil
		})
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: %v", nonReports.Name, err)
		}
		if read > 0 || nonReports.Kind != "" || nonReports.Intake == "" || nonReports.SentAt.After(end.Add(-24*time.Hour)) {
			t.Errorf("%s: got %d records of a %q by %q at %s, want nothing readable, some days ago", nonReports.Name, read, nonReports.Kind, nonReports.Intake, nonReports.SentAt)
		}
	}
}
