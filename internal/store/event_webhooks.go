package store

import (
	"context"
	"fmt"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store/db"
)

const webhookColumns = `id, url, format, kinds, domains, secret, old_secret, old_until, created_at, disabled_at, disabled_reason, failing_since`

func scanWebhook(now time.Time) func(db.Scanner) (dmarcd.Webhook, error) {
	return func(scan db.Scanner) (dmarcd.Webhook, error) {
		var w dmarcd.Webhook
		var kinds, domains string
		var secret, oldSecret []byte
		var oldUntil, createdAt, disabledAt, failingSince int64
		err := scan(&w.ID, &w.URL, &w.Format, &kinds, &domains, &secret, &oldSecret, &oldUntil, &createdAt, &disabledAt, &w.DisabledReason, &failingSince)
		for _, kind := range lines(kinds) {
			w.Kinds = append(w.Kinds, dmarcd.EventKind(kind))
		}
		w.Domains, w.Secrets = lines(domains), [][]byte{secret}
		if oldUntil > unix(now) {
			w.Secrets = append(w.Secrets, oldSecret)
		}
		w.CreatedAt, w.DisabledAt, w.FailingSince = fromUnix(createdAt), fromUnix(disabledAt), fromUnix(failingSince)
		return w, err
	}
}

// changeWebhooks runs f, a change of a webhook, in a transaction during which no event of the
// team is written: each event is delivered to the webhooks either before or after the change.
func (t *Team) changeWebhooks(ctx context.Context, audit []dmarcd.AuditEntry, id dmarcd.WebhookID, f func(tx) error) error {
	return t.audited(ctx, audit, id.String(), func(tx tx) error {
		if err := t.holdEvents(ctx, tx); err != nil {
			return err
		}
		return f(tx)
	})
}

// holdEvents blocks other transactions that write events of the team until this one ends.
func (t *Team) holdEvents(ctx context.Context, tx tx) error {
	_, err := tx.Exec(ctx, `INSERT INTO event_counters (team_id, seq) VALUES ($1, 0)
		ON CONFLICT (team_id) DO UPDATE SET seq = event_counters.seq`, t.id)
	return err
}

