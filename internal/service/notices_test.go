package service_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

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
