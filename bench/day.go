package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/smtp"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/auth"
	"github.com/dmarcd/dmarcd/internal/store"
	harness "github.com/dmarcd/dmarcd/test/daemon"
)

// The load of a day.
const (
	dayTeams   = 100
	dayRecords = 10 // per report
	dayReports = 5  // per domain
	// busyHours are the first hours of the day, in which reports arrive at twice the mean
	// rate: most receivers send them after midnight UTC.
	busyHours = 6
	// dayChanges is the inverse of the share of domains whose record changes during the day.
	dayChanges = 100
)

// dayRead is a request that is repeated over the day.
type dayRead struct {
	path   string // of the API; DOMAIN is replaced
	perDay func(domains int) int
}

var dayReads = []dayRead{
	{"/reports/DOMAIN", func(domains int) int { return domains }},
	{"/insights/senders?domain=DOMAIN", func(domains int) int { return domains / 10 }},
	{"/insights/advice?limit=10", func(int) int { return 24 * dayTeams }},
	{"/domains?limit=100", func(int) int { return 24 * dayTeams }},
}

// squeeze returns the duration of a part of the day in compressed time.
func (s settings) squeeze(d time.Duration) time.Duration { return time.Duration(float64(d) / s.speed) }

// measureDay simulates a day of many domains in compressed time: scheduled checks, reports by
// mail, and clients that read, each at its daily rate times the speed. The figures are delays,
// in compressed time too.
func measureDay(ctx context.Context, s settings, e engine) []figure {
	interval := s.squeeze(time.Hour)
	d := startDaemon(ctx, s, e, "DMARCD_SCHEDULE_INTERVAL="+interval.String(),
		fmt.Sprintf("DMARCD_SCHEDULE_RATE=%.0f", 2*float64(s.domains)/interval.Seconds()))
	defer d.close()
	day := &dayLoad{daemon: d, length: s.squeeze(s.day), late: map[string][]time.Duration{}}
	figures := day.setUp(ctx, s)
	began := time.Now()
	used := get(harness.ProcessorTime(d.process.Process.Pid))
	must(day.run(ctx, s))
	backlog := day.awaitCounted(ctx)
	usedAfter := get(harness.ProcessorTime(d.process.Process.Pid))
	took := time.Since(began)
	oldest := day.oldestCheck(ctx)
	seen := day.awaitChanges(ctx, interval)
	_, peak := d.memory()
	figures = append(figures,
		figure{fmt.Sprintf("%v of the day at %.0f times its speed: reports by mail, all counted", s.day, s.speed), fmt.Sprintf("%d, the last %.1f s after the end", day.sent, backlog.Seconds()), "all"},
		figure{"the same: age of the oldest check over the interval of checks", fmt.Sprintf("%.2f", oldest.Seconds()/interval.Seconds()), "about 1"},
		figure{"the same: changed records that became events", fmt.Sprintf("%d of %d", seen, day.changed), "all"},
		figure{"the same: mails (4xx) and requests (503) that the daemon asked to repeat later", strconv.FormatInt(day.postponed.Load(), 10), "0"},
		figure{"the same: processors that the daemon used; most memory", fmt.Sprintf("%.2f; %d MiB", (usedAfter-used).Seconds()/took.Seconds(), peak>>20), ""},
	)
	for _, what := range slices.Sorted(maps.Keys(day.late)) {
		times := day.late[what]
		if len(times) == 0 {
			continue // too little of the day
		}
		slices.Sort(times)
		figures = append(figures, figure{
			"the same: " + what + ", from the time at which it was due: number, p50 and p99",
			fmt.Sprintf("%d, %.1f ms, %.1f ms", len(times), milliseconds(times[len(times)/2]), milliseconds(times[len(times)*99/100])), "",
		})
	}
	return figures
}