// AddWebhook stores a webhook, enabled or not, and returns it with its id. seal receives
// it with the id, and returns the secret encrypted for that id. Too many webhooks are an
// *dmarcd.InvalidError.
func (t *Team) AddWebhook(ctx context.Context, w dmarcd.Webhook, seal func(dmarcd.Webhook) ([]byte, error), audit ...dmarcd.AuditEntry) (dmarcd.Webhook, error) {
	if err := w.Validate(); err != nil {
		return dmarcd.Webhook{}, err
	}
	added := dmarcd.Webhook{ID: dmarcd.WebhookID(db.NewID()), URL: w.URL, Format: w.Format, Kinds: w.Kinds, Domains: w.Domains, CreatedAt: t.store.now(), DisabledAt: w.DisabledAt, DisabledReason: w.DisabledReason}
	sealed, err := seal(added)
	if err != nil {
		return dmarcd.Webhook{}, err
	}
	added.Secrets = [][]byte{sealed}
	err = t.changeWebhooks(ctx, audit, added.ID, func(tx tx) error {
		if err := t.checkLimit(ctx, tx, added); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `INSERT INTO webhooks (team_id, id, url, format, kinds, domains, secret, old_secret, created_at, disabled_at, disabled_reason)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
			t.id, added.ID, added.URL, added.Format, joinLines(added.Kinds), joinLines(added.Domains), sealed, []byte{}, unix(added.CreatedAt), unix(added.DisabledAt), added.DisabledReason)
		return err
	})
	if err != nil {
		return dmarcd.Webhook{}, fmt.Errorf("add webhook: %w", err)
	}
	return added, nil
}

// checkLimit returns an *dmarcd.InvalidError if the team has too many webhooks to add one. The
// first digest for each member does not count.
func (t *Team) checkLimit(ctx context.Context, tx tx, added dmarcd.Webhook) error {
	addresses, err := db.Collect(ctx, tx, `SELECT users.email FROM members JOIN users ON users.id = members.user_id WHERE members.team_id = $1`,
		[]any{t.id}, db.Value[string])
	if err != nil {
		return err
	}
	webhooks, err := t.webhooks(ctx, tx)
	if err != nil {
		return err
	}
	free := make(map[string]bool)
	for _, address := range addresses {
		free[address] = true
	}
	have := 0
	for _, w := range append(webhooks, added) {
		if w.IsDigest() && free[w.Address()] {
			free[w.Address()] = false
			continue
		}
		have++
		if w.ID == added.ID && have > dmarcd.MaxWebhooks {
			return &dmarcd.InvalidError{Field: "url", Message: fmt.Sprintf("The team has %d channels, which is the limit. Remove one first.", have-1)}
		}
	}
	return nil
}

// Webhooks returns the webhooks of the team, oldest first.
func (t *Team) Webhooks(ctx context.Context) ([]dmarcd.Webhook, error) {
	return t.webhooks(ctx, t.store)
}

func (t *Team) webhooks(ctx context.Context, from db.Querier) ([]dmarcd.Webhook, error) {
	return db.Collect(ctx, from, `SELECT `+webhookColumns+` FROM webhooks WHERE team_id = $1 ORDER BY created_at, id`,
		[]any{t.id}, scanWebhook(t.store.now()))
}

// Webhook returns a webhook of the team, or ErrNotFound.
func (t *Team) Webhook(ctx context.Context, id dmarcd.WebhookID) (dmarcd.Webhook, error) {
	return t.webhook(ctx, t.store, id)
}

func (t *Team) webhook(ctx context.Context, from db.Querier, id dmarcd.WebhookID) (dmarcd.Webhook, error) {
	return scanWebhook(t.store.now())(db.Row(ctx, from, `SELECT `+webhookColumns+` FROM webhooks WHERE team_id = $1 AND id = $2`, t.id, id))
}

// UpdateWebhook changes the target and the subscriptions of a webhook, and enables or
// disables it. Enabling it resets its failures. If the secret is the URL, it changes too;
// RotateWebhook changes other secrets.
func (t *Team) UpdateWebhook(ctx context.Context, id dmarcd.WebhookID, change func(*dmarcd.Webhook) error, audit ...dmarcd.AuditEntry) (dmarcd.Webhook, error) {
	var changed dmarcd.Webhook
	err := t.changeWebhooks(ctx, audit, id, func(tx tx) error {
		before, err := t.webhook(ctx, tx, id)
		if err != nil {
			return err
		}
		changed = before
		if err := change(&changed); err != nil {
			return err
		}
		if err := changed.Validate(); err != nil {
			return err
		}
		if changed.Enabled() && !before.Enabled() {
			changed.FailingSince, changed.DisabledReason = time.Time{}, ""
		}
		_, err = tx.Exec(ctx, `UPDATE webhooks SET url = $3, kinds = $4, domains = $5, disabled_at = $6, disabled_reason = $7, failing_since = $8
			WHERE team_id = $1 AND id = $2`,
			t.id, id, changed.URL, joinLines(changed.Kinds), joinLines(changed.Domains), unix(changed.DisabledAt), changed.DisabledReason, unix(changed.FailingSince))
		if err == nil && changed.Format.HidesURL() {
			_, err = tx.Exec(ctx, `UPDATE webhooks SET secret = $3 WHERE team_id = $1 AND id = $2`, t.id, id, changed.Secrets[0])
		}
		return err
	})
	return changed, err
}

// RotateWebhook replaces the encrypted secret. The old one also signs until oldUntil.
func (t *Team) RotateWebhook(ctx context.Context, id dmarcd.WebhookID, sealed []byte, oldUntil time.Time, audit ...dmarcd.AuditEntry) error {
	return t.change(ctx, audit, `UPDATE webhooks SET secret = $3, old_secret = secret, old_until = $4 WHERE team_id = $1 AND id = $2`,
		t.id, id, sealed, unix(oldUntil))
}

// RemoveWebhook removes a webhook with its deliveries, most of them in short transactions before
// it.
func (t *Team) RemoveWebhook(ctx context.Context, id dmarcd.WebhookID, audit ...dmarcd.AuditEntry) error {
	for more := true; more; {
		err := t.retryTx(ctx, func(tx tx) error {
			removed, err := tx.Exec(ctx, `DELETE FROM deliveries WHERE team_id = $1 AND id IN
				(SELECT id FROM deliveries WHERE team_id = $1 AND webhook_id = $2 LIMIT $3)`, t.id, id, logRows)
			more = removed == logRows
			return err
		})
		if err != nil {
			return err
		}
	}
	return t.changeWebhooks(ctx, audit, id, func(tx tx) error {
		if _, err := tx.Exec(ctx, `DELETE FROM deliveries WHERE team_id = $1 AND webhook_id = $2`, t.id, id); err != nil {
			return err
		}
		return tx.ExecOr(ctx, dmarcd.ErrNotFound, `DELETE FROM webhooks WHERE team_id = $1 AND id = $2`, t.id, id)
	})
}

// TeamOfWebhook returns the team of a webhook, or ErrNotFound: operators name a webhook
// by its id only.
func (s *Store) TeamOfWebhook(ctx context.Context, id dmarcd.WebhookID) (dmarcd.TeamID, error) {
	return db.Value[dmarcd.TeamID](db.Row(ctx, s.own(), `SELECT team_id FROM webhooks WHERE id = $1`, id))
}
