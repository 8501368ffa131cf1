package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/auth"
	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/store"
)

// pageRounds is how often each page is asked for.
const pageRounds = 200

// measurePages asks for every page of a team with 1,000 domains and many records, as
// an owner and operator, one after the other on one connection.
func measurePages(ctx context.Context, s settings, d *daemon) ([]figure, error) {
	if err := d.dns.Set(checkZone()); err != nil {
		return nil, err
	}
	const domains = 1000
	if err := addRecords(ctx, d, domains, s.records, 0); err != nil {
		return nil, err
	}
	if err := buildRollups(ctx, d); err != nil {
		return nil, err
	}
	const days = "?from=2025-01-01&to=2025-01-30" // within the days of the samples
	figures, err := timePages(ctx, d, domainName(5), days, []string{
		"/domains/" + domainName(5) + "/senders?from=2024-10-04&to=2025-07-31",
	})
	if err != nil {
		return nil, err
	}
	_, peak, err := d.memory()
	return append(figures, figure{"the most memory that the daemon took", fmt.Sprintf("%d MiB", peak>>20), ""}), err
}

// measureDemo asks for every page of the sample team.
func measureDemo(ctx context.Context, s settings, e engine) (_ []figure, err error) {
	if e.name() != "SQLite" {
		return nil, nil // it has a database of its own
	}
	d, err := startDemo(ctx, s)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	domains, err := d.team.Domains(ctx, "", 1)
	if err != nil || len(domains) == 0 {
		return nil, cmp.Or(err, errors.New("no domain is there"))
	}
	return timePages(ctx, d, domains[0].Name, "?days=365", nil)
}

// timePages asks for every page of the team, about one domain where they are about one,
// in the days of a query, and for some pages more.
func timePages(ctx context.Context, d *daemon, domain, days string, more []string) ([]figure, error) {
	cookie, err := signIn(ctx, d)
	if err != nil {
		return nil, err
	}
	if err := checkOnce(ctx, d, domain); err != nil {
		return nil, err
	}
	paths, err := pagePaths(ctx, d, domain, days)
	if err != nil {
		return nil, err
	}
	if err := d.rest(ctx); err != nil {
		return nil, err
	}
	var figures []figure
	for _, group := range insight.Groups() {
		list := "/senders" + days + "&group=" + string(group)
		began := time.Now()
		largest, err := firstLink(ctx, d, cookie, list, "/senders/"+string(group)+"/")
		if err != nil {
			return nil, err
		}
		if len(figures) == 0 {
			figures = append(figures, figure{"`/app" + list + "`, the first time", fmt.Sprintf("%.1f ms", milliseconds(time.Since(began))), ""})
		}
		paths = append(paths, list, largest)
	}
	for _, path := range append(paths, more...) {
		times, bytes, err := timePage(ctx, "http://"+d.address+"/app"+path, cookie)
		if err != nil {
			return nil, err
		}
		fmt.Fprintln(os.Stderr, "/app"+path, times[len(times)*99/100])
		figures = append(figures, figure{
			"`/app" + path + "`, p50 and p99",
			fmt.Sprintf("%.1f ms, %.1f ms, %.0f kB", milliseconds(times[len(times)/2]), milliseconds(times[len(times)*99/100]), float64(bytes)/1000),
			"p99 under 100 ms",
		})
	}
	return figures, nil
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// checkOnce waits until the DNS of a domain has been checked.
func checkOnce(ctx context.Context, d *daemon, domain string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if d.token != "" { // the demo checks by itself
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+d.address+"/api/domains/"+domain+"/verify", http.NoBody)
		if err != nil {
			return err
		}
		request.Header.Set("Authorization", "Bearer "+d.token)
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		if err := answer.Body.Close(); err != nil {
			return err
		}
	}
	for {
		_, err := d.team.LatestCheck(ctx, domain)
		if err == nil || !errors.Is(err, dmarcd.ErrNotFound) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s was not checked: %w", domain, ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// pagePaths are all pages that can be read, but those of sources.
func pagePaths(ctx context.Context, d *daemon, name, days string) ([]string, error) {
	reports, err := d.team.Reports(ctx, store.ReportFilter{}, 0, 1)
	if err != nil || len(reports) == 0 {
		return nil, cmp.Or(err, errors.New("no report is there"))
	}
	domain := "/domains/" + name
	return []string{
		"/" + days, "/" + days + "&sort=-passing&search=1", "/domains/new", domain + days, domain + "/senders" + days,
		domain + "/senders" + days + "&group=address", domain + "/dns", domain + "/changes", domain + "/policy?p=reject", domain + "/setup",
		domain + "/print", domain + "/reports", domain + "/settings", "/changes", "/print", "/senders", "/senders/own", "/search?q=" + name,
		"/reports", "/reports" + days, "/reports?domain=" + name, "/reports/" + reports[0].ID.String(), "/reports/upload", "/reports/rejected",
		"/reports/exclude", "/alerts", "/builder", "/settings/tokens", "/settings/members", "/settings/mailboxes", "/settings/webhooks", "/settings/retention", "/settings/audit", "/installation/teams", "/installation/users", "/installation/audit", "/account",
	}, nil
}

// firstLink returns the first link on a page whose path begins like that.
func firstLink(ctx context.Context, d *daemon, cookie *http.Cookie, page, beginning string) (string, error) {
	answer, err := getPage(ctx, "http://"+d.address+"/app"+page, cookie, "identity")
	if err != nil {
		return "", err
	}
	defer func() { _ = answer.Body.Close() }() // it was read
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return "", err
	}
	_, rest, found := strings.Cut(string(text), `href="/app`+beginning)
	link, _, ended := strings.Cut(rest, `"`)
	if !found || !ended {
		return "", fmt.Errorf("%s has no link to %s", page, beginning)
	}
	return beginning + html.UnescapeString(link), nil
}

// getPage asks for a page, and expects to get it.
func getPage(ctx context.Context, url string, cookie *http.Cookie, encoding string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	request.AddCookie(cookie)
	request.Header.Set("Accept-Encoding", encoding) // so that the client leaves it as it is
	answer, err := http.DefaultClient.Do(request)
	if err == nil && answer.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("%s: %s", url, answer.Status), answer.Body.Close())
	}
	return answer, err
}

