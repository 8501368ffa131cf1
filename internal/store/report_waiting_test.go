package store_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// attributions are the domains that records count for.
var attributions = []struct {
	name    string
	domains []string
	from    string
	policy  string
	want    string // "" for none
}{
	{"the domain itself", []string{"example.com"}, "example.com", "example.com", "example.com"},
	{"a parent", []string{"example.com"}, "a.b.example.com", "example.com", "example.com"},
	{"the nearest parent", []string{"example.com", "b.example.com"}, "a.b.example.com", "example.com", "b.example.com"},
	{"not a child", []string{"a.example.com"}, "example.com", "example.com", ""},
	{"not a sibling", []string{"b.example.com"}, "a.example.com", "example.com", ""},
	{"not a name that ends alike", []string{"example.com"}, "badexample.com", "badexample.com", ""},
	{"not a name that begins alike", []string{"example.com"}, "example.com-mail.net", "example.com.net", ""},
	{"From before policy", []string{"example.com", "example.org"}, "example.org", "example.com", "example.org"},
	{"a parent of From before policy", []string{"example.com", "example.org"}, "a.b.example.org", "example.com", "example.org"},
	{"else policy", []string{"example.com"}, "strange.example", "example.com", "example.com"},
	{"else a parent of policy", []string{"example.com"}, "strange.example", "a.example.com", "example.com"},
	{"else the nearest parent of policy", []string{"example.com", "a.example.com"}, "strange.example", "b.a.example.com", "a.example.com"},
	{"no From", []string{"example.com"}, "", "a.example.com", "example.com"},
	{"no policy", []string{"example.com"}, "example.com", "", "example.com"},
	{"neither", []string{"example.com"}, "", "", ""},
	{"empty labels", []string{"example.com"}, "..example.com", "..", "example.com"},
	{"only dots", []string{"example.com"}, "...", ".", ""},
}

func TestAttribution(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		for _, row := range attributions {
			in.row(row.name, func(in *inbox) {
				in.add(row.domains...)
				in.wantAttributed(row.from, row.policy, row.domains, row.want)
			})
		}
	})
}

// TestClaim stores the records before the domains: the result is the same as if they were added
// first.
func TestClaim(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		for _, row := range attributions {
			in.row("claimed: "+row.name, func(in *inbox) {
				in.wantReceived("unclaimed", report("1", row.policy, storetest.Passed(row.from, 5), storetest.Failed(row.from, 2)))
				added := musttest.Get(in.team.AddDomains(in.Context(), row.domains, time.Time{}))(in)
				if added != len(row.domains) {
					in.Fatalf("added %d domains, want %d", added, len(row.domains))
				}
				in.wantOnly(row.domains, row.want, dmarcd.Summary{Compliant: 5, NonCompliant: 2})
			})
		}
	})
}

func (in *inbox) wantAttributed(from, policy string, domains []string, want string) {
	in.Helper()
	status := "stored"
	if want == "" {
		status = "unclaimed"
	}
	in.wantReceived(status, report("1", policy, storetest.Passed(from, 5)))
	in.wantOnly(domains, want, passed(5))
}

// wantOnly checks that one domain counted the messages, and the others none.
func (in *inbox) wantOnly(domains []string, owner string, sum dmarcd.Summary) {
	in.Helper()
	want := make(map[string]dmarcd.Summary)
	for _, name := range domains {
		want[name] = dmarcd.Summary{}
	}
	if owner != "" {
		want[owner] = sum
	}
	in.wantCounted(want)
	unclaimed := musttest.Get(in.team.Reports(in.Context(), store.ReportFilter{Unclaimed: true}, 0, 10))(in)
	if (len(unclaimed) == 0) != (owner != "") {
		in.Errorf("%d reports are unclaimed, the owner is %q", len(unclaimed), owner)
	}
}

func TestManyFromDomainsInOneReport(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		in.add("example.com", "a.example.com", "example.org")
		in.wantReceived("stored", report("1", "example.com",
			storetest.Passed("example.com", 1), storetest.Passed("x.a.example.com", 20), storetest.Failed("a.example.com", 300),
			storetest.Passed("example.org", 4000), storetest.Passed("", 50_000), storetest.Failed("strange.example", 600_000),
			storetest.Failed("example.com", 7_000_000)))
		in.wantCounted(map[string]dmarcd.Summary{
			"example.com":   {Compliant: 50_001, NonCompliant: 7_600_000},
			"a.example.com": {Compliant: 20, NonCompliant: 300},
			"example.org":   {Compliant: 4000},
		})
	})
}

func TestAttributionIsFixed(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		in.add("example.com")
		in.wantReceived("stored", report("1", "example.com", storetest.Passed("a.example.com", 5)))
		in.add("a.example.com")
		in.wantCounted(map[string]dmarcd.Summary{"example.com": passed(5), "a.example.com": {}})
		in.wantReceived("stored", report("2", "example.com", storetest.Passed("a.example.com", 70)))
		in.wantCounted(map[string]dmarcd.Summary{"example.com": passed(5), "a.example.com": passed(70)})
	})
}

