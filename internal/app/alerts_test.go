package app

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/alert/alerttest"
	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/phrase"
	"github.com/dmarcd/dmarcd/internal/senders"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// nameless has no names of addresses.
type nameless struct{}

func (nameless) Known(context.Context, dmarcd.TeamID, []netip.Addr) (map[netip.Addr]string, error) {
	return nil, nil
}

// kindsOf returns the kinds of a team's events, in order.
func kindsOf(t *testing.T, team *store.Team) (kinds []dmarcd.EventKind) {
	t.Helper()
	events := musttest.Get(team.EventsSince(t.Context(), store.EventFilter{}, 0, 100))(t)
	for _, e := range events {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

// TestDetectionThroughTheStore receives reports day by day, some of them late, and has every
// step of the way from a report to an event done as the daemon does it; alerts are detected twice.
func TestDetectionThroughTheStore(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		ctx, name := t.Context(), "example.com"
		now := time.Date(2026, 9, 1, 6, 0, 0, 0, time.UTC)
		a := &App{insight: insight.New(&senders.Atlas{}, senders.NewCatalogue(nil), nameless{}, nil)}
		a.store = db.Open(t, store.Options{Now: func() time.Time { return now }})
		a.service = service.New(a.store, service.Options{})
		created := storetest.Team(t, a.store, "acme")
		team := a.store.Team(created.ID)
		musttest.Get(team.AddDomain(ctx, name, now))(t)
		receive := func(id string, day dmarcd.Day, pass, fail int64) {
			t.Helper()
			failed := storetest.Passed(name, fail)
			failed.DKIM, failed.DKIMResults[0].Result = "fail", "fail"
			delivery := storetest.Delivery(storetest.Aggregate(id, name, day, storetest.Passed(name, pass), failed))
			musttest.Get(team.Receive(ctx, []*dmarcd.Delivery{delivery}))(t)
		}
		today := func() {
			t.Helper()
			for more, err := true, error(nil); more; {
				if more, err = a.storeSenders(ctx); err != nil {
					t.Fatal(err)
				}
			}
			for range 2 {
				musttest.Get(a.service.DetectAlerts(ctx))(t)
			}
			now = now.Add(24 * time.Hour)
		}
		for range 40 {
			yesterday := dmarcd.DayOf(now) - 1
			receive(fmt.Sprint(yesterday), yesterday, 1000, 10)
			today()
		}
		if got := kindsOf(t, team); len(got) != 0 {
			t.Fatalf("got the events %v of 40 usual days", got)
		}
		for range 3 { // the keys are gone from the DNS
			yesterday := dmarcd.DayOf(now) - 1
			receive(fmt.Sprint(yesterday), yesterday, 20, 990)
			receive(fmt.Sprint(yesterday, " late"), yesterday-1, 5, 100)
			today()
		}
		if got := kindsOf(t, team); !slices.Equal(got, []dmarcd.EventKind{dmarcd.SelectorFailing}) {
			t.Errorf("got the events %v, want one about the key", got)
		}
		incidents, err := team.Incidents(ctx, 0)
		if err != nil || len(incidents) != 1 || incidents[0].Last-incidents[0].First != 2 {
			t.Errorf("got the incidents %+v, %v, want one of three days", incidents, err)
		}
		for range 6 {
			today()
		}
		if got := kindsOf(t, team); !slices.Contains(got, dmarcd.ReportsStopped) {
			t.Errorf("got %v after 6 days without reports, want %s", got, dmarcd.ReportsStopped)
		}
	})
}

