package store_test

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// found is a conclusive check with a record of that policy.
func found(policy string) facts.Check {
	check := facts.Check{Conclusive: true, TTL: time.Hour}
	if policy != "" {
		check.Record, check.Policy, check.Usable = "v=DMARC1; p="+policy, policy, true
	}
	return check
}

func TestWhatTheScheduleSeesIsDoubted(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		ctx, clock := t.Context(), newClock()
		s := db.Open(t, store.Options{Now: clock.Now})
		team := newTeam(t, s, "a")
		addDomain(t, team, "example.com")
		asked := func(c facts.Check) facts.Check {
			c.Asked = true
			return c
		}
		for _, step := range []struct {
			name   string
			wait   time.Duration
			check  facts.Check
			policy string // of the domain afterwards
			events []dmarcd.EventKind
		}{
			{"the first look is believed and no news", 0, found("reject"), "reject", nil},
			{"a change within the TTL is doubted", time.Minute, found("none"), "reject", nil},
			{"another change is doubted too", time.Minute, found("quarantine"), "reject", nil},
			{"back to the old: nothing happened", time.Minute, found("reject"), "reject", nil},
			{"doubted again", time.Minute, found("none"), "reject", nil},
			{"no answer", time.Minute, facts.Check{Reason: "timeout"}, "reject", nil},
			{"two looks agree", time.Minute, found("none"), "none", []dmarcd.EventKind{dmarcd.RecordChanged, dmarcd.PolicyWeakened}},
			{"the TTL has run out", time.Hour, found("reject"), "reject", []dmarcd.EventKind{dmarcd.RecordChanged, dmarcd.PolicyStrengthened}},
			{"a requested check", time.Minute, asked(found("")), "", []dmarcd.EventKind{dmarcd.RecordRemoved, dmarcd.PolicyWeakened}},
			{"and asked again", time.Minute, asked(found("none")), "none", []dmarcd.EventKind{dmarcd.RecordAppeared}},
		} {
			now := clock.advance(step.wait)
			before := musttest.Get(team.Events(ctx, store.EventFilter{}, store.Cursor{}, 100))(t)
			step.check.At = now
			plan := dmarcd.Plan{Next: now.Add(time.Hour), Retry: time.Minute, MaxRetry: time.Hour}
			domain, err := team.SaveCheck(ctx, "example.com", step.check, plan)
			if err != nil || domain.Policy != step.policy {
				t.Errorf("%s: policy %q, %v; want %q", step.name, domain.Policy, err, step.policy)
			}
			after := musttest.Get(team.Events(ctx, store.EventFilter{}, store.Cursor{}, 100))(t)
			var kinds []dmarcd.EventKind
			for _, e := range after[:len(after)-len(before)] {
				kinds = append(kinds, e.Kind)
			}
			if diff := cmp.Diff(step.events, kinds, cmpopts.SortSlices(func(a, b dmarcd.EventKind) bool { return a < b })); diff != "" {
				t.Errorf("%s: events (-want +got):\n%s", step.name, diff)
			}
		}
	})
}

func TestBackOff(t *testing.T) {
	t.Parallel()
	plan := dmarcd.Plan{Retry: time.Minute, MaxRetry: 10 * time.Minute}
	for failures, want := range map[int]time.Duration{1: time.Minute, 2: 2 * time.Minute, 4: 8 * time.Minute, 5: 10 * time.Minute, 1000: 10 * time.Minute} {
		if got := plan.After(failures); got != want {
			t.Errorf("after %d failures: %v, want %v", failures, got, want)
		}
	}
	if got := (dmarcd.Plan{MaxRetry: time.Hour}).After(1); got != 0 {
		t.Errorf("a new domain waits %v, want 0", got)
	}
	if got := (dmarcd.Plan{Retry: time.Minute, MaxRetry: time.Second}).After(1); got != time.Second {
		t.Errorf("a domain that is checked each second waits %v, want 1s", got)
	}
}

