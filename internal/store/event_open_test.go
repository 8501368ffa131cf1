package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// watched is a team with domains whose DNS can be changed.
type watched struct {
	*testing.T

	store *store.Store
	team  *store.Team
	clock *clock
}

func eachWatched(t *testing.T, f func(w *watched)) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		clock := newClock()
		s := db.Open(t, store.Options{Now: clock.Now})
		w := &watched{T: t, store: s, team: newTeam(t, s, "a"), clock: clock}
		for _, name := range []string{"example.com", "example.net"} {
			addDomain(t, w.team, name)
			w.check(name, "v=DMARC1; p=none", facts.Facts{})
		}
		f(w)
	})
}

// check saves a full check a day after the last one.
func (w *watched) check(domain, record string, found facts.Facts, problems ...string) {
	w.Helper()
	now := w.clock.advance(24 * time.Hour)
	check := facts.Check{Conclusive: true, Usable: true, At: now, Record: record, Policy: record[len("v=DMARC1; p="):], Facts: &found}
	found.DMARC.Record, found.DMARC.Policy = check.Record, check.Policy
	for _, id := range problems {
		check.Findings = append(check.Findings, dmarcd.Finding{ID: id, Level: dmarcd.LevelError, What: "Problem " + id})
	}
	musttest.Get(w.team.SaveCheck(w.Context(), domain, check, dmarcd.Plan{Next: now.Add(time.Hour), NextFull: now.Add(24 * time.Hour)}))(w)
}

