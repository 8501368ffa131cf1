package app

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/musttest"
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
		a := &App{sources: insight.New(&senders.Atlas{}, senders.NewCatalogue(nil), nameless{}, nil)}
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
		events, err := team.Events(ctx, store.EventFilter{}, 0, 1)
		if err != nil || events[0].Kind != dmarcd.MailboxFailing || strings.Contains(events[0].Summary(), "10.0.0.7") || !strings.Contains(events[0].Summary(), "reports at imap.example.com") {
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
	a := &App{store: s, service: service.New(s, service.Options{}), metrics: newMetrics(s, "test", newStages()), log: slog.New(slog.NewTextHandler(&log, nil))}
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