func TestHistory(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		ctx, clock := t.Context(), newClock()
		s := db.Open(t, store.Options{Now: clock.Now})
		team := newTeam(t, s, "a")
		addDomain(t, team, "example.com")
		if _, err := team.LatestCheck(ctx, "example.com"); !errors.Is(err, dmarcd.ErrNotFound) {
			t.Errorf("before the first: got %v, want ErrNotFound", err)
		}
		save := func(grade string, facts facts.Facts, errorIDs ...string) dmarcd.Domain {
			t.Helper()
			now := clock.advance(24 * time.Hour)
			check := found("reject")
			check.At, check.Grade, check.Facts = now, grade, &facts
			for _, id := range errorIDs {
				check.Findings = append(check.Findings, dmarcd.Finding{ID: id, Level: dmarcd.LevelError, What: "words on " + fmt.Sprint(now.Day())})
			}
			check.Findings = append(check.Findings, dmarcd.Finding{ID: "bimi.none", Level: dmarcd.LevelInfo})
			return musttest.Get(team.SaveCheck(ctx, "example.com", check, dmarcd.Plan{Next: now.Add(time.Hour), NextFull: now.Add(24 * time.Hour)}))(t)
		}
		key := func(status string) facts.Facts {
			return facts.Facts{Domain: "example.com", DKIM: facts.DKIM{Keys: []facts.DKIMKey{{Selector: "s1", Status: status}}}}
		}
		save("C", key("found"), "spf.too_many_lookups", "dkim.key_too_short")
		save("C", key("found"), "spf.too_many_lookups", "dkim.key_too_short")
		save("B", key("inconclusive"), "spf.too_many_lookups")
		if got := save("A", key("found"), "mx.none").Grade; got != "A" {
			t.Errorf("the domain has grade %q, want A", got)
		}
		checks, err := team.Checks(ctx, "example.com", store.Times{}, store.Cursor{}, 2)
		if err != nil || len(checks) != 2 || checks[0].Check.Grade != "A" || checks[1].Check.Grade != "B" {
			t.Fatalf("first page: %+v, %v", checks, err)
		}
		older, err := team.Checks(ctx, "example.com", store.Times{}, store.Cursor{At: checks[1].FirstAt, ID: int64(checks[1].ID)}, 2)
		if err != nil || len(older) != 1 || older[0].Check.Grade != "C" || older[0].Changes != nil || older[0].LastAt.Sub(older[0].FirstAt) != 24*time.Hour {
			t.Errorf("second page: %+v, %v", older, err)
		}
		wantChanges := []facts.Change{
			{Fact: facts.NameFinding, Of: "mx.none", After: "error"},
			{Fact: facts.NameFinding, Of: "spf.too_many_lookups", Before: "error"},
			{Fact: facts.NameGrade, Before: "B", After: "A"},
		}
		if diff := cmp.Diff(wantChanges, checks[0].Changes); diff != "" {
			t.Errorf("changes (-want +got):\n%s", diff)
		}
		var got []string
		for before := (store.Cursor{}); ; {
			events := musttest.Get(team.Events(ctx, store.EventFilter{Domain: "example.com"}, before, 1))(t)
			if len(events) == 0 {
				break
			}
			got = append(got, fmt.Sprintf("%s %s: %s%s", events[0].Kind, events[0].Finding, events[0].Before, events[0].After))
			before = store.Cursor{At: events[0].At, ID: events[0].Seq}
		}
		want := []string{
			"finding.appeared mx.none: words on 19", "finding.resolved spf.too_many_lookups: words on 18",
			"finding.resolved dkim.key_too_short: words on 16",
		}
		if diff := cmp.Diff(want, got, cmpopts.SortSlices(func(a, b string) bool { return a < b })); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		if events, err := team.Events(ctx, store.EventFilter{Kinds: []dmarcd.EventKind{dmarcd.FindingResolved}}, store.Cursor{}, 100); err != nil || len(events) != 2 {
			t.Errorf("by kind: %d events, %v; want 2", len(events), err)
		}
		old := found("reject")
		old.Facts = &facts.Facts{}
		if _, err := team.SaveCheck(ctx, "example.com", old, dmarcd.Plan{}); err != nil {
			t.Errorf("older news: %v", err)
		}
		if latest, err := team.LatestCheck(ctx, "example.com"); err != nil || latest.ID != checks[0].ID {
			t.Errorf("after older news: got check %s, %v, want %s", latest.ID, err, checks[0].ID)
		}
	})
}

