package store

import (
	"context"
	"time"

	"github.com/dmarcd/dmarcd"
)

// NoticeTeams returns the teams whose owners are to be notified that a webhook was disabled.
func (s *Store) NoticeTeams(ctx context.Context) ([]dmarcd.TeamID, error) {
	return s.teamIDs(ctx, `SELECT DISTINCT team_id + 0 FROM webhooks WHERE notify_at > 0 AND notify_at <= $1`, unix(s.now()))
}

// ClaimNotices returns the webhooks of whose end the owners are to be notified, and leases
// them: they are claimed again after lease unless FinishNotice is called.
func (t *Team) ClaimNotices(ctx context.Context, lease time.Duration) ([]dmarcd.Webhook, error) {
	now := t.store.now()
	return inTx(ctx, t.tx, func(tx tx) ([]dmarcd.Webhook, error) {
		return collect(ctx, tx, `UPDATE webhooks SET notify_at = $3 WHERE team_id = $1 AND notify_at > 0 AND notify_at <= $2 RETURNING `+webhookColumns,
			[]any{t.id, unix(now), unix(now.Add(lease))}, scanWebhook(now))
	})
}

// FinishNotice stores that the owners were notified.
func (t *Team) FinishNotice(ctx context.Context, id dmarcd.WebhookID) error {
	return t.change(ctx, nil, `UPDATE webhooks SET notify_at = 0 WHERE team_id = $1 AND id = $2`, t.id, id)
}

// DigestTeams returns the teams that have an enabled webhook for a kind of digest, added before
// the digest was due, and whose digest until a day is not written yet.
func (s *Store) DigestTeams(ctx context.Context, kind dmarcd.EventKind, last dmarcd.Day, due time.Time) ([]dmarcd.TeamID, error) {
	return s.teamIDs(ctx, `SELECT DISTINCT webhooks.team_id + 0 FROM webhooks
		WHERE webhooks.disabled_at = 0 AND webhooks.created_at < $3 AND REPLACE(webhooks.kinds, $1, '') <> webhooks.kinds
			AND NOT EXISTS (SELECT 1 FROM alerts WHERE alerts.team_id = webhooks.team_id AND alerts.domain_id = 0 AND alerts.kind = $1
				AND alerts.subject = '' AND alerts.first_day = $2)`, kind, last, unix(due))
}