// TestFailingMailboxes wants one event for a mailbox that cannot be read, without what its
// server said.
func TestFailingMailboxes(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		ctx := t.Context()
		a := &App{store: db.Open(t, store.Options{})}
		a.service = service.New(a.store, service.Options{})
		created := storetest.Team(t, a.store, "acme")
		team := a.store.Team(created.ID)
		mailbox := dmarcd.Mailbox{Host: "imap.example.com", Port: 993, Security: dmarcd.SecurityTLS, Username: "reports", Method: dmarcd.LoginPassword, Folder: "INBOX", After: dmarcd.AfterFlag}
		musttest.Get(team.AddMailbox(ctx, mailbox, func(dmarcd.Mailbox) ([]byte, error) { return []byte("x"), nil }))(t)
		detect := func(want int) {
			t.Helper()
			for range 2 {
				musttest.Get(a.service.DetectMailboxes(ctx))(t)
			}
			if got := kindsOf(t, team); len(got) != want {
				t.Errorf("got %v, want %d events", got, want)
			}
		}
		detect(0)
		musttest.Get(db.SQL(t).ExecContext(ctx, `UPDATE mailboxes SET error = 'the host 10.0.0.7 refuses', seen_at = 1, created_at = 1`))(t)
		detect(1)
		events, err := team.Events(ctx, store.EventFilter{}, store.Cursor{}, 1)
		if err != nil || events[0].Kind != dmarcd.MailboxFailing || strings.Contains(phrase.Event(events[0]), "10.0.0.7") || !strings.Contains(phrase.Event(events[0]), "reports at imap.example.com") {
			t.Errorf("got %+v, %v", events, err)
		}
	})
}

// TestExpiringTokens wants one event for a token that is in use and expires in two weeks.
func TestExpiringTokens(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		ctx, now := t.Context(), time.Now()
		a := &App{store: db.Open(t, store.Options{Now: func() time.Time { return now }})}
		a.service = service.New(a.store, service.Options{Now: func() time.Time { return now }})
		created := storetest.Team(t, a.store, "acme")
		team := a.store.Team(created.ID)
		const day = 24 * time.Hour
		for i, token := range []store.NewToken{
			{Name: "backup", ExpiresAt: now.Add(30 * day)},
			{Name: "an hour", ExpiresAt: now.Add(time.Hour)},
			{Name: "forever"},
		} {
			token.Scope, token.Hash = dmarcd.ScopeRead, [32]byte{byte(i)}
			made := musttest.Get(team.CreateToken(ctx, token))(t)
			musttest.Do(t, a.store.TouchToken(ctx, made.ID, now, "192.0.2.1"))
		}
		musttest.Get(team.CreateToken(ctx, store.NewToken{Name: "unused", Scope: dmarcd.ScopeRead, Hash: [32]byte{9}, ExpiresAt: now.Add(30 * day)}))(t)
		for _, step := range []struct {
			passes time.Duration
			want   int
		}{{0, 0}, {15 * day, 0}, {2 * day, 1}, {day, 1}, {11 * day, 1}, {2 * day, 1}} {
			now = now.Add(step.passes)
			for range 2 {
				musttest.Get(a.service.DetectTokens(ctx))(t)
			}
			if got := kindsOf(t, team); len(got) != step.want {
				t.Errorf("%s later: got %v, want %d events", step.passes, got, step.want)
			}
		}
		events, err := team.Events(ctx, store.EventFilter{}, store.Cursor{}, 1)
		if err != nil || events[0].Kind != dmarcd.TokenExpiring || !strings.HasPrefix(phrase.Event(events[0]), "Token backup expires on ") {
			t.Errorf("got %+v, %v", events, err)
		}
	})
}