// dayLoad is the load of a simulated day.
type dayLoad struct {
	*daemon
	length  time.Duration // of the part that is simulated
	domains []dayDomain
	changed int

	postponed atomic.Int64 // requests and mails that the daemon asked to repeat later

	mu   sync.Mutex
	sent int
	late map[string][]time.Duration
}

type dayDomain struct {
	name, address, token string
	team                 *store.Team
}

// setUp adds teams and domains. The daemon checks those of the first team in full. The others
// get copies of its first check while the daemon is stopped, because the day after the first
// checks is measured.
func (l *dayLoad) setUp(ctx context.Context, s settings) []figure {
	must(l.dns.Set(dayZone(0, s.domains, false)))
	perTeam := max(s.domains/dayTeams, 1)
	began := time.Now()
	l.addTeam(ctx, 0, min(perTeam, s.domains), began)
	l.awaitChecked(ctx, began)
	checked, first := time.Since(began), len(l.domains)
	began = time.Now()
	l.whileStopped(ctx, func() {
		for next := first; next < s.domains; next += perTeam {
			l.addTeam(ctx, next, min(perTeam, s.domains-next), began.Add(24*time.Hour))
		}
		l.copyCheck(ctx, s, l.domains[0].name)
	})
	return []figure{
		{fmt.Sprintf("%d domains of a team added: until each was checked in full", first), fmt.Sprintf("%.1f s (%.0f/s)", checked.Seconds(), float64(first)/checked.Seconds()), ""},
		{fmt.Sprintf("%d domains of other teams added, with copies of these checks", len(l.domains)-first), fmt.Sprintf("%.1f s", time.Since(began).Seconds()), ""},
	}
}

// copyCheck copies the check of a domain to all domains without one. Their next checks are
// spread evenly over the intervals.
func (l *dayLoad) copyCheck(ctx context.Context, s settings, name string) {
	db := openSQL(l.dsn)
	defer func() { must(db.Close()) }()
	get(db.ExecContext(ctx, `INSERT INTO checks (id, team_id, domain_id, first_at, last_at, grade, document, changes, errors)
		SELECT domains.id, domains.team_id, domains.id, checks.first_at, checks.last_at, checks.grade,
			replace(replace(checks.document, checked.name, domains.name), checked.report_mailbox, domains.report_mailbox), checks.changes, checks.errors
		FROM domains AS checked JOIN checks ON checks.team_id = checked.team_id AND checks.domain_id = checked.id JOIN domains ON domains.checked_at = 0
		WHERE checked.name = $1`, name))
	get(db.ExecContext(ctx, `UPDATE domains SET active = checked.active, record = checked.record, record_domain = replace(checked.record_domain, checked.name, domains.name),
			policy = checked.policy, grade = checked.grade, parked = checked.parked, checked_at = checked.checked_at,
			known_at = checked.known_at, known_until = checked.known_until, full_at = checked.full_at,
			next_check_at = CAST($2 AS BIGINT) + domains.id % CAST($3 AS BIGINT), next_full_at = CAST($2 AS BIGINT) + domains.id % CAST($4 AS BIGINT)
		FROM domains AS checked WHERE checked.name = $1 AND domains.checked_at = 0`,
		name, time.Now().Unix(), int64(s.squeeze(time.Hour).Seconds()), int64(s.squeeze(24*time.Hour).Seconds())))
}

// awaitChecked waits until each domain was checked after since.
func (l *dayLoad) awaitChecked(ctx context.Context, since time.Time) {
	poll := time.NewTicker(100 * time.Millisecond)
	defer poll.Stop()
	for ; ; <-poll.C {
		oldest := l.oldestCheck(ctx)
		if oldest <= time.Since(since.Truncate(time.Second)) { // as the times of checks are
			return
		}
		if time.Since(since) > 10*time.Minute {
			must(errors.New("the first checks take more than ten minutes"))
		}
	}
}

