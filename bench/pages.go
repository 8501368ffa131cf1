package main

import (
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net/http"
	"os"
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
func measurePages(ctx context.Context, s settings, d *daemon) []figure {
	must(d.dns.Set(checkZone()))
	const domains = 1000
	addRecords(ctx, d, domains, s.records, 0)
	buildRollups(ctx, d)
	const days = "?from=2025-01-01&to=2025-01-30" // within the days of the samples
	figures := timePages(ctx, d, domainName(5), days, []string{
		"/domains/" + domainName(5) + "/senders?from=2024-10-04&to=2025-07-31",
	})
	_, peak := d.memory()
	return append(figures, figure{"the most memory that the daemon took", fmt.Sprintf("%d MiB", peak>>20), ""})
}

// measureDemo asks for every page of the sample team.
func measureDemo(ctx context.Context, s settings, e engine) []figure {
	if e.name() != "SQLite" {
		return nil // it has a database of its own
	}
	d := startDemo(ctx, s)
	defer d.close()
	return timePages(ctx, d, get(d.team.Domains(ctx, "", 1))[0].Name, "?days=365", nil)
}

// timePages asks for every page of the team, about one domain where they are about one,
// in the days of a query, and for some pages more.
func timePages(ctx context.Context, d *daemon, domain, days string, more []string) []figure {
	cookie := signIn(ctx, d)
	must(checkOnce(ctx, d, domain))
	paths := pagePaths(ctx, d, domain, days)
	d.rest(65 * time.Second)
	var figures []figure
	for _, group := range insight.Groups() {
		list := "/senders" + days + "&group=" + string(group)
		began := time.Now()
		largest := firstLink(ctx, d, cookie, list, "/senders/"+string(group)+"/")
		if len(figures) == 0 {
			figures = append(figures, figure{"`/app" + list + "`, the first time", fmt.Sprintf("%.1f ms", milliseconds(time.Since(began))), ""})
		}
		paths = append(paths, list, largest)
	}
	for _, path := range append(paths, more...) {
		_, p50, p99, size := timeAnswers(ctx, "http://"+d.address+"/app"+path, cookie, "")
		fmt.Fprintf(os.Stderr, "/app%s %.1f ms\n", path, p99)
		figures = append(figures, figure{
			"`/app" + path + "`, p50 and p99",
			fmt.Sprintf("%.1f ms, %.1f ms, %.0f kB", p50, p99, float64(size)/1000),
			"p99 under 100 ms",
		})
	}
	return figures
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// checkOnce waits until the DNS of a domain has been checked.
func checkOnce(ctx context.Context, d *daemon, domain string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if d.token != "" { // the demo checks by itself
		answer, err := ask(ctx, http.MethodPost, "http://"+d.address+"/api/domains/"+domain+"/verify", &http.Cookie{}, d.token, "identity")
		must(err)
		must(answer.Body.Close())
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
func pagePaths(ctx context.Context, d *daemon, name, days string) []string {
	reports := get(d.team.Reports(ctx, store.ReportFilter{}, 0, 1))
	domain := "/domains/" + name
	return []string{
		"/" + days, "/" + days + "&sort=-passing&search=1", "/domains/new", domain + days, domain + "/senders" + days,
		domain + "/senders" + days + "&group=address", domain + "/dns", domain + "/changes", domain + "/policy?p=reject", domain + "/setup",
		domain + "/print", domain + "/reports", domain + "/settings", "/changes", "/print", "/senders", "/senders/own", "/search?q=" + name,
		"/reports", "/reports" + days, "/reports?domain=" + name, "/reports/" + reports[0].ID.String(), "/reports/upload", "/reports/rejected",
		"/reports/exclude", "/alerts", "/builder", "/settings/tokens", "/settings/members", "/settings/mailboxes", "/settings/webhooks", "/settings/retention", "/settings/audit", "/installation/teams", "/installation/users", "/installation/audit", "/account",
	}
}

// firstLink returns the first link on a page whose path begins like that.
func firstLink(ctx context.Context, d *daemon, cookie *http.Cookie, page, beginning string) string {
	answer, err := ask(ctx, http.MethodGet, "http://"+d.address+"/app"+page, cookie, "", "identity")
	must(err)
	defer func() { _ = answer.Body.Close() }() // it was read
	text := get(io.ReadAll(answer.Body))
	_, rest, found := strings.Cut(string(text), `href="/app`+beginning)
	link, _, ended := strings.Cut(rest, `"`)
	if !found || !ended {
		must(fmt.Errorf("%s has no link to %s", page, beginning))
	}
	return beginning + html.UnescapeString(link)
}

// signIn makes a user past HTTP and returns the cookie of a session.
func signIn(ctx context.Context, d *daemon) *http.Cookie {
	_, hash := auth.NewInvitation()
	must(d.store.CreateInvitation(ctx, hash, dmarcd.Invitation{
		Email: "bench@example.com", Team: d.team.ID(), Role: dmarcd.RoleOwner, Operator: true, ExpiresAt: time.Now().Add(time.Hour),
	}))
	user := get(d.store.UseInvitation(ctx, hash, dmarcd.Claim{PasswordHash: "x"}))
	sessions := auth.NewSessions(d.store, time.Now, slog.New(slog.DiscardHandler))
	secret := get(sessions.Begin(ctx, user, auth.Client{}, ""))
	return &http.Cookie{Name: "dmarcd_session", Value: secret} //nolint:gosec // it is sent, not set
}
