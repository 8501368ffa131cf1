package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/dmarcd/dmarcd"
)

// measureReports asks for the summary of one domain: against a handler that
// answers a constant behind the same middleware (/healthz), and in a team of 10
// domains against one of many.
func measureReports(ctx context.Context, s settings, e engine) (_ []figure, err error) {
	d, err := startDaemon(ctx, s, e)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	if err := addDomains(ctx, d, 10); err != nil {
		return nil, err
	}
	ask := func(path string) side {
		bytes := request(http.MethodGet, path, d.token, "")
		return func() (float64, error) {
			return load(ctx, d.address, s.clients, s.duration, http.StatusOK, func(int64) []byte { return bytes })
		}
	}
	summary := ask("/api/reports/" + domainName(5))
	ours, bare, share, err := compare(s.rounds, summary, ask("/healthz"))
	if err != nil {
		return nil, err
	}
	// The same daemon before and after cannot take turns: a second one can.
	large, err := startDaemon(ctx, s, e)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, large.close()) }()
	if err := addDomains(ctx, large, s.domains); err != nil {
		return nil, err
	}
	inLarge := request(http.MethodGet, "/api/reports/"+domainName(s.domains/2), large.token, "")
	_, _, slower, err := compare(s.rounds, summary, func() (float64, error) {
		return load(ctx, large.address, s.clients, s.duration, http.StatusOK, func(int64) []byte { return inLarge })
	})
	if err != nil {
		return nil, err
	}
	goal := map[string]string{"SQLite": "at least 0.5", "PostgreSQL": "at least 0.3"}[e.name()]
	return []figure{
		{"`GET /reports/{domain}` as a share of a constant behind the same middleware", fmt.Sprintf("%.2f (%.0f/s of %.0f/s)", share, ours, bare), goal},
		{fmt.Sprintf("the same: time with %d domains in the team over time with 10", s.domains), fmt.Sprintf("%.2f", slower), "at most 1.25"},
	}, nil
}

func domainName(i int) string { return fmt.Sprintf("d%06d.bench.example", i) }

// addDomains adds n domains past HTTP, and 90 days of counters to the one that
// is asked about. Their checks are due in a day, out of the way.
func addDomains(ctx context.Context, d *daemon, n int) error {
	names := make([]string, n)
	for i := range names {
		names[i] = domainName(i)
	}
	for part := range slices.Chunk(names, 5000) {
		if _, err := d.team.AddDomains(ctx, part, time.Now().Add(24*time.Hour)); err != nil {
			return err
		}
	}
	deliveries := make([]*dmarcd.Delivery, 90)
	for i := range deliveries {
		deliveries[i] = sample{number: i, domain: domainName(n / 2), records: 10}.delivery()
	}
	_, err := d.team.Receive(ctx, deliveries)
	return err
}