// TestDomainChanges lists the checks that found changes in DNS: of all domains, filtered, and by pages.
func TestDomainChanges(t *testing.T) {
	eachWatched(t, func(w *watched) {
		ctx := w.Context()
		w.check("example.com", "v=DMARC1; p=none", facts.Facts{SPF: facts.SPF{Record: "v=spf1 -all"}})
		begin := w.clock.Now()
		w.check("example.net", "v=DMARC1; p=reject", facts.Facts{TLSRPT: facts.TLSRPT{Record: "v=TLSRPTv1; rua=mailto:a@example.net"}})
		w.check("example.com", "v=DMARC1; p=none", facts.Facts{SPF: facts.SPF{Record: "v=spf1 -all"}}, "spf.too_many_lookups")
		w.check("example.com", "v=DMARC1; p=none", facts.Facts{
			SPF: facts.SPF{Record: "v=spf1 mx -all"}, MTASTS: facts.MTASTS{Record: "v=STSv1; id=1"},
			DKIM: facts.DKIM{Keys: []facts.DKIMKey{{Selector: "s1", Status: "ok", Record: "v=DKIM1; p=AAAA"}}},
		}, "spf.too_many_lookups")
		want := func(name string, filter store.ChangeFilter, wanted ...string) {
			w.Helper()
			var got []string
			for before := (store.Cursor{}); ; {
				some := musttest.Get(w.team.DomainChanges(ctx, filter, before, 1))(w)
				if len(some) == 0 {
					break
				}
				got = append(got, fmt.Sprint(some[0].Domain, " ", some[0].Parts))
				before = store.Cursor{At: some[0].At, ID: int64(some[0].ID)}
			}
			if diff := cmp.Diff(wanted, got); diff != "" {
				w.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
		third, second, first := "example.com [spf dkim mta_sts]", "example.net [dmarc tls_rpt]", "example.com [spf]"
		want("all", store.ChangeFilter{}, third, second, first)
		want("a domain", store.ChangeFilter{Domain: "example.net"}, second)
		want("an unknown domain", store.ChangeFilter{Domain: "example.org"})
		want("a part", store.ChangeFilter{Part: facts.PartSPF}, third, first)
		want("a part of a domain", store.ChangeFilter{Domain: "example.net", Part: facts.PartSPF})
		want("since", store.ChangeFilter{Times: store.Times{From: begin.Add(time.Second)}}, third, second)
		want("until", store.ChangeFilter{Times: store.Times{Until: begin.Add(time.Second)}}, first)
		musttest.Do(w, w.team.DeleteDomain(ctx, "example.com"))
		want("a deleted domain", store.ChangeFilter{}, second)
	})
}

// TestEventsByTime lists events of some kinds within some time.
func TestEventsByTime(t *testing.T) {
	eachWatched(t, func(w *watched) {
		ctx := w.Context()
		w.check("example.com", "v=DMARC1; p=reject", facts.Facts{})
		begin := w.clock.Now()
		w.check("example.com", "v=DMARC1; p=none", facts.Facts{})
		for name, row := range map[string]struct {
			filter store.EventFilter
			want   []dmarcd.EventKind
		}{
			"since":    {store.EventFilter{Times: store.Times{From: begin.Add(time.Second)}}, []dmarcd.EventKind{dmarcd.PolicyWeakened, dmarcd.RecordChanged}},
			"until":    {store.EventFilter{Times: store.Times{Until: begin.Add(time.Second)}}, []dmarcd.EventKind{dmarcd.PolicyStrengthened, dmarcd.RecordChanged}},
			"kinds":    {store.EventFilter{Kinds: []dmarcd.EventKind{dmarcd.PolicyWeakened, dmarcd.PolicyStrengthened}}, []dmarcd.EventKind{dmarcd.PolicyWeakened, dmarcd.PolicyStrengthened}},
			"no kinds": {store.EventFilter{Kinds: []dmarcd.EventKind{}}, nil},
			"a domain": {store.EventFilter{Domain: "example.net"}, nil},
		} {
			var got []dmarcd.EventKind
			for _, e := range musttest.Get(w.team.Events(ctx, row.filter, store.Cursor{}, 10))(w) {
				got = append(got, e.Kind)
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				w.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
	})
}

// TestOpenAlerts groups open alerts by domain and kind, closes those that are resolved, and acknowledges
// many with one audit entry, but none that came later.
func TestOpenAlerts(t *testing.T) {
	eachWatched(t, func(w *watched) {
		ctx := w.Context()
		groups := func(filter dmarcd.AlertFilter) (got []string) {
			w.Helper()
			for before := int64(0); ; {
				some := musttest.Get(w.team.AlertGroups(ctx, filter, before, 1, 1))(w)
				if len(some) == 0 {
					return got
				}
				got = append(got, fmt.Sprint(some[0].Domain, " ", some[0].Kind, " ", some[0].Count, " ", len(some[0].Alerts)))
				before = some[0].Last
			}
		}
		want := func(name string, filter dmarcd.AlertFilter, wanted ...string) {
			w.Helper()
			if diff := cmp.Diff(wanted, groups(filter)); diff != "" {
				w.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
		w.check("example.com", "v=DMARC1; p=reject", facts.Facts{}, "spf.none", "mx.none")
		w.check("example.net", "v=DMARC1; p=none", facts.Facts{}, "spf.none")
		musttest.Get(w.team.TestAlert(ctx))(w)
		changed, appeared, other := "example.com record.changed 1 1", "example.com finding.appeared 2 1", "example.net finding.appeared 1 1"
		want("no good news and no test", dmarcd.AlertFilter{}, other, appeared, changed)
		want("a domain", dmarcd.AlertFilter{Domain: "example.com"}, appeared, changed)
		want("a kind", dmarcd.AlertFilter{Kind: dmarcd.FindingAppeared}, other, appeared)
		want("not about a domain", dmarcd.AlertFilter{NoDomain: true})
		last := dmarcd.DayOf(w.clock.Now())
		want("the last day", dmarcd.AlertFilter{Days: dmarcd.Days{From: &last, To: &last}}, other)
		want("earlier days", dmarcd.AlertFilter{Days: dmarcd.Days{To: new(last - 1)}}, appeared, changed)
		want("later days", dmarcd.AlertFilter{Days: dmarcd.Days{From: new(last + 1)}})
		w.check("example.com", "v=DMARC1; p=reject", facts.Facts{}, "mx.none")
		want("one is resolved", dmarcd.AlertFilter{}, other, "example.com finding.appeared 1 1", changed)
		if n := musttest.Get(w.team.OpenAlerts(ctx, dmarcd.AlertFilter{}, 2))(w); n != 2 {
			w.Errorf("got %d open alerts, want 2 of 3", n)
		}
		ids := []dmarcd.DomainID{musttest.Get(w.team.Domain(ctx, "example.com"))(w).ID, musttest.Get(w.team.Domain(ctx, "example.net"))(w).ID}
		if diff := cmp.Diff(map[dmarcd.DomainID]int{ids[0]: 2, ids[1]: 1}, musttest.Get(w.team.OpenAlertsOf(ctx, ids))(w)); diff != "" {
			w.Errorf("open alerts by domain (-want +got):\n%s", diff)
		}
		through := musttest.Get(w.team.AlertGroups(ctx, dmarcd.AlertFilter{}, 0, 1, 1))(w)[0].Last
		w.check("example.net", "v=DMARC1; p=none", facts.Facts{}, "spf.none", "mx.none")
		describe := func(n int64) dmarcd.AuditEntry {
			return dmarcd.AuditEntry{Actor: "ada", Action: "alert.acknowledge", Detail: fmt.Sprint(n)}
		}
		acknowledge := func(filter dmarcd.AlertFilter, wanted int64) {
			w.Helper()
			if n := musttest.Get(w.team.AcknowledgeAlerts(ctx, filter, "ada", describe))(w); n != wanted {
				w.Errorf("%+v: got %d alerts acknowledged, want %d", filter, n, wanted)
			}
		}
		acknowledge(dmarcd.AlertFilter{NoDomain: true}, 0)
		acknowledge(dmarcd.AlertFilter{Domain: "example.com"}, 2)
		want("those of the other domain are left", dmarcd.AlertFilter{}, "example.net finding.appeared 2 1")
		acknowledge(dmarcd.AlertFilter{Through: through}, 1)
		want("the later one is left", dmarcd.AlertFilter{}, other)
		entries := musttest.Get(w.team.Audit(ctx, store.AuditFilter{Action: "alert.acknowledge"}, store.Cursor{}, 10))(w)
		if len(entries) != 2 || entries[0].Detail != "1" || entries[1].Detail != "2" {
			w.Errorf("got the audit entries %+v, want one for 2 alerts, then one for 1", entries)
		}
		for _, a := range musttest.Get(w.team.Alerts(ctx, dmarcd.AlertFilter{Kind: dmarcd.RecordChanged}, 0, 10))(w) {
			if a.AcknowledgedBy != "ada" || a.AcknowledgedAt.IsZero() || a.Open {
				w.Errorf("got %+v, want it acknowledged by ada", a)
			}
		}
	})
}
