package store_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// TestLogsAreLimited has two teams and the installation add to their logs. The oldest entries of a
// team beyond the limit are removed; those of the other team stay.
func TestLogsAreLimited(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		ctx := in.Context()
		other := newTeam(in.T, in.store, "other")
		entry := dmarcd.AuditEntry{Actor: "a test", Action: "webhook.test"}
		const all, few = 30, 8
		for team, n := range map[*store.Team]int{in.team: all, other: few} {
			webhook := addWebhook(in.T, team, dmarcd.Webhook{})
			for range n {
				in.clock.advance(time.Second)
				musttest.Get(team.TestWebhook(ctx, webhook.ID, time.Minute, entry))(in)
			}
		}
		for range all {
			in.clock.advance(time.Second)
			in.must(in.store.Note(ctx, entry))
		}
		type logs struct{ Audit, Events, Deliveries, Newest int }
		read := func(team *store.Team) logs {
			in.Helper()
			entries := musttest.Get(team.Audit(ctx, store.AuditFilter{}, store.Cursor{}, 100))(in)
			events := musttest.Get(team.Events(ctx, store.EventFilter{}, store.Cursor{}, 100))(in)
			webhooks := musttest.Get(team.Webhooks(ctx))(in)
			deliveries := musttest.Get(team.Deliveries(ctx, webhooks[0].ID, 0, 100))(in)
			newest := 0
			if len(events) > 0 {
				newest = int(events[0].Seq)
			}
			return logs{len(entries), len(events), len(deliveries), newest}
		}
		ofSystem := func() (n int) {
			in.Helper()
			entries := musttest.Get(in.store.Audit(ctx, store.AuditFilter{}, store.Cursor{}, 1000))(in)
			for _, e := range entries {
				if e.Team == 0 {
					n++
				}
			}
			return n
		}
		for _, step := range []struct {
			name        string
			retained    store.Retention
			team, other logs
			system      int
		}{
			{"no limit", store.Retention{}, logs{all, all, all, all}, logs{few, few, few, few}, all},
			{"ten entries", store.Retention{Entries: 10}, logs{10, 10, 10, all}, logs{few, few, few, few}, 10},
			{"a day", store.Retention{Entries: 10, Audit: ofDays(1)}, logs{0, 10, 10, all}, logs{0, few, few, few}, 0},
		} {
			if step.retained.Audit > 0 {
				in.clock.advance(step.retained.Audit + time.Second)
			}
			in.expire(step.retained)
			if diff := cmp.Diff([]logs{step.team, step.other}, []logs{read(in.team), read(other)}); diff != "" {
				in.Errorf("%s (-want +got):\n%s", step.name, diff)
			}
			if got := ofSystem(); got != step.system {
				in.Errorf("%s: got %d entries of the installation, want %d", step.name, got, step.system)
			}
		}
	})
}

// TestLogsHaveShortTexts adds an audit entry and an event with long texts.
func TestLogsHaveShortTexts(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		ctx := in.Context()
		in.must(in.team.Note(ctx, dmarcd.AuditEntry{Action: "a.test", Target: strings.Repeat("ü", 40_000), Detail: strings.Repeat("x", 40_000)}))
		entries := musttest.Get(in.team.Audit(ctx, store.AuditFilter{}, store.Cursor{}, 1))(in)
		in.add(ours)
		happen(in.T, in.team, ours, in.clock.Now(), "none")
		happen(in.T, in.team, ours, in.clock.advance(time.Second), "none; rua="+strings.Repeat("ü", 40_000))
		events := musttest.Get(in.team.Events(ctx, store.EventFilter{Kinds: []dmarcd.EventKind{dmarcd.RecordChanged}}, store.Cursor{}, 1))(in)
		for name, text := range map[string]string{"target": entries[0].Target, "detail": entries[0].Detail, "after": events[0].After} {
			if len(text) > 4<<10 || len(text) < 4000 || !utf8.ValidString(text) || !strings.HasSuffix(text, "…") {
				in.Errorf("%s: got %d bytes, want at most 4 KiB that end with an ellipsis", name, len(text))
			}
		}
	})
}