// TestMailServersThatDoNotAnswer checks that a finding about the certificate of a mail server
// becomes an event when it is first seen, even after checks that could not read certificates, and
// is resolved by a check that reads them.
func TestChecksOfOneSecond(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		ctx, clock := t.Context(), newClock()
		s := db.Open(t, store.Options{Now: clock.Now})
		team := newTeam(t, s, "a")
		addDomain(t, team, "example.com")
		for i := range 20 {
			check := found("reject")
			check.At, check.Grade, check.Facts = clock.Now(), "A", &facts.Facts{DMARC: facts.DMARC{Record: fmt.Sprint("v=DMARC1; p=reject; x=", i)}}
			if i%2 == 1 {
				check.Findings = []dmarcd.Finding{{ID: "spf.missing", Level: dmarcd.LevelError, What: "words"}}
			}
			musttest.Get(team.SaveCheck(ctx, "example.com", check, dmarcd.Plan{Next: clock.Now()}))(t)
			latest := musttest.Get(team.LatestCheck(ctx, "example.com"))(t)
			if got, want := latest.Check.Facts.DMARC.Record, check.Facts.DMARC.Record; got != want {
				t.Fatalf("after check %d: the newest entry has %q, want %q", i, got, want)
			}
		}
		events := musttest.Get(team.Events(ctx, store.EventFilter{}, store.Cursor{}, 100))(t)
		if len(events) != 19 {
			t.Errorf("got %d events of findings, want one for each change, 19", len(events))
		}
	})
}

func TestMailServersThatDoNotAnswer(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		ctx, clock := t.Context(), newClock()
		s := db.Open(t, store.Options{Now: clock.Now})
		team := newTeam(t, s, "a")
		addDomain(t, team, "example.com")
		for _, step := range []struct {
			status  string
			finding string
			events  int // so far
			entries int
		}{
			{"", "", 0, 1},             // before the certificates were read
			{"inconclusive", "", 0, 1}, // port 25 is blocked
			{"ok", "starttls.certificate_expires", 1, 1},
			{"inconclusive", "", 1, 1},
			{"ok", "starttls.certificate_expires", 1, 1},
			{"ok", "starttls.certificate_expired", 3, 2}, // another finding, and the first is resolved
			{"", "", 3, 2},                               // disabled
			{"ok", "dane.no_match", 5, 3},
			{"inconclusive", "", 5, 3},
			{"ok", "", 6, 4},
		} {
			check := found("reject")
			check.At, check.Grade = clock.advance(24*time.Hour), "B"
			check.Facts = &facts.Facts{Domain: "example.com", STARTTLS: facts.STARTTLS{Status: step.status}}
			if step.finding != "" {
				check.Findings = []dmarcd.Finding{{ID: step.finding, Level: dmarcd.LevelWarning, What: "words"}}
			}
			musttest.Get(team.SaveCheck(ctx, "example.com", check, dmarcd.Plan{}))(t)
			events := musttest.Get(team.Events(ctx, store.EventFilter{}, store.Cursor{}, 100))(t)
			entries, err := team.Checks(ctx, "example.com", store.Times{}, store.Cursor{}, 100)
			if err != nil || len(events) != step.events || len(entries) != step.entries {
				t.Errorf("%+v: got %d events and %d entries, %v", step, len(events), len(entries), err)
			}
		}
	})
}

