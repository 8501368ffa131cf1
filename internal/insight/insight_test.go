package insight_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/memory"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/rollup"
	"github.com/dmarcd/dmarcd/internal/senders"
)

// slow never has the records in time.
type slow struct{ failing }

func (slow) Scan(ctx context.Context, _ string, _ dmarcd.Days, _ func() func(), _ func(rollup.Part) error) error {
	<-ctx.Done()
	return fmt.Errorf("interrupted: %w", dmarcd.ErrTemporary)
}

// TestReadingTakesTooLong wants a client to try again: the same read may well end in
// time when the machine has less to do.
func TestReadingTakesTooLong(t *testing.T) {
	t.Parallel()
	service := newService(t)
	synctest.Test(t, func(t *testing.T) {
		err := readList(t.Context(), service, slow{})
		if !errors.Is(err, memory.ErrBusy) || errors.Is(err, dmarcd.ErrLimit) {
			t.Errorf("got %v, want memory.ErrBusy", err)
		}
		gone, leave := context.WithCancel(t.Context())
		leave()
		if err := readList(gone, service, slow{}); errors.Is(err, memory.ErrBusy) {
			t.Errorf("a client that is gone: got %v, want another error", err)
		}
	})
}

// failing has an error for everything.
type failing struct{ err error }

func (f failing) ID() dmarcd.TeamID { return 7 }

func (f failing) ReadTurn(context.Context) (end func()) { return func() {} }

func (f failing) TeamSenders(context.Context) ([]dmarcd.TeamSender, error) { return nil, nil }

func (f failing) SenderDomains(context.Context, func(dmarcd.CheckID) bool, func(dmarcd.CheckID, *facts.Facts)) ([]dmarcd.SenderDomain, error) {
	return nil, f.err
}

func (f failing) HasSample(context.Context) (bool, error) { return false, nil }

func (f failing) SentState(context.Context, string, dmarcd.Days) (dmarcd.SentState, error) {
	return dmarcd.SentState{Records: 1}, nil
}

func (f failing) Scan(context.Context, string, dmarcd.Days, func() func(), func(rollup.Part) error) error {
	return f.err
}

func (f failing) Senders(context.Context, string, []string) (map[string]dmarcd.SeenDays, error) {
	return nil, f.err
}

func readList(ctx context.Context, service *insight.Service, of insight.Records) error {
	m, err := service.Read(ctx, of, "", dmarcd.Days{})
	if err != nil {
		return err
	}
	defer m.Close()
	_, err = m.List(ctx, insight.Query{Group: insight.GroupSender, Limit: 1})
	return err
}

func (f failing) SentRecords(context.Context, []dmarcd.SentPosition) ([]dmarcd.SentRecord, error) {
	return nil, f.err
}

func (f failing) Known(context.Context, dmarcd.TeamID, []netip.Addr) (map[netip.Addr]string, error) {
	return nil, f.err
}

func TestErrorsOfTheStore(t *testing.T) {
	t.Parallel()
	broken := failing{dmarcd.ErrTemporary}
	if err := readList(t.Context(), newService(t), broken); !errors.Is(err, dmarcd.ErrTemporary) {
		t.Errorf("records: got %v, want ErrTemporary", err)
	}
	service := insight.New(&senders.Atlas{}, senders.NewCatalogue(nil), broken, nil)
	if err := readList(t.Context(), service, usual()); !errors.Is(err, dmarcd.ErrTemporary) {
		t.Errorf("names: got %v, want ErrTemporary", err)
	}
}

func TestNoMail(t *testing.T) {
	t.Parallel()
	for _, days := range []dmarcd.Days{{}, daysOf(1, 3)} {
		m := readMail(t, newTeam(), days)
		list, err := m.List(t.Context(), insight.Query{Group: insight.GroupSender, Limit: 1})
		if err != nil || len(list.Rows) != 0 || len(flowsOf(t, m, insight.Query{})) != 0 {
			t.Errorf("got %+v, %v; want nothing, and not ready", list, err)
		}
		if _, err := m.Breakdown(t.Context(), insight.Query{Group: insight.GroupSender, Key: "AS64496"}); !errors.Is(err, dmarcd.ErrNotFound) {
			t.Errorf("a source: got %v, want ErrNotFound", err)
		}
	}
}