// TestHistoryIsLimited changes the records of a domain more often than its history can hold, and
// makes them longer. The latest entry stays, however long it is.
func TestHistoryIsLimited(t *testing.T) {
	if testing.Short() {
		return
	}
	eachInbox(t, func(in *inbox) {
		in.add(ours)
		save := func(record string) {
			in.Helper()
			check := found("none")
			check.At, check.Asked = in.clock.advance(time.Second), true
			check.Facts = &facts.Facts{Domain: ours, DMARC: facts.DMARC{Status: "ok", Record: record}}
			musttest.Get(in.team.SaveCheck(in.Context(), ours, check, dmarcd.Plan{}))(in)
		}
		size := func() int {
			return in.number(`SELECT CAST(SUM(octet_length(document) + octet_length(changes) + octet_length(errors)) AS BIGINT) FROM checks`)
		}
		long := strings.Repeat("x", 60_000)
		for i := range 30 {
			save(strings.Repeat("y", i) + long)
		}
		if entries := in.rows("checks"); size() > 1<<20+200_000 || entries < 5 {
			in.Errorf("got %d entries with %d bytes, want about 1 MiB", entries, size())
		}
		save(strings.Repeat("z", 2<<20))
		save("short")
		if entries := in.rows("checks"); entries != 1 {
			in.Errorf("got %d entries, want the last one: that before is over the limit", entries)
		}
		checks := musttest.Get(in.team.Checks(in.Context(), ours, store.Times{}, store.Cursor{}, 10))(in)
		if got := checks[0].Check.Facts.DMARC.Record; got != "short" {
			in.Errorf("got the record %.20q, want the last one", got)
		}
	})
}

// TestRetiredAddressesAreLimited adds and deletes domains in a loop. The last domains get their
// addresses back; those of other teams and of present domains stay.
func TestRetiredAddressesAreLimited(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		const most = 10 // for a quota of one domain
		name := func(i int) string { return fmt.Sprintf("d%d.example", i) }
		in.setQuota(dmarcd.QuotaDomains, 1)
		var mailboxes []string
		for i := range most + 5 {
			in.clock.advance(time.Second)
			in.add(name(i))
			mailboxes = append(mailboxes, in.addresses([]string{name(i)})...)
			in.delete(name(i))
		}
		in.add(ours)
		other := newTeam(in.T, in.store, "other")
		musttest.Get(other.AddDomains(in.Context(), []string{ours}, time.Time{}))(t)
		in.expire(store.Retention{})
		if got, want := in.rows("addresses"), most+2; got != want {
			in.Errorf("got %d addresses, want %d: retired ones and those of two domains", got, want)
		}
		in.setQuota(dmarcd.QuotaDomains, 0)
		for i, want := range map[int]bool{0: false, 4: false, 5: true, most + 4: true} {
			in.add(name(i))
			if same := in.addresses([]string{name(i)})[0] == mailboxes[i]; same != want {
				in.Errorf("domain %d has its address again: %t, want %t", i, same, want)
			}
		}
	})
}

// TestRemovedRowsLeaveTheFile stores and removes data on SQLite, and checks that the file
// no longer contains it and shrinks.
func TestRemovedRowsLeaveTheFile(t *testing.T) {
	t.Parallel()
	ctx, path := t.Context(), filepath.Join(t.TempDir(), "dmarcd.db")
	now := time.Now()
	open := func() *store.Store {
		s := musttest.Get(store.Open(ctx, path, store.Options{Now: func() time.Time { return now }}))(t)
		musttest.Get(s.Migrate(ctx))(t)
		return s
	}
	s := open()
	team := storetest.Team(t, s, "a team")
	secret := []byte("a-very-personal-local-part@example.com")
	rejected := storetest.Delivery()
	rejected.Original = storetest.Original(bytes.Repeat(secret, 100_000))
	rejected.Rejections = []dmarcd.Rejection{{Kind: dmarcd.KindFailure, Reason: "A test."}}
	musttest.Get(s.Team(team.ID).Receive(ctx, []*dmarcd.Delivery{rejected}))(t)
	size := func() int64 {
		if err := s.Close(); err != nil { // the last connection checkpoints the WAL
			t.Fatal(err)
		}
		info := musttest.Get(os.Stat(path))(t)
		s = open()
		return info.Size()
	}
	before := size()
	now = now.Add(2 * time.Hour)
	musttest.Get(s.Expire(ctx, store.Retention{Failure: time.Hour}))(t)
	storetest.All(t, s.Purge)
	storetest.All(t, s.Reclaim)
	if after := size(); after > before/2 {
		t.Errorf("the file has %d bytes, and had %d before its rows were removed", after, before)
	}
	musttest.Do(t, s.Close())
	content := musttest.Get(os.ReadFile(path))(t)
	if bytes.Contains(content, secret) {
		t.Error("what was removed is still in the file")
	}
}
