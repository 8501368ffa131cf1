package service_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/memory"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/senders"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// countedNames knows no names, and counts how often it is asked: whenever mail is read.
type countedNames struct{ asked *atomic.Int64 }

func (c countedNames) Known(context.Context, dmarcd.TeamID, []netip.Addr) (map[netip.Addr]string, error) {
	c.asked.Add(1)
	return nil, nil
}

// TestAdviceIsReused reads the mail for the advice of all domains once, and again where
// something changes that the advice follows from.
func TestAdviceIsReused(t *testing.T) {
	t.Parallel()
	s := storetest.SQLite(t).Open(t, store.Options{})
	var read atomic.Int64
	w := service.New(s, service.Options{Insight: insight.New(&senders.Atlas{}, senders.NewCatalogue(nil), countedNames{&read}, nil)})
	acme := storetest.Team(t, s, "acme")
	stored, team := s.Team(acme.ID), w.Team(acme.ID, service.CommandLine())
	receive := func(id, domain string) error {
		_, err := stored.Receive(t.Context(), []*dmarcd.Delivery{
			storetest.Delivery(storetest.Aggregate(id, domain, dmarcd.DayOf(time.Now())-1, storetest.Passed(domain, 7))),
		})
		return err
	}
	save := func(domain, record string) error { return saveRecord(stored, domain, record) }
	domains := []string{"a.example", "b.example"}
	musttest.Get(stored.AddDomains(t.Context(), domains, time.Now().Add(time.Hour)))(t)
	for _, domain := range domains {
		musttest.Do(t, errors.Join(save(domain, "v=DMARC1; p=none"), receive("0", domain)))
	}
	for _, change := range []struct {
		name string
		make func() error
		want int64 // domains whose mail is read
	}{
		{"the first request", func() error { return nil }, 2},
		{"a report", func() error { return receive("1", "b.example") }, 1},
		{"a record", func() error { return save("a.example", "v=DMARC1; p=quarantine") }, 1},
		{"a class", func() error { return team.SetSenderClass(t.Context(), "a.example", "AS64496", dmarcd.ClassYours) }, 1},
		{"a mark", func() error { return team.SetParked(t.Context(), "b.example", true) }, 1},
		{"accepted forwarding", func() error { return team.AcceptForwarding(t.Context(), "a.example", 5) }, 1},
		{"a sender", func() error {
			return errorOf(team.SetTeamSender(t.Context(), dmarcd.TeamSender{Key: "AS64496", Name: "Data centre"}, nil))
		}, 2},
		{"the page of a domain", func() error { _, err := team.Advice(t.Context(), "b.example"); return err }, 1},
	} {
		read.Store(0)
		musttest.Do(t, change.make())
		for range 3 {
			musttest.Get(team.TopAdvice(t.Context()))(t)
		}
		if got := read.Load(); got != change.want {
			t.Errorf("%s: got mail read %d times, want %d", change.name, got, change.want)
		}
	}
}

// TestAdviceTakesLittleMemory has a team with as many senders of its own as there may be, whose
// advice for many domains is cached. It is not parallel: it measures the heap.
func TestAdviceTakesLittleMemory(t *testing.T) { //nolint:paralleltest // see above
	if testing.Short() {
		return
	}
	s := storetest.SQLite(t).Open(t, store.Options{})
	w := service.New(s, service.Options{Insight: insight.New(&senders.Atlas{}, senders.NewCatalogue(nil), nameless{}, nil)})
	acme := storetest.Team(t, s, "acme")
	label := strings.Repeat("x", 60)
	for i := range dmarcd.MaxTeamSenders {
		sender := dmarcd.TeamSender{Key: fmt.Sprint("sender-", i), Name: "x"}
		for n := range dmarcd.MaxSenderClues {
			name := fmt.Sprintf("n%d-%d.%s.%s.%s.example", i, n, label, label, label)
			sender.Hosts, sender.Domains = append(sender.Hosts, name), append(sender.Domains, name)
		}
		musttest.Do(t, s.Team(acme.ID).SetTeamSender(t.Context(), sender))
	}
	const domains = 30
	var names []string
	for i := range domains {
		names = append(names, fmt.Sprintf("d%d.example", i))
	}
	musttest.Get(s.Team(acme.ID).AddDomains(t.Context(), names, time.Now().Add(time.Hour)))(t)
	heap := func() int64 {
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return int64(stats.HeapAlloc)
	}
	before := heap()
	if _, _, err := w.Team(acme.ID, service.CommandLine()).AllAdvice(t.Context(), 0, domains); err != nil {
		t.Fatal(err)
	}
	if grown := heap() - before; grown > 16<<20 {
		t.Errorf("the cache has %d MiB, want a few for %d domains", grown>>20, domains)
	}
	runtime.KeepAlive(w)
}

