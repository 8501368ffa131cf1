package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	miekg "github.com/miekg/dns"

	"github.com/dmarcd/dmarcd/internal/dnscheck"
	"github.com/dmarcd/dmarcd/internal/resolver"
	"github.com/dmarcd/dmarcd/internal/resolver/resolvertest"
	"github.com/dmarcd/dmarcd/internal/store"
	harness "github.com/dmarcd/dmarcd/test/daemon"
)

// checkDomains is the number of domains of the full checks.
const checkDomains = 200

// checkZone returns the records of typical domains: a policy, SPF with two includes, one DKIM
// key, two mail servers, TLS reports.
func checkZone() string {
	const key = "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE" // any octets: keys are not what is measured
	var zone strings.Builder
	for i := range checkDomains {
		name := domainName(i)
		fmt.Fprintf(&zone, `
%[1]s. MX 10 mx1.%[1]s.
%[1]s. MX 20 mx2.%[1]s.
%[1]s. A 192.0.2.1
%[1]s. TXT "v=spf1 include:_spf.one.example include:_spf.two.example -all"
_dmarc.%[1]s. TXT "v=DMARC1; p=reject; rua=mailto:dmarc@%[1]s"
_smtp._tls.%[1]s. TXT "v=TLSRPTv1; rua=mailto:tls@%[1]s"
google._domainkey.%[1]s. TXT "v=DKIM1; k=rsa; p=%[2]s"
mx1.%[1]s. A 192.0.2.2
mx2.%[1]s. A 192.0.2.3
`, name, key)
	}
	zone.WriteString("_spf.one.example. TXT \"v=spf1 ip4:192.0.2.0/24 -all\"\n_spf.two.example. TXT \"v=spf1 ip4:198.51.100.0/24 -all\"\n")
	return zone.String()
}

// measureChecks measures full checks, compared with a DNS library that only sends the same
// number of queries with the same concurrency. It needs no database.
func measureChecks(ctx context.Context, s settings, e engine) []figure {
	if e.name() != "SQLite" {
		return nil // once is enough
	}
	server := get(resolvertest.Listen("127.0.0.1:0"))
	defer server.Close()
	must(server.Set(checkZone()))
	client := resolver.New(resolver.Config{Servers: []string{server.Addr()}, Timeout: 5 * time.Second})
	defer client.Close()
	checker := dnscheck.New(dnscheck.Options{Resolver: client.Fresh(), Now: time.Now})
	var made atomic.Int64
	before := server.Total()
	check := func() float64 {
		return repeat(ctx, s.clients, s.duration, func(_, n int) error {
			result := checker.Examine(ctx, dnscheck.Request{Domain: domainName(n % checkDomains)})
			if !result.Conclusive {
				return errors.New("inconclusive: " + result.Reason)
			}
			made.Add(1)
			return nil
		})
	}
	check() // to learn how many questions one takes
	questions := int(float64(server.Total()-before)/float64(made.Load()) + 0.5)
	ours, alone, share := compare(s.rounds, check, func() float64 {
		return askAlone(ctx, s, server.Addr(), questions, checkDomains)
	})
	return []figure{{
		fmt.Sprintf("full checks (%d questions each) as a share of the DNS library asking alone", questions),
		fmt.Sprintf("%.2f (%.0f/s of %.0f/s)", share, ours, alone), "at least 0.5",
	}}
}

// zone returns a record for every domain of the benchmark. A verification walks up the tree
// with four queries.
func zone(n int) string {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "_dmarc.%s. TXT \"v=DMARC1; p=reject; rua=mailto:reports@bench.example\"\n", domainName(i))
	}
	return text.String()
}

// measureCreate adds domains, each with a DNS check inside the request.
func measureCreate(ctx context.Context, s settings, d *daemon) []figure {
	must(d.dns.Set(zone(1000)))
	rate := load(ctx, d.address, s.clients, time.Duration(s.rounds)*s.duration, http.StatusCreated, func(n int) []byte {
		return request(http.MethodPost, "/api/domains", d.token, fmt.Sprintf(`{"domain":"%s"}`, domainName(n)))
	})
	return []figure{{"`POST /domains` with DNS answering from loopback", fmt.Sprintf("%.0f/s", rate), ""}}
}

// measureVerify verifies domains, compared with a DNS library that only sends the same number
// of queries.
func measureVerify(ctx context.Context, s settings, d *daemon) []figure {
	const domains = 1000
	must(d.dns.Set(zone(domains)))
	addDomains(ctx, d, domains)
	before := d.dns.Total()
	var verified atomic.Int64
	verify := func() float64 {
		return load(ctx, d.address, s.clients, s.duration, http.StatusOK, func(n int) []byte {
			verified.Add(1)
			return request(http.MethodPost, "/api/domains/"+domainName(n%domains)+"/verify", d.token, "")
		})
	}
	verify() // to learn how many questions one takes
	questions := int(float64(d.dns.Total()-before)/float64(verified.Load()) + 0.5)
	ours, alone, share := compare(s.rounds, verify, func() float64 {
		return askAlone(ctx, s, d.dns.Addr(), questions, domains)
	})
	return []figure{{
		fmt.Sprintf("`POST /domains/{domain}/verify` (%d questions each) as a share of the DNS library asking alone", questions),
		fmt.Sprintf("%.2f (%.0f/s of %.0f/s)", share, ours, alone), "",
	}}
}

