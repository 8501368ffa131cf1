package service_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/notify/mail"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// TestTestsAtOnce has endpoints and the mail server of self-tests hang. Only a few tests wait for
// them.
func TestTestsAtOnce(t *testing.T) {
	t.Parallel()
	s := storetest.SQLite(t).Open(t, store.Options{})
	release, begun := make(chan struct{}), make(chan struct{}, 100)
	w := service.New(s, service.Options{
		Deliveries: deliveries(func(_ context.Context, c dmarcd.ClaimedDelivery) (dmarcd.DeliveryResult, error) {
			begun <- struct{}{}
			<-release
			return dmarcd.DeliveryResult{Status: 204}, nil
		}),
		SelfTests: selfTests(func(context.Context, string, string, string) ([]dmarcd.SelfTestStage, bool) {
			begun <- struct{}{}
			<-release
			return nil, false
		}),
		ReportDomain: "reports.example",
	})
	acme := storetest.Team(t, s, "acme")
	musttest.Get(s.Team(acme.ID).AddDomain(t.Context(), ours, time.Now().Add(time.Hour)))(t)
	hook := musttest.Get(s.Team(acme.ID).AddWebhook(t.Context(), dmarcd.Webhook{URL: endpoint, Format: dmarcd.FormatStandard},
		func(dmarcd.Webhook) ([]byte, error) { return []byte("x"), nil }))(t)
	team := w.Team(acme.ID, service.CommandLine())
	for name, test := range map[string]struct {
		most int
		run  func() error
	}{
		"webhook":   {4, func() error { _, err := team.TestWebhook(t.Context(), hook.ID); return err }},
		"self-test": {2, func() error { _, err := team.SelfTest(t.Context(), ours); return err }},
	} {
		var group sync.WaitGroup
		for range test.most {
			group.Go(func() {
				if err := test.run(); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			})
			<-begun
		}
		var throttled *service.ThrottledError
		if err := test.run(); !errors.As(err, &throttled) || throttled.RetryAfter <= 0 {
			t.Errorf("%s: one more than %d: got %v, want to be told when to try again", name, test.most, err)
		}
		for range test.most {
			release <- struct{}{}
		}
		group.Wait()
	}
}

// TestThrottledConfirmation adds addresses until no more mail is sent. What is refused leaves
// nothing behind.
func TestThrottledConfirmation(t *testing.T) {
	t.Parallel()
	s := storetest.SQLite(t).Open(t, store.Options{})
	began := time.Now()
	w := service.New(s, service.Options{
		Now: func() time.Time { return began }, Mail: mailer{}, BaseURL: "https://dmarc.example/api",
		Secrets: plainSecrets{},
	})
	acme := storetest.Team(t, s, "acme")
	musttest.Do(t, s.SetAPI(t.Context(), acme.Name, true))
	token := musttest.Get(s.Team(acme.ID).CreateToken(t.Context(), store.NewToken{Scope: dmarcd.ScopeWrite}))(t)
	team := w.Team(acme.ID, service.Token(token.ID, dmarcd.ScopeWrite, "192.0.2.1"))
	added := 0
	var throttled *service.ThrottledError
	for ; throttled == nil && added < 100; added++ {
		_, _, err := team.AddWebhook(t.Context(), dmarcd.Webhook{URL: fmt.Sprintf("mailto:a%d@example.com", added), Format: dmarcd.FormatEmail})
		if err != nil && !errors.As(err, &throttled) {
			t.Fatal(err)
		}
	}
	added--
	webhooks, err := team.Webhooks(t.Context())
	if err != nil || throttled == nil || len(webhooks) != added {
		t.Fatalf("got %d webhooks, %v, after %d were added and one refused with %v", len(webhooks), err, added, throttled)
	}
	enabled := true
	if _, err := team.UpdateWebhook(t.Context(), webhooks[0].ID, service.WebhookChange{Enabled: &enabled}); !errors.As(err, &throttled) {
		t.Errorf("send the link again: got %v, want to be told when to try again", err)
	}
	entries, err := s.Team(acme.ID).Audit(t.Context(), store.AuditFilter{Actor: "token " + token.ID.String()}, store.Cursor{}, 100)
	if err != nil || len(entries) != added {
		t.Errorf("got %d audit entries, %v, want %d", len(entries), err, added)
	}
}