// addTeam adds a team with n domains, numbered from first.
func (l *dayLoad) addTeam(ctx context.Context, first, n int, nextCheck time.Time) {
	created := get(l.store.CreateTeam(ctx, fmt.Sprintf("team%d", first), true))
	team, token := l.store.Team(created.ID), auth.NewToken()
	get(team.CreateToken(ctx, store.NewToken{Name: "bench", Scope: dmarcd.ScopeRead, Hash: auth.HashToken(token)}))
	get(team.AddDomains(ctx, domainNames(first, n), nextCheck))
	for _, domain := range get(team.Domains(ctx, "", n)) {
		l.domains = append(l.domains, dayDomain{domain.Name, domain.ReportAddress(benchReportDomain), token, team})
	}
}

// dayZone returns the records of the domains from first up to after. If changed is set, one in
// dayChanges has another policy.
func dayZone(first, after int, changed bool) string {
	var zone strings.Builder
	for i := first; i < after; i++ {
		policy := "none"
		if changed && i%dayChanges == 0 {
			policy = "quarantine"
		}
		fmt.Fprintf(&zone, "_dmarc.%[1]s. 1 TXT \"v=DMARC1; p=%[2]s\"\n%[1]s. MX 10 mx.bench.example.\n%[1]s. TXT \"v=spf1 ip4:192.0.2.0/24 -all\"\n", domainName(i), policy)
	}
	zone.WriteString("mx.bench.example. A 192.0.2.2\n")
	return zone.String()
}

// run applies the load of the day.
func (l *dayLoad) run(ctx context.Context, s settings) error {
	group, ctx := errgroup.WithContext(ctx)
	hours := s.day.Hours()
	busy := min(hours, busyHours)
	perHour := float64(len(l.domains)*dayReports) / 24
	early := int(2 * perHour * busy)
	l.sent = early + int(perHour*(hours-busy)*(24-2*busyHours)/(24-busyHours))
	split := time.Duration(float64(l.length) * busy / hours)
	arrival := func(i int) time.Duration {
		if i < early {
			return split * time.Duration(i) / time.Duration(early)
		}
		return split + (l.length-split)*time.Duration(i-early)/time.Duration(l.sent-early)
	}
	l.pace(ctx, group, "a mail is acknowledged", s.clients, l.sent, arrival, l.mailer)
	for _, read := range dayReads {
		n := int(float64(read.perDay(len(l.domains))) * hours / 24)
		even := func(i int) time.Duration { return l.length * time.Duration(i) / time.Duration(n) }
		l.pace(ctx, group, "`GET "+read.path+"`", 2, n, even, func() func(ctx context.Context, i int) error {
			return func(ctx context.Context, i int) error { return l.read(ctx, read.path, i) }
		})
	}
	group.Go(func() error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(min(l.length/3, l.length-2*s.squeeze(time.Hour))): // so that all are checked after it
		}
		l.changed = (len(l.domains) + dayChanges - 1) / dayChanges
		return l.dns.Set(dayZone(0, len(l.domains), true))
	})
	return group.Wait()
}

// pace does n pieces of work with some workers, each at its time after now, and records how
// long after its time each was done.
func (l *dayLoad) pace(
	ctx context.Context, group *errgroup.Group, what string, workers, n int, at func(i int) time.Duration,
	worker func() func(ctx context.Context, i int) error,
) {
	began := time.Now()
	var next atomic.Int64
	for range workers {
		group.Go(func() error {
			work := worker()
			var late []time.Duration
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				due := began.Add(at(i))
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-time.After(time.Until(due)):
				}
				if err := l.insist(ctx, i, work); err != nil {
					return fmt.Errorf("%s: %w", what, err)
				}
				late = append(late, time.Since(due))
			}
			l.mu.Lock()
			defer l.mu.Unlock()
			l.late[what] = append(l.late[what], late...)
			return nil
		})
	}
}