// TestSilentMailServerHidesItsOwnFindings resolves the finding of one mail server while another,
// with a similar name, does not answer: the finding of the other one stays.
func TestSilentMailServerHidesItsOwnFindings(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		in.add(ours)
		expired := dmarcd.Finding{ID: "starttls.certificate_expired", Level: dmarcd.LevelWarning, What: "The certificate of ab.example expired.", Host: "ab.example"}
		expires := dmarcd.Finding{ID: "starttls.certificate_expires", Level: dmarcd.LevelWarning, What: "The certificate of b.example expires.", Host: "b.example"}
		for i, step := range []struct {
			status   string
			silent   []string
			findings []dmarcd.Finding
			want     dmarcd.EventKind // "" for no event
		}{
			{status: "ok"},
			{status: "ok", silent: []string{"b.example"}, findings: []dmarcd.Finding{expired}, want: dmarcd.FindingAppeared},
			{status: "inconclusive", silent: []string{"ab.example", "b.example"}},
			{status: "inconclusive", silent: []string{"b.example"}, want: dmarcd.FindingResolved},
			{status: "ok", findings: []dmarcd.Finding{expires}, want: dmarcd.FindingAppeared},
			{status: "ok", silent: []string{"b.example"}, findings: []dmarcd.Finding{expired}, want: dmarcd.FindingAppeared},
			{status: "ok", findings: []dmarcd.Finding{expired}, want: dmarcd.FindingResolved},
		} {
			before := musttest.Get(in.team.LastEvent(in.Context()))(in)
			check := found("reject")
			check.At, check.Findings = in.clock.advance(24*time.Hour), step.findings
			check.Facts = &facts.Facts{Domain: ours, STARTTLS: facts.STARTTLS{Status: step.status, Silent: step.silent}}
			musttest.Get(in.team.SaveCheck(in.Context(), ours, check, dmarcd.Plan{}))(in)
			events := musttest.Get(in.team.EventsSince(in.Context(), store.EventFilter{}, before, 10))(in)
			var got []dmarcd.EventKind
			for _, e := range events {
				got = append(got, e.Kind)
			}
			var want []dmarcd.EventKind
			if step.want != "" {
				want = append(want, step.want)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				in.Errorf("step %d: events (-want +got):\n%s", i, diff)
			}
		}
	})
}

// TestCompletedEntryHasAnotherID completes an entry with a part that an earlier check could not
// determine. Caches rely on the entry of an id not to change.
func TestCompletedEntryHasAnotherID(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		in.add(ours)
		var last dmarcd.CheckID
		for i, step := range []struct {
			status string
			other  bool
		}{{"inconclusive", true}, {"inconclusive", false}, {"ok", true}, {"ok", false}, {"inconclusive", false}} {
			check := found("reject")
			check.At = in.clock.advance(24 * time.Hour)
			check.Facts = &facts.Facts{Domain: ours, STARTTLS: facts.STARTTLS{Status: step.status}}
			musttest.Get(in.team.SaveCheck(in.Context(), ours, check, dmarcd.Plan{}))(in)
			entries := musttest.Get(in.team.Checks(in.Context(), ours, store.Times{}, store.Cursor{}, 10))(in)
			if len(entries) != 1 || (entries[0].ID != last) != step.other {
				in.Fatalf("step %d: got %d entries, the first with the id %s after %s, want another id: %v", i, len(entries), entries[0].ID, last, step.other)
			}
			last = entries[0].ID
		}
	})
}

// TestEntryHasTheLatestAddresses saves checks that differ only in the addresses of an SPF term.
// That is not a change, and SPF is evaluated with the newest addresses.
func TestEntryHasTheLatestAddresses(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		in.add(ours)
		var last dmarcd.CheckID
		for i, step := range []struct {
			status, address string
			other           bool
			want            string
		}{
			{"ok", "", true, ""},
			{"ok", "192.0.2.1/32", true, "192.0.2.1/32"},
			{"ok", "192.0.2.1/32", false, "192.0.2.1/32"},
			{"inconclusive", "", false, "192.0.2.1/32"},
			{"ok", "192.0.2.2/32", true, "192.0.2.2/32"},
		} {
			check := found("reject")
			check.At = in.clock.advance(24 * time.Hour)
			check.Facts = &facts.Facts{Domain: ours, SPF: facts.SPF{Status: step.status, Tree: []facts.SPFTerm{{Term: "mx"}}}}
			if step.address != "" {
				check.Facts.SPF.Tree[0].Addresses, check.Facts.SPF.Tree[0].Complete = []netip.Prefix{netip.MustParsePrefix(step.address)}, true
			}
			musttest.Get(in.team.SaveCheck(in.Context(), ours, check, dmarcd.Plan{}))(in)
			entries := musttest.Get(in.team.Checks(in.Context(), ours, store.Times{}, store.Cursor{}, 10))(in)
			if len(entries) != 1 || (entries[0].ID != last) != step.other {
				in.Fatalf("step %d: got %d entries, the first with the id %s after %s, want another id: %v", i, len(entries), entries[0].ID, last, step.other)
			}
			got := ""
			for _, network := range entries[0].Check.Facts.SPF.Tree[0].Addresses {
				got += network.String()
			}
			if got != step.want {
				in.Errorf("step %d: got the addresses %q, want %q", i, got, step.want)
			}
			last = entries[0].ID
		}
	})
}

