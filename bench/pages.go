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
	"slices"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/auth"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/store"
)

// pageRounds is the number of requests for each page.
const pageRounds = 200

// measurePages requests every page of a team with 1,000 domains and many records, as an owner
// and operator, one after the other on one connection.
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

// measureDemo requests every page of the sample team.
func measureDemo(ctx context.Context, s settings, e engine) []figure {
	if e.name() != "SQLite" {
		return nil // it has a database of its own
	}
	d := startDemo(ctx, s)
	defer d.close()
	return timePages(ctx, d, get(d.team.Domains(ctx, "", 1))[0].Name, "?days=365", nil)
}

// timePages requests every page of the team, those of a domain for one domain, with the query
// days, and the pages in more.
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

// pagePaths returns all pages that can be read, except those of senders.
func pagePaths(ctx context.Context, d *daemon, name, days string) []string {
	reports := get(d.team.Reports(ctx, store.ReportFilter{}, 0, 1))
	domain := "/domains/" + name
	return []string{
		"/" + days, "/" + days + "&sort=-passing&search=1", "/domains", "/domains?sort=-messages&search=1", "/domains/new", domain + days, domain + "/senders" + days,
		domain + "/senders" + days + "&group=address", domain + "/dns", domain + "/changes", domain + "/policy?p=reject", domain + "/setup",
		domain + "/print", domain + "/reports", domain + "/settings", "/activity", "/activity/dns?days=365", "/activity/everything?days=365", "/activity/dns?days=365&kind=spf", "/print", "/senders", "/senders/own", "/search?q=" + name,
		"/reports", "/reports" + days, "/reports?domain=" + name, "/reports/" + reports[0].ID.String(), "/reports/upload", "/reports/rejected",
		"/reports/exclude", "/tools", "/tools/check", "/tools/mail", "/tools/dmarc", "/tools/spf", "/tools/mta-sts", "/tools/tls-rpt", "/tools/bimi", "/settings/tokens", "/settings/members", "/settings/mailboxes", "/settings/notifications", "/settings/retention", "/settings/audit", "/installation/teams", "/installation/users", "/installation/audit", "/account",
	}
}

// firstLink returns the first link on a page whose path has the prefix.
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

// signIn creates a user in the database and returns a session cookie.
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

// measureAdvice requests the advice for all domains of a team with 1,000 domains and many
// records, including those of the last 30 days.
func measureAdvice(ctx context.Context, s settings, d *daemon) []figure {
	const domains = 1000
	today := int64(dmarcd.DayOf(time.Now()))
	addRecords(ctx, d, domains, s.records, today-sampleDay-sampleDays)
	for i := range domains {
		check := facts.Check{
			At: time.Now(), Conclusive: true, Usable: true, Asked: true, Record: "v=DMARC1; p=none", RecordDomain: domainName(i), Policy: "none",
		}
		get(d.team.SaveCheck(ctx, domainName(i), check, dmarcd.Plan{Next: time.Now().Add(24 * time.Hour)}))
	}
	buildRollups(ctx, d)
	cookie := signIn(ctx, d)
	var figures []figure
	// The first ones are measured while jobs process the new records.
	for _, path := range []string{"/app/", "/app/print", "/api/insights/advice", "/api/insights/advice?limit=100", "/api/insights/advice?after=n500", "/app/"} {
		first, p50, p99, _ := timeAnswers(ctx, "http://"+d.address+path, cookie, d.token)
		figures = append(figures, figure{
			"`" + path + "`, the first time, p50 and p99",
			fmt.Sprintf("%.1f ms, %.1f ms, %.1f ms", first, p50, p99),
			"p99 under 100 ms",
		})
	}
	return figures
}

// errLater means that the daemon is busy and asks for a retry.
var errLater = errors.New("the daemon asks to try again later")