// insist repeats a piece of work after a second while the daemon asks for it.
func (l *dayLoad) insist(ctx context.Context, i int, work func(ctx context.Context, i int) error) error {
	for tries := 1; ; tries++ {
		err := work(ctx, i)
		if !errors.Is(err, errLater) || tries == 60 {
			return err
		}
		l.postponed.Add(1)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

// mailsPerConnection is less than what arrives in half an hour, after which the daemon ends a
// connection.
const mailsPerConnection = 100

// mailer returns a function that sends the report of a number. It has its own connections.
func (l *dayLoad) mailer() func(ctx context.Context, i int) error {
	var client *smtp.Client
	sent, yesterday := 0, int64(dmarcd.DayOf(time.Now()))-1
	return func(_ context.Context, i int) (err error) {
		if client != nil && sent%mailsPerConnection == 0 {
			err, client = client.Quit(), nil
		}
		if client == nil && err == nil {
			client, err = smtp.Dial(l.mail)
		}
		if err != nil {
			return err
		}
		sent++
		domain := l.domains[i*7919%len(l.domains)]
		file := sample{number: i, domain: domain.name, records: dayRecords, day: yesterday}.file()
		err = sendMail(client, domain.address, mailWith(file))
		if reply := (*textproto.Error)(nil); errors.As(err, &reply) && reply.Code/100 == 4 {
			err = errors.Join(fmt.Errorf("%w: %w", errLater, err), client.Reset())
		}
		return err
	}
}

// read requests a path of the API as a client of the domain's team.
func (l *dayLoad) read(ctx context.Context, path string, i int) error {
	domain := l.domains[i*7919%len(l.domains)]
	_, _, err := timeAnswer(ctx, "http://"+l.address+"/api"+strings.ReplaceAll(path, "DOMAIN", domain.name), &http.Cookie{}, domain.token)
	return err
}

// teams returns the teams of the day.
func (l *dayLoad) teams() []*store.Team {
	var teams []*store.Team
	for _, domain := range l.domains {
		if len(teams) == 0 || teams[len(teams)-1] != domain.team {
			teams = append(teams, domain.team)
		}
	}
	return teams
}

// awaitCounted waits until every report is counted, and returns how long that took.
func (l *dayLoad) awaitCounted(ctx context.Context) time.Duration {
	perReport := int64(0)
	for r := range (sample{records: dayRecords}).all() {
		perReport += r.Count
	}
	began := time.Now()
	poll := time.NewTicker(100 * time.Millisecond)
	defer poll.Stop()
	for ; ; <-poll.C {
		messages := int64(0)
		for _, team := range l.teams() {
			sum := get(team.Summary(ctx, dmarcd.Days{}))
			messages += sum.Total()
		}
		if messages == perReport*int64(l.sent) {
			return time.Since(began)
		}
		if time.Since(began) > 10*time.Minute {
			must(fmt.Errorf("%d of %d reports are counted", messages/perReport, l.sent))
		}
	}
}

// oldestCheck returns the age of the oldest last check of any domain.
func (l *dayLoad) oldestCheck(ctx context.Context) (oldest time.Duration) {
	for _, team := range l.teams() {
		for _, domain := range get(team.Domains(ctx, "", len(l.domains))) {
			oldest = max(oldest, time.Since(domain.CheckedAt))
		}
	}
	return oldest
}

// awaitChanges waits until all changed records became events, at most two intervals, and
// returns how many did: the second check after a change confirms it.
func (l *dayLoad) awaitChanges(ctx context.Context, interval time.Duration) (seen int) {
	poll := time.NewTicker(time.Second)
	defer poll.Stop()
	for began := time.Now(); ; <-poll.C {
		if seen = l.changesSeen(ctx); seen >= l.changed || time.Since(began) > 2*interval {
			return seen
		}
	}
}

// changesSeen returns the number of events about a changed record.
func (l *dayLoad) changesSeen(ctx context.Context) (seen int) {
	for _, team := range l.teams() {
		events := get(team.EventsSince(ctx, store.EventFilter{Kinds: []dmarcd.EventKind{dmarcd.PolicyStrengthened}}, 0, len(l.domains)))
		seen += len(events)
	}
	return seen
}