// signIn makes a user past HTTP and returns the cookie of a session.
func signIn(ctx context.Context, d *daemon) (*http.Cookie, error) {
	team, err := d.store.TeamByName(ctx, dmarcd.DefaultTeam)
	if err != nil {
		return nil, err
	}
	_, hash := auth.NewInvitation()
	err = d.store.CreateInvitation(ctx, hash, dmarcd.Invitation{
		Email: "bench@example.com", Team: team.ID, Role: dmarcd.RoleOwner, Operator: true, ExpiresAt: time.Now().Add(time.Hour),
	})
	if err != nil {
		return nil, err
	}
	user, err := d.store.UseInvitation(ctx, hash, dmarcd.Claim{PasswordHash: "x"})
	if err != nil {
		return nil, err
	}
	sessions := auth.NewSessions(d.store, time.Now, slog.New(slog.DiscardHandler))
	secret, err := sessions.Begin(ctx, user, auth.Client{}, "")
	return &http.Cookie{Name: "dmarcd_session", Value: secret}, err //nolint:gosec // it is sent, not set
}

// timePage returns the sorted times of the requests, and the compressed length of the
// answer.
func timePage(ctx context.Context, url string, cookie *http.Cookie) (times []time.Duration, bytes int64, err error) {
	for range pageRounds {
		began := time.Now()
		answer, err := getPage(ctx, url, cookie, "gzip")
		if err != nil {
			return nil, 0, err
		}
		bytes, err = io.Copy(io.Discard, answer.Body)
		if err := errors.Join(err, answer.Body.Close()); err != nil {
			return nil, 0, err
		}
		times = append(times, time.Since(began))
	}
	slices.Sort(times)
	return times, bytes, nil
}