// TestTestsAreThrottled sends test alerts, and tests and retries a webhook, again and again. The
// command line may go on.
func TestTestsAreThrottled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t))
	options := w.options
	began := time.Now()
	options.Now, options.Mail = func() time.Time { return began }, &letters{}
	s := service.New(w.store, options)
	local, team := s.Team(w.team.ID, service.CommandLine()), s.Team(w.team.ID, w.asOwner())
	added, _, err := local.AddWebhook(ctx, dmarcd.Webhook{Format: dmarcd.FormatEmail, URL: "mailto:eve@outside.example"})
	musttest.Do(t, err)
	musttest.Get(local.TestAlert(ctx))(t)
	deliveries := musttest.Get(local.Deliveries(ctx, added.ID, 0, 1))(t)
	for name, try := range map[string]func(*service.Team) error{
		"alert": func(t *service.Team) error { return errorOf(t.TestAlert(ctx)) },
		"retry": func(t *service.Team) error { return errorOf(t.RetryDelivery(ctx, added.ID, deliveries[0].ID)) },
		"test":  func(t *service.Team) error { return errorOf(t.TestWebhook(ctx, added.ID)) },
	} {
		throttled, tries := (*service.ThrottledError)(nil), 0
		for ; throttled == nil && tries < 50; tries++ {
			if err := try(team); err != nil && !errors.As(err, &throttled) {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if throttled == nil {
			t.Errorf("%s: got %d answers, want to be told when to try again", name, tries)
		}
		if err := try(local); errors.As(err, &throttled) {
			t.Errorf("%s by the command line: got %v", name, err)
		}
	}
}

// TestLettersToAnAddress asks a recipient who does not react again and again, for two days.
func TestLettersToAnAddress(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t))
	options, now := w.options, time.Now()
	sent := &letters{}
	options.Now, options.Mail = func() time.Time { return now }, sent
	team := service.New(w.store, options).Team(w.team.ID, w.asOwner())
	added, _, err := team.AddWebhook(ctx, dmarcd.Webhook{Format: dmarcd.FormatEmail, URL: "mailto:eve@outside.example"})
	musttest.Do(t, err)
	yes := true
	for range 2 * 24 * 4 {
		now = now.Add(15 * time.Minute)
		throttled := (*service.ThrottledError)(nil)
		if _, err := team.UpdateWebhook(ctx, added.ID, service.WebhookChange{Enabled: &yes}); err != nil && !errors.As(err, &throttled) {
			t.Fatal(err)
		}
	}
	if n := len(sent.sent); n < 3 || n > 9 {
		t.Errorf("got %d letters, want 3 and one for each 8 hours", n)
	}
}

// TestUnsubscribedMember has another member add the address of one, who unsubscribes. Only that
// member can enable it again without a confirmation.
func TestUnsubscribedMember(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t))
	s, sent := w.mailing()
	team := s.Team(w.team.ID, w.asOwner())
	wanted := dmarcd.Webhook{Format: dmarcd.FormatEmail, URL: "mailto:" + w.member.Email}
	added, _, err := team.AddWebhook(ctx, wanted)
	if err != nil || added.Enabled() || len(sent.sent) != 1 {
		t.Fatalf("got %+v, %v and %d letters, want to ask the member", added, err, len(sent.sent))
	}
	musttest.Do(t, s.Confirm(ctx, path.Base(sent.sent[0].link), ""))
	stored := musttest.Get(w.store.Team(w.team.ID).Webhook(ctx, added.ID))(t)
	leave := musttest.Get(mail.PageLink(w.options.BaseURL, "unsubscribe", added.ID, stored.Secrets[0]))(t)
	musttest.Do(t, s.Unsubscribe(ctx, path.Base(leave), ""))
	yes := true
	for range 2 {
		if changed := musttest.Get(team.UpdateWebhook(ctx, added.ID, service.WebhookChange{Enabled: &yes}))(t); changed.Enabled() {
			t.Error("another member enabled it without asking")
		}
	}
}