// saveRecord saves a check that found a DMARC record.
func saveRecord(team *store.Team, domain, record string) error {
	check := facts.Check{At: time.Now(), Conclusive: true, Record: record, RecordDomain: domain, Usable: true, Asked: true}
	_, err := team.SaveCheck(ctx, domain, check, dmarcd.Plan{Next: time.Now().Add(time.Hour)})
	return err
}

// TestRefreshAdvice refreshes the advice of teams that were asked for, and of no others.
func TestRefreshAdvice(t *testing.T) {
	t.Parallel()
	s := storetest.SQLite(t).Open(t, store.Options{})
	w := service.New(s, service.Options{Insight: insight.New(&senders.Atlas{}, senders.NewCatalogue(nil), nameless{}, nil)})
	for _, name := range []string{"acme", "quiet", "zenith"} {
		team := storetest.Team(t, s, name)
		musttest.Get(s.Team(team.ID).AddDomain(t.Context(), name+".example", time.Now().Add(time.Hour)))(t)
		if name == "quiet" {
			continue
		}
		musttest.Get(w.Team(team.ID, service.CommandLine()).TopAdvice(t.Context()))(t)
	}
	var left []bool
	for range 3 {
		more := musttest.Get(w.RefreshAdvice(t.Context()))(t)
		left = append(left, more)
	}
	if !left[0] || left[1] || left[2] {
		t.Errorf("got %v, want two teams refreshed, one after the other", left)
	}
}

// TestAdviceIsReadTogether reads the mail of few domains one by one, and that of many once.
func TestAdviceIsReadTogether(t *testing.T) {
	t.Parallel()
	const most = 40 // domains whose mail is read one by one
	for domains, want := range map[int]int64{most: most, most + 1: 1} {
		s := storetest.SQLite(t).Open(t, store.Options{})
		var read atomic.Int64
		w := service.New(s, service.Options{Insight: insight.New(&senders.Atlas{}, senders.NewCatalogue(nil), countedNames{&read}, nil)})
		acme := storetest.Team(t, s, "acme")
		names := make([]string, domains)
		records := make([]aggregate.Record, domains)
		for i := range names {
			names[i] = fmt.Sprintf("d%d.example", i)
			records[i] = storetest.Passed(names[i], 7)
		}
		report := storetest.Delivery(storetest.Aggregate("1", names[0], dmarcd.DayOf(time.Now())-1, records...))
		musttest.Get(s.Team(acme.ID).AddDomains(t.Context(), names, time.Now().Add(time.Hour)))(t)
		for _, name := range names {
			musttest.Do(t, saveRecord(s.Team(acme.ID), name, "v=DMARC1; p=none"))
		}
		musttest.Get(s.Team(acme.ID).Receive(t.Context(), []*dmarcd.Delivery{report}))(t)
		all, more, err := w.Team(acme.ID, service.CommandLine()).AllAdvice(t.Context(), 0, domains)
		if err != nil || more || len(all) != domains || read.Load() != want {
			t.Errorf("%d domains: got %d, more: %t, %v, and mail read %d times, want %d", domains, len(all), more, err, read.Load(), want)
		}
		for _, a := range all {
			if a.Domain == "" || a.Next() == nil || a.Next().ID != all[0].Next().ID {
				t.Errorf("%d domains: got %+v, want the same action for all", domains, a)
			}
		}
	}
}

// TestAgeOfAdvice follows when advice is computed again although nothing has changed.
func TestAgeOfAdvice(t *testing.T) {
	t.Parallel()
	s := storetest.SQLite(t).Open(t, store.Options{})
	synctest.Test(t, func(t *testing.T) {
		var read atomic.Int64
		w := service.New(s, service.Options{Insight: insight.New(&senders.Atlas{}, senders.NewCatalogue(nil), countedNames{&read}, nil)})
		acme := storetest.Team(t, s, "acme")
		musttest.Get(s.Team(acme.ID).AddDomain(t.Context(), ours, time.Now().Add(time.Hour)))(t)
		receive := func(id string) {
			musttest.Get(s.Team(acme.ID).Receive(t.Context(), []*dmarcd.Delivery{
				storetest.Delivery(storetest.Aggregate(id, ours, dmarcd.DayOf(time.Now())-1, storetest.Passed(ours, 7))),
			}))(t)
		}
		receive("0")
		musttest.Do(t, saveRecord(s.Team(acme.ID), ours, "v=DMARC1; p=none"))
		var err error
		ask := func() { _, err = w.Team(acme.ID, service.CommandLine()).TopAdvice(t.Context()) }
		refresh := func() { _, err = w.RefreshAdvice(t.Context()) }
		for _, step := range []struct {
			name  string
			after time.Duration
			do    func()
			want  int64 // times that mail is read
		}{
			{"refreshed before the first request", 0, refresh, 0},
			{"the first request", 0, ask, 1},
			{"within its age", 10 * time.Minute, ask, 0},
			{"after its age", time.Second, ask, 1},
			{"refreshed before half of its age", 5 * time.Minute, refresh, 0},
			{"refreshed after half of its age", 31 * time.Second, refresh, 1},
			{"refreshed at once after a change", 0, func() { receive("1"); refresh() }, 0},
			{"refreshed half a minute later", 30 * time.Second, refresh, 1},
			{"refreshed after a day without requests", 24 * time.Hour, func() { receive("2"); refresh() }, 0},
		} {
			time.Sleep(step.after)
			read.Store(0)
			if step.do(); err != nil {
				t.Fatalf("%s: %v", step.name, err)
			}
			if got := read.Load(); got != step.want {
				t.Errorf("%s: got mail read %d times, want %d", step.name, got, step.want)
			}
		}
	})
}

