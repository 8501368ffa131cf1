package store

import (
	"context"
	"fmt"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store/db"
)

// ReplaceSecrets replaces every encrypted secret by what replace returns for it and what it is bound
// to; nil leaves it. A secret that is set meanwhile wins. It returns how many were replaced. The audit
// logs are sealed again, and their earlier keys are kept.
func (s *Store) ReplaceSecrets(ctx context.Context, replace func(sealed []byte, context string) []byte, audit dmarcd.AuditEntry) (replaced int, err error) {
	for _, step := range []func(context.Context, *Store, func(sealed []byte, context string) []byte) (int, error){
		secrets[dmarcd.MailboxID]{"mailboxes", "id", "secret", "team_id", contextOfMailbox}.replace,
		secrets[dmarcd.WebhookID]{"webhooks", "id", "secret", "team_id", contextOfWebhook}.replace,
		secrets[dmarcd.WebhookID]{"webhooks", "id", "old_secret", "team_id", contextOfWebhook}.replace,
		secrets[dmarcd.DomainID]{"record_targets", "domain_id", "secret", "team_id", contextOfTarget}.replace,
		secrets[dmarcd.UserID]{"users", "id", "totp", noTeam, contextOfApp}.replace,
		secrets[string]{"certificate_files", "name", "content", noTeam, contextOfFile}.replace,
		secrets[string]{"audit_keys", "name", "content", noTeam, contextOfAudit}.replace,
	} {
		some, err := step(ctx, s, replace)
		replaced += some
		if err != nil {
			return replaced, err
		}
	}
	if err := s.resealAudit(ctx); err != nil {
		return replaced, fmt.Errorf("seal the audit logs: %w", err)
	}
	return replaced, s.audited(ctx, []dmarcd.AuditEntry{audit}, "", func(tx) error { return nil })
}

// secrets names a column with encrypted secrets, the key and team of their rows, and what each is
// bound to.
type secrets[Key any] struct {
	table, key, column, team string
	context                  func(dmarcd.TeamID, Key) string
}

// noTeam is the team of rows of the installation.
const noTeam = "CAST(0 AS BIGINT)"

func contextOfMailbox(team dmarcd.TeamID, id dmarcd.MailboxID) string {
	return dmarcd.Mailbox{Team: team, ID: id}.SecretContext()
}

func contextOfWebhook(_ dmarcd.TeamID, id dmarcd.WebhookID) string {
	return dmarcd.Webhook{ID: id}.SecretContext()
}

func contextOfTarget(team dmarcd.TeamID, id dmarcd.DomainID) string {
	return dmarcd.PublishTarget{Domain: id}.SecretContext(team)
}

func contextOfApp(_ dmarcd.TeamID, id dmarcd.UserID) string { return id.TOTPContext() }

func contextOfFile(_ dmarcd.TeamID, name string) string { return name }

func contextOfAudit(_ dmarcd.TeamID, name string) string { return "key of the audit log " + name }

func (c secrets[Key]) replace(ctx context.Context, s *Store, replace func(sealed []byte, context string) []byte) (replaced int, err error) {
	type row struct {
		team dmarcd.TeamID
		key  Key
		text []byte
	}
	rows, err := db.Collect(ctx, s.own(), `SELECT `+c.team+`, `+c.key+`, `+c.column+` FROM `+c.table+` WHERE length(`+c.column+`) > 0`,
		nil, func(scan db.Scanner) (one row, err error) {
			err = scan(&one.team, &one.key, &one.text)
			return one, err
		})
	if err != nil {
		return 0, fmt.Errorf("read the secrets of %s: %w", c.table, err)
	}
	for _, one := range rows {
		text := replace(one.text, c.context(one.team, one.key))
		if text == nil {
			continue
		}
		changed, err := s.Team(one.team).exec(ctx, `UPDATE `+c.table+` SET `+c.column+` = $4
			WHERE `+c.team+` = $1 AND `+c.key+` = $2 AND `+c.column+` = $3`, one.team, one.key, one.text, text)
		if err != nil {
			return replaced, fmt.Errorf("replace a secret of %s: %w", c.table, err)
		}
		replaced += int(changed)
	}
	return replaced, nil
}
