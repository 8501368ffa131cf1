package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/dnscheck"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/jobs"
	"github.com/dmarcd/dmarcd/internal/store"
)

// scheduleDomains is the number of domains, in dayTeams teams, that become due at the same
// time.
const scheduleDomains = 2000

// measureSchedule adds many domains, claims all that become due, and runs their schedule for a
// day on a simulated clock.
func measureSchedule(ctx context.Context, s settings, e engine) []figure {
	dsn, drop := e.create(ctx)
	defer func() { must(drop()) }()
	clock := time.Date(2026, 11, 15, 0, 0, 0, 0, time.UTC)
	st := get(store.Open(ctx, dsn, store.Options{Now: func() time.Time { return clock }}))
	defer func() { must(st.Close()) }()
	get(st.Migrate(ctx))
	created := get(st.CreateTeam(ctx, "bench", true))
	d := &daemon{store: st, team: st.Team(created.ID)}

	began := time.Now()
	get(d.team.AddDomains(ctx, domainNames(0, s.domains), clock))
	planned := time.Since(began)

	perMinute, claiming := claimAll(ctx, d, &clock, s.domains)
	together, single, times := compareClaims(ctx, s, st, &clock)
	busiest := slices.Max(perMinute)
	later := simulateDay(s.domains)
	return []figure{
		{fmt.Sprintf("%d domains added at once: time to plan", s.domains), fmt.Sprintf("%.1f s", planned.Seconds()), ""},
		{"the same: claims", fmt.Sprintf("%.0f domains/s", float64(s.domains)/claiming.Seconds()), ""},
		{"the same: busiest minute of the first round", fmt.Sprintf("%d checks (50 a second are 3000)", busiest), ""},
		{fmt.Sprintf("%d domains of %d teams are due: claims and results without DNS, rate relative to a claim for each domain", scheduleDomains, dayTeams), fmt.Sprintf("%.2f (%.0f/s of %.0f/s)", times, together, single), ""},
		{"the same: heap afterwards", fmt.Sprintf("%.1f MiB", float64(heapInUse())/(1<<20)), ""},
		{"after a day by the hour (simulated): busiest and quietest minute over the mean", later, ""},
	}
}

func heapInUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse) //nolint:gosec // no heap has 2^63 bytes
}

// claimAll advances the clock until every domain was claimed once, and returns the claims in
// each minute.
func claimAll(ctx context.Context, d *daemon, clock *time.Time, domains int) (perMinute []int, took time.Duration) {
	began := time.Now()
	for claimed, minute := 0, 0; claimed < domains; minute++ {
		inMinute := 0
		for range 60 {
			for {
				due := get(d.store.ClaimDueDomains(ctx, 24*time.Hour, map[dmarcd.TeamID]int{d.team.ID(): 100}))
				inMinute += len(due)
				if len(due) < 100 {
					break
				}
			}
			*clock = clock.Add(time.Second)
		}
		claimed += inMinute
		perMinute = append(perMinute, inMinute)
		if minute > 24*60 {
			must(fmt.Errorf("after a day only %d of %d domains became due", claimed, domains))
		}
	}
	return perMinute, time.Since(began)
}

// claims claims due domains, as jobs.Checks needs it.
type claims func(ctx context.Context, lease time.Duration, slots map[dmarcd.TeamID]int) ([]dmarcd.DueDomain, error)

// compareClaims compares how many checks per second the job does with claims of several
// domains, and with one claim for each.
func compareClaims(ctx context.Context, s settings, st *store.Store, clock *time.Time) (together, single, ratio float64) {
	for i := range dayTeams {
		created := get(st.CreateTeam(ctx, fmt.Sprintf("team%d", i), true))
		get(st.Team(created.ID).AddDomains(ctx, domainNames(0, scheduleDomains/dayTeams), *clock))
	}
	each := func(ctx context.Context, lease time.Duration, slots map[dmarcd.TeamID]int) (due []dmarcd.DueDomain, err error) {
		for team, n := range slots {
			for range n {
				one, err := st.ClaimDueDomains(ctx, lease, map[dmarcd.TeamID]int{team: 1})
				if err != nil {
					return nil, err
				}
				due = append(due, one...)
			}
		}
		return due, nil
	}
	timed := func(claim claims) side {
		return func() float64 {
			*clock = clock.Add(time.Hour)
			return checkTeams(ctx, st, *clock, claim)
		}
	}
	return compare(s.rounds, timed(st.ClaimDueDomains), timed(each))
}

// checkTeams has the job check scheduleDomains due domains with a constant result, and returns
// the checks per second.
func checkTeams(ctx context.Context, st *store.Store, now time.Time, claim claims) float64 {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var checked atomic.Int64
	job := &jobs.Checks{
		Teams: st.DueTeams, Claim: claim, Rate: 1e6, Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
		Check: func(ctx context.Context, due dmarcd.DueDomain) error {
			check := facts.Check{At: now, Conclusive: true, Usable: true, Record: "v=DMARC1; p=none", Policy: "none"}
			_, err := st.Team(due.Team).SaveCheck(ctx, due.Name, check, dmarcd.Plan{Next: now.Add(time.Hour), NextFull: now.Add(time.Hour)})
			if checked.Add(1) == scheduleDomains {
				stop()
			}
			return err
		},
		Ended: func(ctx context.Context, due dmarcd.DueDomain) error {
			return st.Team(due.Team).CheckEnded(ctx, due.Name)
		},
	}
	began := time.Now()
	must(job.Run(ctx))
	return float64(checked.Load()) / time.Since(began).Seconds()
}

// simulateDay has the checker plan the hourly checks of a day for domains that were added at 50
// per second, and describes how even the last hours are.
func simulateDay(domains int) string {
	start := time.Date(2026, 11, 15, 0, 0, 0, 0, time.UTC)
	now := start
	checker := dnscheck.New(dnscheck.Options{Interval: time.Hour, FullInterval: 24 * time.Hour, Now: func() time.Time { return now }})
	minutes := make([]int, 24*60)
	for i := range domains {
		now = start.Add(time.Duration(i) * 20 * time.Millisecond)
		for {
			minute := int(now.Sub(start) / time.Minute)
			if minute >= len(minutes) {
				break
			}
			minutes[minute]++
			now = checker.Plan(domainName(i), dnscheck.Scheduled).Next
		}
	}
	last := minutes[12*60:]
	total := 0
	for _, n := range last {
		total += n
	}
	mean := float64(total) / float64(len(last))
	return fmt.Sprintf("%.2f and %.2f (mean %.0f checks a minute)", float64(slices.Max(last))/mean, float64(slices.Min(last))/mean, mean)
}