func TestClaimOfVersionsAndOfOthers(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		in.wantReceived("unclaimed replaced unclaimed", report("1", ours, storetest.Passed(ours, 1)), report("1", ours, storetest.Passed(ours, 20)),
			report("2", ours, storetest.Failed("sub."+ours, 300)))
		other := *in
		other.team = newTeam(in.T, in.store, "other")
		other.wantReceived("unclaimed", report("1", ours, storetest.Passed(ours, 4000)))

		in.add("unrelated.example", ours)
		in.wantCounted(map[string]dmarcd.Summary{"unrelated.example": {}, ours: {Compliant: 20, NonCompliant: 300}})
		other.wantCounted(map[string]dmarcd.Summary{})
		in.wantReceived("duplicate replaced", report("1", ours, storetest.Passed(ours, 1)), report("2", ours, storetest.Passed(ours, 50_000)))
		in.wantCounted(map[string]dmarcd.Summary{"unrelated.example": {}, ours: passed(50_020)})
	})
}

func TestAddDomainsAgainClaimsNothingTwice(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		in.add(ours)
		in.wantReceived("stored unclaimed", report("1", ours, storetest.Passed(ours, 5)), report("2", "new.example", storetest.Passed("new.example", 70)))
		musttest.Get(in.team.AddDomains(in.Context(), []string{ours, "new.example", "new.example"}, time.Time{}))(in)
		in.wantCounted(map[string]dmarcd.Summary{ours: passed(5), "new.example": passed(70)})
	})
}

// TestReportOfManyNames exceeds the number of names that are looked up one by one.
func TestReportOfManyNames(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		var names []string
		whole := report("1", "policy.example")
		whole.Shares = nil
		want := make(map[string]dmarcd.Summary)
		for i := range 700 {
			name := fmt.Sprintf("d%d.example", i)
			share := dmarcd.Share{From: "www." + name}
			share.Compliant = int64(i)
			whole.Shares = append(whole.Shares, share)
			if i%2 == 0 {
				names = append(names, name)
				want[name] = passed(int64(i))
			}
		}
		whole.Kind, whole.EachRecord = dmarcd.KindTLS, nil // the shares are what matters
		musttest.Get(in.team.AddDomains(in.Context(), names, time.Time{}))(in)
		in.wantReceived("stored", whole)
		in.wantCounted(want)
	})
}

func TestUnclaimedIsNotClaimedByNamesBetween(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		// Paths are byte ranges: these are adjacent to com.example.
		var reports []dmarcd.NewReport
		for i, from := range []string{"example-.com", "example/.com", "exampl.com", "examplf.com", "example0.com", "example.co", "example.comm", "com", "EXAMPLE.com"} {
			reports = append(reports, report(fmt.Sprint(i), from, storetest.Passed(from, 1)))
		}
		in.wantReceived(strings.TrimSpace(strings.Repeat("unclaimed ", len(reports))), reports...)
		in.add("example.com")
		in.wantCounted(map[string]dmarcd.Summary{"example.com": {}})
	})
}

// TestManySharesAreClaimedInSteps adds a domain for which more shares wait than one transaction
// claims. All of them count at once; after an interruption, a job claims the rest.
func TestManySharesAreClaimedInSteps(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		return
	}
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		var claims atomic.Int64
		interrupt := func() {}
		clock := newClock()
		s := db.Open(t, store.Options{Now: clock.Now, Statement: func(query string) {
			if strings.HasPrefix(query, `SELECT report_id, n FROM shares`) && claims.Add(1) == 3 { // each step reads two columns
				interrupt()
			}
		}})
		const shares = 6000
		var reports []dmarcd.NewReport
		for i := range 4 {
			var records []aggregate.Record
			for n := range shares / 4 {
				records = append(records, storetest.Passed(fmt.Sprintf("n%d.sub.example.com", n), 1))
			}
			reports = append(reports, storetest.Aggregate(fmt.Sprint(i), "other.example", today, records...))
		}
		in := &inbox{T: t, db: db, clock: clock, store: s, team: newTeam(t, s, "a")}
		in.receive(reports...)
		in.add("sub.example.com")
		in.wantCounted(map[string]dmarcd.Summary{"sub.example.com": {Compliant: shares}})
		if claims.Load() < 3 {
			t.Errorf("got %d statements, want several transactions", claims.Load())
		}

		// It is interrupted; the domain is there.
		in.team = newTeam(t, s, "interrupted")
		in.receive(reports...)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		claims.Store(0)
		interrupt = cancel
		musttest.Get(in.team.AddDomain(ctx, "sub.example.com", clock.Now()))(t)
		interrupt = func() {}
		first := musttest.Get(in.team.DomainSummary(t.Context(), "sub.example.com", dmarcd.Days{}))(t)
		if first.Compliant == 0 || first.Compliant >= shares {
			t.Errorf("got %d messages at once, want some of %d", first.Compliant, shares)
		}
		if more, err := s.ClaimShares(t.Context()); more || err != nil {
			t.Errorf("the chore: got more %t, error %v", more, err)
		}
		in.wantCounted(map[string]dmarcd.Summary{"sub.example.com": {Compliant: shares}})
		if got := in.number(`SELECT COUNT(*) FROM domains WHERE claiming`); got != 0 {
			t.Errorf("got %d domains that still claim, want none", got)
		}

		// A deleted domain claims no more.
		in.damage(`UPDATE domains SET claiming = TRUE`)
		in.delete("sub.example.com")
		if more, err := s.ClaimShares(t.Context()); more || err != nil {
			t.Errorf("a deleted domain: got more %t, error %v", more, err)
		}
		in.purgeAll()
	})
}
