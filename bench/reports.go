package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/dmarcd/dmarcd"
)

// measureReports asks for the summary of one domain: against a handler that
// answers a constant behind the same middleware (/healthz), and in a team of 10
// domains against one of many.
func measureReports(ctx context.Context, s settings, e engine) []figure {
	d := startDaemon(ctx, s, e)
	defer d.close()
	addDomains(ctx, d, 10)
	ask := func(path string) side {
		bytes := request(http.MethodGet, path, d.token, "")
		return func() float64 {
			return load(ctx, d.address, s.clients, s.duration, http.StatusOK, func(int) []byte { return bytes })
		}
	}
	summary := ask("/api/reports/" + domainName(5))
	ours, bare, share := compare(s.rounds, summary, ask("/healthz"))
	// The same daemon before and after cannot take turns: a second one can.
	large := startDaemon(ctx, s, e)
	defer large.close()
	addDomains(ctx, large, s.domains)
	inLarge := request(http.MethodGet, "/api/reports/"+domainName(s.domains/2), large.token, "")
	_, _, slower := compare(s.rounds, summary, func() float64 {
		return load(ctx, large.address, s.clients, s.duration, http.StatusOK, func(int) []byte { return inLarge })
	})
	goal := map[string]string{"SQLite": "at least 0.5", "PostgreSQL": "at least 0.3"}[e.name()]
	return []figure{
		{"`GET /reports/{domain}` as a share of a constant behind the same middleware", fmt.Sprintf("%.2f (%.0f/s of %.0f/s)", share, ours, bare), goal},
		{fmt.Sprintf("the same: time with %d domains in the team over time with 10", s.domains), fmt.Sprintf("%.2f", slower), "at most 1.25"},
	}
}

func domainName(i int) string { return fmt.Sprintf("d%06d.bench.example", i) }

// domainNames returns the names of n domains, the first of which has that number.
func domainNames(first, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = domainName(first + i)
	}
	return names
}

// addDomains adds n domains past HTTP, and 90 days of counters to the one that
// is asked about. Their checks are due in a day, out of the way.
func addDomains(ctx context.Context, d *daemon, n int) {
	for part := range slices.Chunk(domainNames(0, n), 5000) {
		get(d.team.AddDomains(ctx, part, time.Now().Add(24*time.Hour)))
	}
	deliveries := make([]*dmarcd.Delivery, 90)
	for i := range deliveries {
		deliveries[i] = sample{number: i, domain: domainName(n / 2), records: 10}.delivery()
	}
	get(d.team.Receive(ctx, deliveries))
}
