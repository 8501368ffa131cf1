package store

import (
	"context"
	"time"

	"github.com/dmarcd/dmarcd"
)

// EachNotice calls notify with each webhook of whose end the owners of its team are to be notified.
// Those of a team wait while notify fails for it, see eachTeam.
func (s *Store) EachNotice(ctx context.Context, notify func(*Team, dmarcd.Webhook) error) error {
	_, err := s.eachTeam(ctx, "notices of disabled webhooks", func(t *Team) (bool, error) { return false, t.eachNotice(ctx, notify) },
		`SELECT DISTINCT team_id + 0 FROM webhooks WHERE notify_at > 0`)
	return err
}

func (t *Team) eachNotice(ctx context.Context, notify func(*Team, dmarcd.Webhook) error) error {
	webhooks, err := collectRead(ctx, t.store, `SELECT `+webhookColumns+` FROM webhooks WHERE team_id = $1 AND notify_at > 0`,
		[]any{t.id}, scanWebhook(t.store.now()))
	if err != nil {
		return err
	}
	for _, w := range webhooks {
		if err := notify(t, w); err != nil {
			return err
		}
		if _, err := t.exec(ctx, `UPDATE webhooks SET notify_at = 0 WHERE team_id = $1 AND id = $2`, t.id, w.ID); err != nil {
			return err
		}
	}
	return nil
}

// DigestTeams returns the teams that have an enabled webhook for a kind of digest, added before
// the digest was due, and whose digest until a day is not written yet.
func (s *Store) DigestTeams(ctx context.Context, kind dmarcd.EventKind, last dmarcd.Day, due time.Time) ([]dmarcd.TeamID, error) {
	return s.teamIDs(ctx, `SELECT DISTINCT webhooks.team_id + 0 FROM webhooks
		WHERE webhooks.disabled_at = 0 AND webhooks.created_at < $3 AND REPLACE(webhooks.kinds, $1, '') <> webhooks.kinds
			AND NOT EXISTS (SELECT 1 FROM alerts WHERE alerts.team_id = webhooks.team_id AND alerts.domain_id = 0 AND alerts.kind = $1
				AND alerts.subject = '' AND alerts.first_day = $2)`, kind, last, unix(due))
}
