package insight_test

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/rollup"
	"github.com/dmarcd/dmarcd/internal/senders"
	"github.com/dmarcd/dmarcd/internal/senders/mmdb"
)

// team is the records of a team, with indexes of its own lists.
type team struct {
	Addresses  []string
	Identities []rollup.Identity
	Shares     []rollup.Share
	perBlock   int // shares, 0 for a few
	all        []rollup.Part
	senders    map[string]dmarcd.SeenDays // by key
	sample     bool                       // it has sample data
	own        []dmarcd.TeamSender
	domains    []dmarcd.SenderDomain
	facts      map[dmarcd.CheckID]*facts.Facts
	state      dmarcd.SentState // with records that are not in Shares
	scans      int              // of the records
	jobTurns   atomic.Int64
	atJobTurn  func() // may be nil
}

func (t *team) TeamSenders(context.Context) ([]dmarcd.TeamSender, error) { return t.own, nil }

func (t *team) Senders(context.Context, string, []string) (map[string]dmarcd.SeenDays, error) {
	return t.senders, nil
}

func (t *team) ID() dmarcd.TeamID { return 7 }

func (t *team) ReadTurn(context.Context) (end func()) { return func() {} }

func (t *team) JobTurn(context.Context) (end func()) {
	if t.jobTurns.Add(1); t.atJobTurn != nil {
		t.atJobTurn()
	}
	return func() {}
}

func (t *team) SenderDomains(_ context.Context, known func(dmarcd.CheckID) bool, facts func(dmarcd.CheckID, *facts.Facts)) ([]dmarcd.SenderDomain, error) {
	for _, d := range t.domains {
		if d.Check != 0 && !known(d.Check) {
			facts(d.Check, t.facts[d.Check])
		}
	}
	return t.domains, nil
}

func (t *team) HasSample(context.Context) (bool, error) { return t.sample, nil }

func (t *team) SentState(context.Context, string, dmarcd.Days) (dmarcd.SentState, error) {
	state := t.state
	for _, share := range t.Shares {
		state.Records += int64(len(share.Records))
	}
	return state, nil
}

func (t *team) Scan(_ context.Context, _ string, days dmarcd.Days, _ func() func(), visit func(rollup.Part) error) error {
	t.scans++
	parts := t.all
	if parts == nil || days != (dmarcd.Days{}) && len(t.Shares) > 0 {
		parts = t.parts(days)
	}
	if days == (dmarcd.Days{}) {
		t.all = parts
	}
	for _, part := range parts {
		if err := visit(part); err != nil {
			return err
		}
	}
	return nil
}

// parts writes the records of some days in blocks.
func (t *team) parts(days dmarcd.Days) (parts []rollup.Part) {
	var w rollup.Writer
	for i, share := range t.Shares {
		if days.From != nil && share.Day < *days.From || days.To != nil && share.Day > *days.To {
			continue
		}
		w.Begin(share)
		for _, r := range share.Records {
			if r.Count > 0 {
				r.Address, r.Identity = w.Address(t.Addresses[r.Address]), w.Identity(t.Identities[r.Identity])
				w.Add(r)
			}
		}
		if (i+1)%cmp.Or(t.perBlock, 3) == 0 {
			parts = append(parts, rollup.Part{Block: w.Take()})
		}
	}
	return append(parts, rollup.Part{Block: w.Take()})
}

func (t *team) SentRecords(_ context.Context, positions []dmarcd.SentPosition) ([]dmarcd.SentRecord, error) {
	var records []dmarcd.SentRecord
	for _, position := range positions {
		i := slices.IndexFunc(t.Shares, func(s rollup.Share) bool { return s.Report == position.Report })
		at := t.Shares[i].Records[position.N].Address
		records = append(records, dmarcd.SentRecord{Position: position, Day: t.Shares[i].Day, Record: aggregate.Record{Source: t.Addresses[at]}})
	}
	return records, nil
}

// hosts are the names that are known.
type hosts map[string]string

func (h hosts) Known(_ context.Context, _ dmarcd.TeamID, addrs []netip.Addr) (map[netip.Addr]string, error) {
	names := make(map[netip.Addr]string)
	for _, addr := range addrs {
		names[addr] = h[addr.String()]
	}
	return names, nil
}

// mail describes a record for a test; what is empty is usual.
type mail struct {
	day          dmarcd.Day
	source, from string
	count        int64
	dkim, spf    bool
	disposition  aggregate.Policy
	reporter     string
	envelope     string
	signed       string // selector, domain and result of a signature
	checked      string // domain, scope and result of SPF
}

