package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/auth"
	"github.com/dmarcd/dmarcd/internal/store"
)

// pageRounds is how often each page is asked for.
const pageRounds = 200

// measurePages asks for every page of a team with 1,000 domains and many records, as
// an owner and operator, one after the other on one connection.
func measurePages(ctx context.Context, s settings, e engine) (_ []figure, err error) {
	d, err := startDaemon(ctx, s, e)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	const domains = 1000
	if err := addRecords(ctx, d, domains, s.records); err != nil {
		return nil, err
	}
	cookie, err := signIn(ctx, d)
	if err != nil {
		return nil, err
	}
	paths, err := pagePaths(ctx, d)
	if err != nil {
		return nil, err
	}
	var figures []figure
	for _, path := range paths {
		times, bytes, err := timePage(ctx, "http://"+d.address+"/app"+path, cookie)
		if err != nil {
			return nil, err
		}
		figures = append(figures, figure{
			"`/app" + path + "`, p50 and p99",
			fmt.Sprintf("%.1f ms, %.1f ms, %.0f kB", milliseconds(times[len(times)/2]), milliseconds(times[len(times)*99/100]), float64(bytes)/1000),
			"p99 under 100 ms",
		})
	}
	return figures, nil
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// pagePaths are all pages that can be read.
func pagePaths(ctx context.Context, d *daemon) ([]string, error) {
	reports, err := d.team.Reports(ctx, store.ReportFilter{}, 0, 1)
	if err != nil || len(reports) == 0 {
		return nil, cmp.Or(err, errors.New("no report is there"))
	}
	domain := "/domains/" + domainName(5)
	const days = "?from=2025-01-01&to=2025-01-30" // within the days of the samples
	return []string{
		"/" + days, "/" + days + "&sort=-passing&search=d0001", "/domains/new", domain + days, domain + "/sources" + days,
		domain + "/sources" + days + "&group=address", domain + "/sources?from=2024-10-04&to=2025-07-31", domain + "/check", domain + "/history",
		domain + "/spf", domain + "/setup", domain + "/reports", domain + "/settings", "/reports", "/reports" + days, "/reports?domain=" + domainName(5),
		"/reports/" + reports[0].ID.String(), "/reports/upload", "/reports/rejected", "/builder", "/settings/tokens", "/settings/members",
		"/settings/mailboxes", "/settings/retention", "/settings/audit", "/installation/teams", "/installation/users",
	}, nil
}

// signIn makes a user past HTTP and returns the cookie of a session.
func signIn(ctx context.Context, d *daemon) (*http.Cookie, error) {
	team, err := d.store.TeamByName(ctx, dmarcd.DefaultTeam)
	if err != nil {
		return nil, err
	}
	_, hash := auth.NewInvite()
	err = d.store.CreateInvite(ctx, hash, dmarcd.Invite{
		Email: "bench@example.com", Team: team.ID, Role: dmarcd.RoleOwner, Operator: true, ExpiresAt: time.Now().Add(time.Hour),
	})
	if err != nil {
		return nil, err
	}
	user, err := d.store.UseInvite(ctx, hash, dmarcd.Claim{PasswordHash: "x"})
	if err != nil {
		return nil, err
	}
	sessions := auth.NewSessions(d.store, time.Now, slog.New(slog.DiscardHandler))
	secret, err := sessions.Begin(ctx, user.ID, auth.Client{}, "")
	return &http.Cookie{Name: "dmarcd_session", Value: secret}, err //nolint:gosec // it is sent, not set
}

// timePage returns the sorted times of the requests, and the compressed length of the
// answer.
func timePage(ctx context.Context, url string, cookie *http.Cookie) (times []time.Duration, bytes int64, err error) {
	for range pageRounds {
		began := time.Now()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			return nil, 0, err
		}
		request.AddCookie(cookie)
		request.Header.Set("Accept-Encoding", "gzip") // so that the client leaves it as it is
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return nil, 0, err
		}
		bytes, err = io.Copy(io.Discard, answer.Body)
		if err := errors.Join(err, answer.Body.Close()); err != nil {
			return nil, 0, err
		}
		if answer.StatusCode != http.StatusOK && answer.StatusCode != http.StatusNotFound {
			return nil, 0, fmt.Errorf("%s: %s", url, answer.Status)
		}
		times = append(times, time.Since(began))
	}
	slices.Sort(times)
	return times, bytes, nil
}
