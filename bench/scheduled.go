package main

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd/internal/store"
	harness "github.com/dmarcd/dmarcd/test/daemon"
)

// scheduledDomains are the domains of the suite scheduled whose records are those of the suite day.
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

// round makes the domains with names from first up to after due and waits until each is checked. It
// returns the processor time of the daemon and, if there is one, of the database server.
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

// used returns the processor time so far of the daemon, and of its connections to PostgreSQL, which is
// on this machine.
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