func TestBreakdown(t *testing.T) {
	t.Parallel()
	m := readMail(t, usual(), daysOf(1, 3))
	for _, test := range []struct {
		group     insight.Group
		key, want string
	}{
		{insight.GroupSender, "AS64496:yours", "Network One (yours): First seen 2 Jan 1970, Last seen 4 Jan 1970, Autonomous system AS64496 (Network One), Addresses 1; days 50 0 50; " +
			"country NL 100, address 192.0.2.1 100, selector s1._domainkey.example.com 100, envelope_from - 50 example.com 50, " +
			"header_from example.com 100, reporter other.example 50 receiver.example 50"},
		{insight.GroupSender, "Newsletters:rest", "Newsletters (not aligned): First seen 3 Jan 1970, Last seen 3 Jan 1970, Kind of sender marketing, Addresses 1; days 0 10 0; " +
			"country NZ 10, address 198.51.100.2 10, selector k3._domainkey.a.letters.example 10, envelope_from - 10, " +
			"header_from example.com 10, reporter receiver.example 10"},
		{insight.GroupAddress, "192.0.2.9", "192.0.2.9: Name out9.post.example, Sender Post Office (yours), Autonomous system AS64496 (Network One), " +
			"Country Netherlands; days 0 30 0; sender Post Office:yours 30, country NL 30, selector - 30, envelope_from bounces.example.com 30, " +
			"header_from mail.example.com 30, reporter receiver.example 30"},
	} {
		got, err := m.Breakdown(t.Context(), insight.Query{Group: test.group, Key: test.key})
		if err != nil {
			t.Fatalf("%s: %v", test.key, err)
		}
		if line := breakdownLine(got); line != test.want {
			t.Errorf("%s:\ngot  %s\nwant %s", test.key, line, test.want)
		}
	}
	for _, key := range []string{"", "AS1"} {
		if _, err := m.Breakdown(t.Context(), insight.Query{Group: insight.GroupSender, Key: key}); !errors.Is(err, dmarcd.ErrNotFound) {
			t.Errorf("key %q: got %v, want ErrNotFound", key, err)
		}
	}
}

// breakdownLine formats a breakdown.
func breakdownLine(s insight.Breakdown) string {
	var facts, days, parts []string
	for _, f := range s.Facts {
		facts = append(facts, f.Name+" "+f.Value)
	}
	for _, d := range s.Days {
		days = append(days, fmt.Sprint(d.Total()))
	}
	for _, p := range s.Parts {
		part := string(p.Group)
		for _, r := range p.Rows {
			part += fmt.Sprintf(" %s %d", r.Key, r.Counts.Total())
		}
		parts = append(parts, part)
	}
	return s.Name + ": " + strings.Join(facts, ", ") + "; days " + strings.Join(days, " ") + "; " + strings.Join(parts, ", ")
}

func TestManyParts(t *testing.T) {
	t.Parallel()
	var all []mail
	for i := range 130 {
		all = append(all, mail{source: fmt.Sprintf("192.0.2.%d", i), count: int64(1000 - i), dkim: true})
	}
	for limit, want := range map[int]int{0: 20, 50: 50, 120: 120, 1000: 130} {
		got := musttest.Get(readMail(t, newTeam(all...), dmarcd.Days{}).Breakdown(t.Context(), insight.Query{Group: insight.GroupCountry, Key: "NL", Parts: limit}))(t)
		for _, part := range got.Parts {
			if part.Group == insight.GroupAddress && (len(part.Rows) != want || part.More != 130-want || part.Rows[0].Key != "192.0.2.0") {
				t.Errorf("limit %d: got %d addresses from %s on and %d more, want %d from 192.0.2.0 on", limit, len(part.Rows), part.Rows[0].Key, part.More, want)
			}
		}
	}
}

func TestFlows(t *testing.T) {
	t.Parallel()
	m := readMail(t, usual(), dmarcd.Days{})
	want := []insight.Flow{
		{"Network One (yours)", "AS64496:yours", false, true, "none", 50},
		{"Network One (yours)", "AS64496:yours", true, true, "none", 50},
		{"Post Office (yours)", "Post Office:yours", true, false, "none", 30},
		{"Network Two (others)", "AS64497:others", false, false, "reject", 20},
		{"Newsletters (not aligned)", "Newsletters:rest", false, false, "quarantine", 10},
		{"Unknown networks (as relay.example)", "-:as:relay.example", false, false, "none", 5},
		{"Unknown networks (others)", "-:others", false, false, "none", 1},
	}
	if diff := cmp.Diff(want, flowsOf(t, m, insight.Query{})); diff != "" {
		t.Errorf("all: -want +got\n%s", diff)
	}
	if diff := cmp.Diff(want[3:5], flowsOf(t, m, insight.Query{Group: insight.GroupCountry, Key: "NZ"})); diff != "" {
		t.Errorf("of a country: -want +got\n%s", diff)
	}
}