// TestAdviceAgesByTheClock reads the mail again once the advice is too old by the clock of the
// service.
func TestAdviceAgesByTheClock(t *testing.T) {
	t.Parallel()
	s := storetest.SQLite(t).Open(t, store.Options{})
	var read atomic.Int64
	now := time.Now()
	w := service.New(s, service.Options{
		Insight: insight.New(&senders.Atlas{}, senders.NewCatalogue(nil), countedNames{&read}, nil), Now: func() time.Time { return now },
	})
	team := advised(t, s, w, 1, "")
	for _, step := range []struct {
		wait time.Duration
		want int64 // times that mail is read
	}{{0, 1}, {9 * time.Minute, 0}, {2 * time.Minute, 1}} {
		now = now.Add(step.wait)
		read.Store(0)
		musttest.Get(team.TopAdvice(t.Context()))(t)
		if got := read.Load(); got != step.want {
			t.Errorf("after %v: got mail read %d times, want %d", step.wait, got, step.want)
		}
	}
}

// advised returns a team with monitoring domains, mail of each, and a check with that text.
func advised(t *testing.T, s *store.Store, w *service.Service, domains int, text string) *service.Team {
	t.Helper()
	acme := musttest.Get(s.CreateTeam(t.Context(), "acme", true))(t)
	var names []string
	for i := range domains {
		names = append(names, fmt.Sprintf("d%d.example", i))
	}
	stored := s.Team(acme.ID)
	musttest.Get(stored.AddDomains(t.Context(), names, time.Now().Add(time.Hour)))(t)
	for _, name := range names {
		check := facts.Check{
			At: time.Now(), Conclusive: true, Record: "v=DMARC1; p=none", RecordDomain: name, Usable: true, Asked: true,
			Facts: &facts.Facts{Domain: name, DMARC: facts.DMARC{Status: "ok", Record: text}},
		}
		_, err := stored.SaveCheck(t.Context(), name, check, dmarcd.Plan{Next: time.Now().Add(time.Hour)})
		if err == nil {
			_, err = stored.Receive(t.Context(), []*dmarcd.Delivery{
				storetest.Delivery(storetest.Aggregate(name, name, dmarcd.DayOf(time.Now())-1, storetest.Passed(name, 7))),
			})
		}
		musttest.Do(t, err)
	}
	return w.Team(acme.ID, service.CommandLine())
}

// TestAdviceHasAMemoryBudget has the advice of many domains wait for the memory of its team, and
// their checks read in parts if they are large.
func TestAdviceHasAMemoryBudget(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		return
	}
	const domains = 50
	s := storetest.SQLite(t).Open(t, store.Options{})
	var read atomic.Int64
	budget := memory.NewBudget(256 << 20)
	w := service.New(s, service.Options{
		Insight: insight.New(&senders.Atlas{}, senders.NewCatalogue(nil), countedNames{&read}, nil), Memory: budget,
	})
	team := advised(t, s, w, domains, strings.Repeat("x", 512<<10))
	_, release, err := team.ReserveMemory(t.Context())
	musttest.Do(t, err)
	impatient, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, _, err := team.AllAdvice(impatient, 0, domains); !errors.Is(err, context.DeadlineExceeded) || read.Load() > 0 {
		t.Errorf("without memory: got error %v and mail read %d times, want it to wait", err, read.Load())
	}
	release()
	all, _, err := team.AllAdvice(t.Context(), 0, domains)
	if err != nil || len(all) != domains {
		t.Fatalf("got %d advice, %v; want %d", len(all), err, domains)
	}
	for i, advice := range all {
		if advice.Domain == "" || advice.Stage != dmarcd.StageMonitoring {
			t.Errorf("advice %d: got %+v", i, advice)
		}
	}
	if got := read.Load(); got < 2 || got > 10 {
		t.Errorf("got mail read %d times, want some times: the checks have %d MiB", got, domains/2)
	}
}