// askAlone returns how many times per second the library sends that many queries, one after the
// other like a tree walk, with as many clients as the load has.
func askAlone(ctx context.Context, s settings, server string, questions, domains int) float64 {
	client := &miekg.Client{Timeout: 5 * time.Second}
	return repeat(ctx, s.clients, s.duration, func(_, n int) error {
		for range questions {
			message := new(miekg.Msg).SetQuestion("_dmarc."+domainName(n%domains)+".", miekg.TypeTXT)
			if _, _, err := client.Exchange(message, server); err != nil {
				return err
			}
		}
		return nil
	})
}

// scheduledDomains is the number of domains of the suite scheduled. Their records are those of
// the suite day.
const scheduledDomains = 1000

// measureScheduled measures the processor time of scheduled checks of domains that are all due at once.
func measureScheduled(ctx context.Context, s settings, e engine) []figure {
	d := startDaemon(ctx, s, e, "DMARCD_SCHEDULE_RATE=100000")
	defer d.close()
	must(d.dns.Set(checkZone() + dayZone(checkDomains, checkDomains+scheduledDomains, false)))
	names := domainNames(0, checkDomains+scheduledDomains)
	get(d.team.AddDomains(ctx, names, time.Now().Add(time.Hour)))
	db := openSQL(d.dsn)
	defer func() { must(db.Close()) }()
	c := checkCost{daemon: d, db: db}
	var figures []figure
	for _, kind := range []struct {
		what         string
		first, after int
		full         bool
	}{
		{"first full checks of domains as in the suite day", checkDomains, len(names), true},
		{"first full checks of domains with a DKIM key, as in the suite check", 0, checkDomains, true},
		{"checks of the DMARC record alone", checkDomains, len(names), false},
		{"full checks of domains as in the suite day", checkDomains, len(names), true},
		{"full checks of domains with a DKIM key, as in the suite check", 0, checkDomains, true},
	} {
		rounds := s.rounds
		if strings.HasPrefix(kind.what, "first") {
			rounds = 1
		}
		var ours, theirs, queries []float64
		for range rounds {
			asked := d.dns.Total()
			daemon, server := c.round(ctx, domainName(kind.first), domainName(kind.after), kind.full)
			n := float64(kind.after - kind.first)
			ours, theirs = append(ours, milliseconds(daemon)/n), append(theirs, milliseconds(server)/n)
			queries = append(queries, float64(d.dns.Total()-asked)/n)
		}
		value := fmt.Sprintf("%.2f ms", median(ours))
		if store.IsPostgres(d.dsn) {
			value += fmt.Sprintf(", and %.2f ms of PostgreSQL", median(theirs))
		}
		figures = append(figures, figure{
			fmt.Sprintf("%s, %d at once (%.1f queries each): processor time of each", kind.what, kind.after-kind.first, median(queries)), value, "",
		})
	}
	return figures
}

// checkCost measures checks by the schedule of a daemon.
type checkCost struct {
	*daemon
	db *sql.DB
}

// round makes the domains with names from first up to after due, and waits until all are
// checked. It returns the processor time of the daemon and of the database server, if there is
// one.
func (c checkCost) round(ctx context.Context, first, after string, full bool) (daemon, server time.Duration) {
	now := time.Now().Unix()
	fullAt := now
	if !full {
		fullAt += 86_400
	}
	before, serverBefore := c.used(ctx)
	get(c.db.ExecContext(ctx, `UPDATE domains SET next_check_at = $1, next_full_at = $2 WHERE name >= $3 AND name < $4`, now, fullAt, first, after))
	poll := time.NewTicker(50 * time.Millisecond)
	defer poll.Stop()
	for left := 1; left > 0; <-poll.C {
		row := c.db.QueryRowContext(ctx, `SELECT COUNT(*) FROM domains WHERE name >= $1 AND name < $2 AND (next_check_at <= $3 OR unfinished > 0)`, first, after, now)
		must(row.Scan(&left))
		if time.Now().Unix()-now > 600 {
			must(fmt.Errorf("%d domains are not checked after ten minutes", left))
		}
	}
	daemon, server = c.used(ctx)
	return daemon - before, server - serverBefore
}

// used returns the processor time of the daemon so far, and of its connections to PostgreSQL,
// which runs on this machine.
func (c checkCost) used(ctx context.Context) (daemon, server time.Duration) {
	daemon = get(harness.ProcessorTime(c.process.Process.Pid))
	if !store.IsPostgres(c.dsn) {
		return daemon, 0
	}
	rows, err := c.db.QueryContext(ctx, `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'dmarcd'`)
	must(err)
	defer func() { must(rows.Close()) }()
	for rows.Next() {
		var pid int
		must(rows.Scan(&pid))
		server += get(harness.ProcessorTime(pid))
	}
	must(rows.Err())
	return daemon, server
}