// TestLowDisk wants one line in the log for each change, a gauge, and one event.
func TestLowDisk(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := storetest.SQLite(t).Open(t, store.Options{})
	var log bytes.Buffer
	a := &App{store: s, service: service.New(s, service.Options{}), metrics: newMetrics("test", newStages()), log: slog.New(slog.NewTextHandler(&log, nil))}
	a.config.Data = t.TempDir()
	created := storetest.Team(t, s, dmarcd.DefaultTeam)
	for _, row := range []struct {
		minimum int
		gauge   string
		lines   int
	}{{1, "0", 0}, {1 << 60, "1", 1}, {1 << 60, "1", 1}, {1, "0", 2}, {0, "0", 2}} {
		a.config.Limit.FreeDisk = row.minimum
		musttest.Get(a.detectLowDisk(ctx))(t)
		scraped := httptest.NewRecorder()
		a.metrics.handler().ServeHTTP(scraped, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		if !strings.Contains(scraped.Body.String(), "\ndmarcd_disk_low "+row.gauge+"\n") {
			t.Errorf("minimum %d: the gauge is not %s", row.minimum, row.gauge)
		}
		if got := strings.Count(log.String(), "nearly full"); got != row.lines {
			t.Errorf("minimum %d: got %d lines in the log, want %d", row.minimum, got, row.lines)
		}
	}
	if got := kindsOf(t, s.Team(created.ID)); !slices.Equal(got, []dmarcd.EventKind{dmarcd.DiskLow}) {
		t.Errorf("got the events %v, want one", got)
	}
}

// alertDomains is how many domains TestYearThroughTheStore simulates.
var alertDomains = flag.Int("alert-domains", 0, "how many domains are simulated through the store; 0 means 6, or 20 with DMARCD_SOAK")

// Senders of the simulation have addresses in serviceNet if they are known services, and in
// otherNet if only their networks are known. The last byte is their number.
var serviceNet, otherNet = netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("198.51.100.0/24")

const maxServices = 10 // the last one is the new service

// simulatedInsight recognizes the senders of the simulation.
func simulatedInsight() *insight.Service {
	var services []senders.Sender
	for i := range maxServices {
		name := fmt.Sprintf("service%d", i)
		if i == maxServices-1 {
			name = "newservice"
		}
		services = append(services, senders.Sender{Name: name, Kind: senders.Service, Category: senders.Marketing, Addresses: []netip.Prefix{netip.PrefixFrom(addressOf(name), 32)}})
	}
	atlas := (&senders.Atlas{}).Preferring(func(a netip.Addr) (senders.Origin, bool) {
		number := 64500 + uint32(a.As4()[3])
		return senders.Origin{Network: senders.Network{Number: number, Name: fmt.Sprint("Network ", number)}}, otherNet.Contains(a)
	})
	return insight.New(atlas, senders.NewCatalogue(services), nameless{}, nil)
}

// addressOf returns the address of a sender of the simulation.
func addressOf(sender string) netip.Addr {
	bytes := serviceNet.Addr().As4()
	number, isService := strings.CutPrefix(sender, "service")
	n, _ := strconv.Atoi(number)
	switch {
	case sender == "newservice":
		n = maxServices - 1
	case !isService:
		n, _ = strconv.Atoi(strings.TrimPrefix(sender, "AS"))
		n -= 64500
		bytes = otherNet.Addr().As4()
	}
	bytes[3] = byte(n)
	return netip.AddrFrom4(bytes)
}

// delivered returns the reports of an arrival, in messages whose sender is verified or not.
func delivered(s *alerttest.Simulation, a alerttest.Arrival) []*dmarcd.Delivery {
	receiver := a.Mail.Receivers[0].Key
	var records []aggregate.Record
	for _, sender := range a.Mail.Senders {
		selector := s.SelectorOf(sender.Key)
		key := selector + "._domainkey." + s.Domain
		isSigned := slices.ContainsFunc(a.Mail.Selectors, func(p dmarcd.MailPart) bool { return p.Key == key })
		for _, part := range []struct {
			count  int64
			result aggregate.Result
		}{{sender.Passes, aggregate.ResultPass}, {sender.Fails(), aggregate.ResultFail}} {
			if part.count == 0 {
				continue
			}
			r := storetest.Passed(s.Domain, part.count)
			r.Addr = addressOf(sender.Key)
			r.Source, r.DKIM, r.DKIMResults[0].Result, r.DKIMResults[0].Selector = r.Addr.String(), part.result, part.result, selector
			if !isSigned {
				r.DKIMResults = nil
			}
			records = append(records, r)
		}
	}
	id := fmt.Sprint(receiver, a.Mail.Day)
	reports := []dmarcd.NewReport{storetest.Aggregate(id, s.Domain, a.Mail.Day, records...)}
	if a.Mail.Sessions > 0 {
		tls := storetest.Aggregate(id+" TLS", s.Domain, a.Mail.Day)
		tls.Kind, tls.EachRecord, tls.Messages, tls.Compliant = dmarcd.KindTLS, nil, a.Mail.Sessions, a.Mail.Secure
		tls.Shares = []dmarcd.Share{{From: s.Domain, Records: 1}}
		reports = append(reports, tls)
	}
	var all []*dmarcd.Delivery
	for _, report := range reports {
		report.Organization = receiver
		d := storetest.Delivery(report)
		if a.Mail.Unverified == 0 {
			d.SetAuthentication(dmarcd.Authentication{Genuine: dmarcd.GenuineYes, Domain: receiver})
		}
		all = append(all, d)
	}
	return all
}

// TestYearThroughTheStore has the reports of simulated domains received, day by day, and does
// every step from a report to an event as the daemon does it, by two replicas. Every planted
// incident has to have exactly one event. DMARCD_SOAK simulates a year.
func TestYearThroughTheStore(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		return
	}
	plan, count := alerttest.Plan{Begin: 20_000, Days: 90, WarmUp: 28, Apart: 12, Receivers: 2}, 6
	if os.Getenv("DMARCD_SOAK") != "" {
		plan, count = alerttest.Year(), 20
	}
	if *alertDomains > 0 {
		count = *alertDomains
	}
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		ctx, now := t.Context(), time.Unix(int64(plan.Begin)*24*60*60, 0).Add(6*time.Hour)
		clock := func() time.Time { return now }
		a := &App{insight: simulatedInsight(), store: db.Open(t, store.Options{Now: clock})}
		a.service = service.New(a.store, service.Options{})
		created := storetest.Team(t, a.store, "acme")
		team := a.store.Team(created.ID)
		simulated := make(map[string]*alerttest.Simulation)
		for i := range count {
			name := fmt.Sprintf("d%d.example", i)
			simulated[name] = alerttest.New(uint64(i), name, plan)
			musttest.Get(team.AddDomain(ctx, name, now))(t)
		}
		steps := []func(context.Context) (bool, error){a.storeSenders, a.service.DetectAlerts, a.service.DetectAlerts}
		waiting, others, last := make(map[dmarcd.Day][]*dmarcd.Delivery), 0, int64(0)
		for today := plan.Begin; today < plan.End(); today++ {
			for _, s := range simulated {
				for _, arrival := range s.Day(today - 1) {
					waiting[arrival.On] = append(waiting[arrival.On], delivered(s, arrival)...)
				}
			}
			for part := range slices.Chunk(waiting[today], 200) {
				musttest.Get(team.Receive(ctx, part))(t)
			}
			delete(waiting, today)
			for _, step := range steps {
				storetest.All(t, step)
			}
			for {
				events := musttest.Get(team.EventsSince(ctx, store.EventFilter{}, last, 100))(t)
				if len(events) == 0 {
					break
				}
				for _, e := range events {
					last = e.Seq
					if s := simulated[e.Domain]; s == nil || !s.Detected(today, e.Kind, e.Subject, e.Day) {
						others++
					}
				}
			}
			now = now.Add(24 * time.Hour)
		}
		planted := make(map[dmarcd.EventKind]int)
		for _, s := range simulated {
			for _, p := range s.Incidents {
				planted[p.Kind]++
				if p.Found != 1 || p.After > p.Within {
					t.Errorf("%s with %.0f messages a day: got %d events after %d days, want one within %d, about %s %s of day %d",
						s.Domain, s.Volume, p.Found, p.After, p.Within, p.Kind, p.Subject, p.First-plan.Begin)
				}
			}
		}
		months := float64(count) * float64(plan.Days) / 30
		t.Logf("%d domains, %d days: %v, and %d other alerts, %.3f for each domain and month", count, plan.Days, planted, others, float64(others)/months)
		if count >= 6 && len(planted) != 9 {
			t.Errorf("got incidents of the kinds %v, want nine", planted)
		}
		if float64(others) >= months {
			t.Errorf("got %d other alerts of %d domains in %d days", others, count, plan.Days)
		}
	})
}