func TestSmallFlowsArePutTogether(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ senders, reported, others int }{
		{9, 9, 0},
		{10, 8, 2},
		{20, 8, 12},
	} {
		known := make([]senders.Sender, test.senders)
		var all []mail
		for i := range known {
			known[i] = senders.Sender{Name: fmt.Sprint("S", i), Kind: senders.Service, Category: senders.Marketing, Domains: []string{fmt.Sprintf("s%d.example", i)}}
			all = append(all, mail{count: 1, signed: fmt.Sprintf("k s%d.example pass", i)})
		}
		service := insight.New(&senders.Atlas{}, senders.NewCatalogue(known), hosts{}, nil)
		m := musttest.Get(service.Read(t.Context(), newTeam(all...), "", dmarcd.Days{}))(t)
		reported, others := 0, int64(0)
		for _, f := range flowsOf(t, m, insight.Query{}) {
			if f.Sender == insight.OtherSenders {
				others += f.Messages
			} else {
				reported++
			}
		}
		if reported != test.reported || others != int64(test.others) {
			t.Errorf("%d senders: got %d and %d others, want %d and %d", test.senders, reported, others, test.reported, test.others)
		}
	}
}

func TestRecords(t *testing.T) {
	t.Parallel()
	m := readMail(t, usual(), dmarcd.Days{})
	query := insight.Query{Group: insight.GroupFrom, Key: "example.com", Limit: 4}
	var got []string
	for {
		page := musttest.Get(m.Records(t.Context(), query))(t)
		for _, r := range page.Records {
			got = append(got, fmt.Sprintf("%d %s", r.Day, r.Source))
		}
		if query.After = page.Next; page.Next == "" {
			break
		}
	}
	want := []string{"3 not an address", "3 203.0.113.5", "3 192.0.2.1", "2 198.51.100.2", "2 198.51.100.1", "1 192.0.2.1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	query.After = "x"
	if _, err := m.Records(t.Context(), query); !errors.Is(err, dmarcd.ErrInvalid) {
		t.Errorf("a cursor that is none: got %v, want ErrInvalid", err)
	}
}

func flowsOf(t testing.TB, m *insight.Mail, q insight.Query) []insight.Flow {
	t.Helper()
	return musttest.Get(m.Flows(t.Context(), q))(t)
}

// BenchmarkList groups a million records of 25,000 addresses.
func BenchmarkList(b *testing.B) {
	of, service := &team{perBlock: 400}, newService(b)
	for i := range 25_000 {
		of.Addresses = append(of.Addresses, fmt.Sprintf("192.%d.%d.%d", i%2, i/250, i%250))
	}
	for i := range 4000 {
		domain := fmt.Sprintf("d%d.example", i/4)
		of.Identities = append(of.Identities, rollup.Identity{
			Envelope: domain, Signatures: []rollup.Signature{{Domain: domain, Selector: fmt.Sprint("s", i%4), Result: rollup.Pass}},
		})
	}
	for i := range 10_000 {
		share := rollup.Share{Report: dmarcd.ReportID(i), Day: dmarcd.Day(i % 30), From: fmt.Sprintf("d%d.example", i%1000)}
		for n := range 100 {
			share.Records = append(share.Records, rollup.Record{
				N: uint32(n), Count: int64(n%7 + 1), Address: uint32((i*100 + n) % 25_000), Identity: uint32(i%1000*4 + n%4), Outcome: dmarcd.Outcome(n % 4),
			})
		}
		of.Shares = append(of.Shares, share)
	}
	for _, group := range insight.Groups() {
		b.Run(string(group), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				m := musttest.Get(service.Read(b.Context(), of, "", dmarcd.Days{}))(b)
				if list, err := m.List(b.Context(), insight.Query{Group: group, Limit: 100}); err != nil || len(list.Rows) == 0 {
					b.Fatalf("got %d rows, %v", len(list.Rows), err)
				}
			}
		})
	}
}

// TestSampleSendersAreKnownInSampleTeamsOnly: the addresses of sample data are those that other
// teams use in examples.
func TestSampleSendersAreKnownInSampleTeamsOnly(t *testing.T) {
	t.Parallel()
	catalogue := senders.NewCatalogue([]senders.Sender{{Name: "Sample Post", Kind: senders.Service, Category: senders.Mailboxes, Networks: []uint32{64500}}})
	atlas := new(senders.Atlas).Preferring(func(netip.Addr) (senders.Origin, bool) {
		return senders.Origin{Network: senders.Network{Number: 64500, Name: "Sample Network"}}, true
	})
	service := insight.New(&senders.Atlas{}, senders.NewCatalogue(nil), hosts{}, nil)
	service.SetSample(insight.New(atlas, catalogue, hosts{}, nil))
	for sample, want := range map[bool]bool{false: false, true: true} {
		of := usual()
		of.sample = sample
		m := musttest.Get(service.Read(t.Context(), of, "example.com", dmarcd.Days{}))(t)
		defer m.Close()
		list := musttest.Get(m.List(t.Context(), insight.Query{Group: insight.GroupSender, Limit: 10}))(t)
		known := slices.ContainsFunc(list.Rows, func(r insight.Row) bool { return strings.HasPrefix(r.Name, "Sample Post") })
		if known != want {
			t.Errorf("sample data %t: got the sample sender recognized %t, want %t", sample, known, want)
		}
	}
}