// timeAnswers returns how long a page or an answer of the API takes the first time, and the
// median and 99th percentile of many requests, in milliseconds.
func timeAnswers(ctx context.Context, url string, cookie *http.Cookie, token string) (first, p50, p99 float64, size int64) {
	times := make([]time.Duration, pageRounds)
	for n := range times {
		var err error
		times[n], size, err = timeAnswer(ctx, url, cookie, token)
		must(err)
	}
	first = milliseconds(times[0])
	slices.Sort(times)
	return first, milliseconds(times[len(times)/2]), milliseconds(times[len(times)*99/100]), size
}

// timeAnswer returns how long a page or an answer of the API takes, and its compressed size in
// bytes.
func timeAnswer(ctx context.Context, url string, cookie *http.Cookie, token string) (took time.Duration, size int64, err error) {
	began := time.Now()
	answer, err := ask(ctx, http.MethodGet, url, cookie, token, "gzip")
	if err != nil {
		return 0, 0, err
	}
	size, err = io.Copy(io.Discard, answer.Body)
	return time.Since(began), size, errors.Join(err, answer.Body.Close())
}

// ask sends a request, and returns an error for an error response.
func ask(ctx context.Context, method, url string, cookie *http.Cookie, token, encoding string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	request.AddCookie(cookie)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	request.Header.Set("Accept-Encoding", encoding) // so that the client leaves it as it is
	answer, err := http.DefaultClient.Do(request)
	switch {
	case err != nil:
		return nil, err
	case answer.StatusCode == http.StatusServiceUnavailable:
		err = errLater
	case answer.StatusCode != http.StatusOK:
		err = errors.New("an error")
	default:
		return answer, nil
	}
	return nil, errors.Join(fmt.Errorf("%w: %s: %s", err, url, answer.Status), answer.Body.Close())
}

// measureList reads the whole list of a large team.
func measureList(ctx context.Context, s settings, d *daemon) []figure {
	addDomains(ctx, d, s.domains)
	// The first request warms up the process.
	load(ctx, d.address, 1, time.Millisecond, http.StatusOK, func(int) []byte {
		return request(http.MethodGet, "/api/domains?limit=10", d.token, "")
	})
	before, _ := d.memory()
	var first, whole []float64
	for range s.rounds {
		firstByte, end := readList(ctx, d)
		first, whole = append(first, firstByte.Seconds()*1000), append(whole, end.Seconds()*1000)
	}
	_, peak := d.memory()
	return []figure{
		{fmt.Sprintf("`GET /domains` of %d domains: first byte", s.domains), fmt.Sprintf("%.1f ms", median(first)), "under 50 ms"},
		{"the same: last byte", fmt.Sprintf("%.0f ms", median(whole)), ""},
		{"the same: growth of resident memory", fmt.Sprintf("%.1f MiB", float64(peak-before)/(1<<20)), "under 64 MiB"},
	}
}

func readList(ctx context.Context, d *daemon) (firstByte, end time.Duration) {
	r := get(http.NewRequestWithContext(ctx, http.MethodGet, "http://"+d.address+"/api/domains", nil))
	r.Header.Set("Authorization", "Bearer "+d.token)
	r.Header.Set("Accept-Encoding", "identity")
	began := time.Now()
	response, err := http.DefaultClient.Do(r)
	must(err)
	defer func() { _ = response.Body.Close() }() // read to its end
	get(io.ReadFull(response.Body, make([]byte, 1)))
	firstByte = time.Since(began)
	get(io.Copy(io.Discard, response.Body))
	return firstByte, time.Since(began)
}

// measureReports requests the summary of one domain, compared with a handler that answers a
// constant behind the same middleware (/healthz), and in a team of 10 domains compared with one
// of many.
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
	// One daemon cannot alternate between before and after: a second one can.
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

// domainNames returns the names of n domains, numbered from first.
func domainNames(first, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = domainName(first + i)
	}
	return names
}

// addDomains adds n domains in the database, and 90 days of counters to the one that is
// requested. Their checks are due in a day, so that none runs meanwhile.
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