// TestOverlappingChecks checks that each entry of a history, except the first, has changes since
// another one, even if checks of a domain end at the same time.
func TestOverlappingChecks(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		ctx := t.Context()
		team := newTeam(t, db.Open(t, store.Options{}), "a")
		addDomain(t, team, "example.com")
		const rounds, overlapping = 10, 2
		for round := range rounds {
			var group sync.WaitGroup
			for i := range overlapping {
				group.Go(func() {
					now := time.Now()
					check := facts.Check{At: now, Conclusive: true, Grade: fmt.Sprint(round*overlapping + i), Facts: &facts.Facts{Domain: "example.com"}}
					plan := dmarcd.Plan{Next: now.Add(time.Hour), NextFull: now.Add(time.Hour)}
					if _, err := team.SaveCheck(ctx, "example.com", check, plan); err != nil {
						t.Error(err)
					}
				})
			}
			group.Wait()
		}
		history, err := team.Checks(ctx, "example.com", store.Times{}, store.Cursor{}, 2*rounds*overlapping)
		if err != nil || len(history) < rounds {
			t.Errorf("got %d checks in the history, %v, want at least %d", len(history), err, rounds)
		}
		first := 0
		for _, check := range history {
			switch {
			case len(check.Changes) == 0:
				first++
			case check.Changes[0].Fact != facts.NameGrade || check.Changes[0].After != check.Check.Grade:
				t.Errorf("got the changes %+v of a check with grade %s", check.Changes, check.Check.Grade)
			}
		}
		if first != 1 {
			t.Errorf("got %d checks without changes, want the first alone", first)
		}
	})
}

func TestFullChecksBecomeDue(t *testing.T) {
	eachWithDueDomain(t, func(t *testing.T, s *store.Store, team *store.Team, clock *clock) {
		ctx := t.Context()
		claim := func(want ...bool) {
			t.Helper()
			due, err := s.ClaimDueDomains(ctx, time.Minute, map[dmarcd.TeamID]int{team.ID(): 10})
			if err != nil || len(due) != len(want) || len(due) == 1 && due[0].Full != want[0] {
				t.Errorf("due: %+v, %v; want full: %v", due, err, want)
			}
		}
		save := func(check facts.Check, full bool) {
			t.Helper()
			check.At = clock.Now()
			plan := dmarcd.Plan{Next: check.At.Add(time.Hour), Retry: time.Minute, MaxRetry: time.Hour}
			if full {
				plan.NextFull = check.At.Add(24 * time.Hour)
				check.Facts = &facts.Facts{Domain: "example.com"}
			}
			musttest.Get(team.SaveCheck(ctx, "example.com", check, plan))(t)
		}
		claim(true)
		save(found("none"), true)
		claim()
		clock.advance(time.Hour)
		claim(false) // DMARC by the hour
		save(found("none"), false)
		claim()
		clock.advance(time.Hour)
		claim(false)
		save(found("reject"), false) // a confirmed change
		claim()
		clock.advance(5 * time.Second)
		claim(true) // a full check
		save(found("reject"), true)
		claim()
		asked := found("reject")
		asked.Asked = true
		clock.advance(time.Second)
		save(asked, false)
		claim() // not twice within a minute
		clock.advance(time.Minute)
		claim(true)
		save(facts.Check{Reason: "timeout"}, true)
		claim()
		clock.advance(time.Minute)
		claim(true) // DNS did not answer: both are retried together
	})
}