// TestMoreThanDigestsIsConfirmed selects other kinds for an address whose recipient confirmed the report
// for managers: nothing is sent until they confirm again.
func TestMoreThanDigestsIsConfirmed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t))
	s, sent := w.mailing()
	team := s.Team(w.team.ID, w.asOwner())
	managers, events := []dmarcd.EventKind{dmarcd.DigestManagers}, []dmarcd.EventKind{dmarcd.PolicyWeakened}
	both := []dmarcd.EventKind{dmarcd.DigestManagers, dmarcd.PolicyWeakened}
	yes := true
	for i, step := range []struct {
		name          string
		team          *service.Team
		before, after []dmarcd.EventKind
		on            *bool
		asked         bool
	}{
		{"the same", team, managers, managers, nil, false},
		{"another digest", team, managers, []dmarcd.EventKind{dmarcd.DigestDaily}, nil, true},
		{"more kinds", team, managers, both, nil, true},
		{"all kinds", team, managers, nil, nil, true},
		{"more kinds, and turned on", team, managers, both, &yes, true},
		{"fewer kinds", team, both, managers, nil, false},
		{"other events, after events were confirmed", team, events, []dmarcd.EventKind{dmarcd.SenderNew}, nil, false},
		{"more kinds by the command line", s.Team(w.team.ID, service.CommandLine()), managers, both, nil, false},
	} {
		added, _, err := team.AddWebhook(ctx, dmarcd.Webhook{Format: dmarcd.FormatEmail, URL: fmt.Sprintf("mailto:boss%d@example.net", i), Kinds: step.before})
		musttest.Do(t, err)
		musttest.Do(t, s.Confirm(ctx, path.Base(sent.sent[len(sent.sent)-1].link), ""))
		before := len(sent.sent)
		changed, err := step.team.UpdateWebhook(ctx, added.ID, service.WebhookChange{Kinds: &step.after, Enabled: step.on})
		if err != nil || service.AwaitsConfirmation(changed) != step.asked || changed.Enabled() == step.asked || (len(sent.sent) > before) != step.asked {
			t.Errorf("%s: got %+v, %v and %d letters, want it asked: %v", step.name, changed, err, len(sent.sent)-before, step.asked)
		}
	}
}

// notices are the notices to owners. Mail to some addresses fails.
type notices struct {
	service.Mailer

	failing []string
	sent    []string
}

func (n *notices) SendDisabled(_ context.Context, to, _ string, _ dmarcd.Webhook, _ string) error {
	if slices.Contains(n.failing, to) {
		return errors.New("550 no such mailbox")
	}
	n.sent = append(n.sent, to)
	return nil
}

// TestOwnersAreNotifiedOnce wants an owner whose mailbox does not exist to cause no second
// notice to the others.
func TestOwnersAreNotifiedOnce(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		failing, sent []string
		again         bool
		demote        string // a statement
	}{
		"both":    {sent: []string{"ann@example.com", "bob@example.com"}},
		"owners":  {sent: []string{"ann@example.com"}, demote: `UPDATE members SET role = 'viewer' WHERE user_id IN (SELECT id FROM users WHERE email = 'bob@example.com')`},
		"one":     {failing: []string{"ann@example.com"}, sent: []string{"bob@example.com"}},
		"neither": {failing: []string{"ann@example.com", "bob@example.com"}, again: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := storetest.SQLite(t)
			w := newWorld(t, db)
			musttest.Get(w.store.Team(w.team.ID).AddWebhook(t.Context(), dmarcd.Webhook{URL: endpoint + "/2", Format: dmarcd.FormatStandard}, func(dmarcd.Webhook) ([]byte, error) { return []byte("x"), nil }))(t)
			sql := db.SQL(t)
			for _, statement := range []string{
				`UPDATE members SET role = 'owner'`, row.demote, `UPDATE webhooks SET disabled_at = 1, disabled_reason = 'It is gone.', notify_at = 1`,
			} {
				musttest.Get(sql.ExecContext(t.Context(), statement))(t)
			}
			mail := &notices{failing: row.failing}
			s := service.New(w.store, service.Options{Mail: mail, BaseURL: "https://dmarc.example/api", Log: slog.New(slog.NewTextHandler(new(bytes.Buffer), nil))})
			if _, err := service.New(w.store, service.Options{}).NotifyOwners(t.Context()); err != nil || len(mail.sent) > 0 {
				t.Errorf("without a relay: got %v", err)
			}
			if _, err := s.NotifyOwners(t.Context()); (err != nil) != row.again {
				t.Errorf("got the error %v", err)
			}
			slices.Sort(mail.sent)
			want := slices.Sorted(slices.Values(slices.Repeat(row.sent, 2))) // of both webhooks
			if diff := cmp.Diff(want, mail.sent); diff != "" {
				t.Errorf("notified (-want +got):\n%s", diff)
			}
			var waiting int
			if err := sql.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM webhooks WHERE notify_at > 0`).Scan(&waiting); err != nil || (waiting > 0) != row.again {
				t.Errorf("got %d notices to repeat, %v", waiting, err)
			}
		})
	}
}