// newTeam makes records of descriptions, each in a report of its own.
func newTeam(all ...mail) *team {
	t := new(team)
	for i, m := range all {
		identity := rollup.Identity{Envelope: m.envelope}
		var result aggregate.Result
		if m.signed != "" {
			var signature rollup.Signature
			_, _ = fmt.Sscan(m.signed, &signature.Selector, &signature.Domain, &result)
			signature.Result = rollup.ResultOf(result)
			identity.Signatures = []rollup.Signature{signature}
		}
		if m.checked != "" {
			var domain, scope string
			_, _ = fmt.Sscan(m.checked, &domain, &scope, &result)
			identity.SPF = []rollup.SPFCheck{{Domain: domain, Result: rollup.ResultOf(result), Helo: scope == "helo"}}
			if scope != "helo" {
				identity.Envelope = cmp.Or(identity.Envelope, domain)
			}
		}
		t.Identities = append(t.Identities, identity)
		at := slices.Index(t.Addresses, m.source)
		if at < 0 {
			at = len(t.Addresses)
			t.Addresses = append(t.Addresses, m.source)
		}
		t.Shares = append(t.Shares, rollup.Share{
			Report: dmarcd.ReportID(i + 1), Reporter: cmp.Or(m.reporter, "receiver.example"), Day: m.day,
			From:    cmp.Or(m.from, "example.com"),
			Records: []rollup.Record{{Count: m.count, Address: uint32(at), Identity: uint32(i), Outcome: m.outcome()}},
		})
	}
	return t
}

// outcome finds the one that says the same.
func (m mail) outcome() dmarcd.Outcome {
	for o := range dmarcd.Outcomes {
		if o.DKIM() == m.dkim && o.SPF() == m.spf && o.Disposition() == cmp.Or(m.disposition, aggregate.PolicyNone) {
			return o
		}
	}
	panic("no such outcome")
}

// newService knows two networks and one sender, by a host, and another by a domain.
func newService(t testing.TB) *insight.Service {
	t.Helper()
	path := filepath.Join(t.TempDir(), "both.mmdb")
	file := musttest.Get(os.Create(path))(t)
	ranges := []mmdb.Range{
		{First: netip.MustParseAddr("192.0.2.0"), Last: netip.MustParseAddr("192.0.2.255"), Number: 64496, Name: "Network One", Country: "NL"},
		{First: netip.MustParseAddr("198.51.100.0"), Last: netip.MustParseAddr("198.51.100.255"), Number: 64497, Name: "Network Two", Country: "NZ"},
	}
	err := mmdb.Write(file, mmdb.Options{Type: "Test", Description: "A test.", Built: time.Unix(1e9, 0)}, func(yield func(mmdb.Range, error) bool) {
		for _, r := range ranges {
			if !yield(r, nil) {
				return
			}
		}
	})
	musttest.Do(t, err)
	musttest.Do(t, file.Close())
	atlas := musttest.Get(senders.OpenAtlas(senders.Files{Networks: path, Countries: path}))(t)
	catalogue := senders.NewCatalogue([]senders.Sender{
		{Name: "Post Office", Kind: senders.Service, Category: senders.Mailboxes, Hosts: []string{"post.example"}},
		{Name: "Newsletters", Kind: senders.Service, Category: senders.Marketing, Domains: []string{"letters.example"}},
	})
	return insight.New(atlas, catalogue, hosts{"192.0.2.9": "out9.post.example", "198.51.100.1": "mx.two.example"}, nil)
}

func readMail(t testing.TB, of *team, days dmarcd.Days) *insight.Mail {
	t.Helper()
	return musttest.Get(newService(t).Read(t.Context(), of, "example.com", days))(t)
}

func daysOf(from, to dmarcd.Day) dmarcd.Days { return dmarcd.Days{From: &from, To: &to} }

// usual is mail of every sort.
func usual() *team {
	return newTeam(
		mail{day: 1, source: "192.0.2.1", count: 50, dkim: true, spf: true, envelope: "example.com", signed: "s1 example.com pass"},
		mail{day: 3, source: "192.0.2.1", count: 50, dkim: true, signed: "s1 example.com pass", reporter: "other.example"},
		mail{day: 2, source: "192.0.2.9", count: 30, spf: true, from: "mail.example.com", checked: "bounces.example.com mfrom pass"},
		mail{day: 2, source: "198.51.100.1", count: 20, disposition: aggregate.PolicyReject, signed: "k2 elsewhere.example fail"},
		mail{day: 2, source: "198.51.100.2", count: 10, disposition: aggregate.PolicyQuarantine, signed: "k3 a.letters.example pass"},
		mail{day: 3, source: "203.0.113.5", count: 5, checked: "relay.example helo pass"},
		mail{day: 3, source: "not an address", count: 1, signed: "k4 letters.example fail"},
	)
}
