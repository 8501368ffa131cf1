package store

import (
	"context"
	"fmt"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store/db"
)

// sealed names the columns with encrypted secrets, the team of their rows, and what each is bound to.
var sealed = []struct {
	table, column, team string
	context             func(team dmarcd.TeamID, id int64) string
}{
	{"mailboxes", "secret", "team_id", contextOfMailbox},
	{"webhooks", "secret", "team_id", contextOfWebhook},
	{"webhooks", "old_secret", "team_id", contextOfWebhook},
	{"users", "totp", "CAST(0 AS BIGINT)", contextOfApp},
}

func contextOfMailbox(team dmarcd.TeamID, id int64) string {
	return dmarcd.Mailbox{Team: team, ID: dmarcd.MailboxID(id)}.SecretContext()
}

func contextOfWebhook(_ dmarcd.TeamID, id int64) string {
	return dmarcd.Webhook{ID: dmarcd.WebhookID(id)}.SecretContext()
}

func contextOfApp(_ dmarcd.TeamID, id int64) string { return dmarcd.UserID(id).TOTPContext() }

type sealedSecret struct {
	team dmarcd.TeamID
	id   int64
	text []byte
}

// ReplaceSecrets replaces every encrypted secret by what replace returns for it and what it is bound
// to; nil leaves it. A secret that is set meanwhile wins. It returns how many were replaced.
func (s *Store) ReplaceSecrets(ctx context.Context, replace func(sealed []byte, context string) []byte, audit dmarcd.AuditEntry) (replaced int, err error) {
	for _, c := range sealed {
		secrets, err := db.Collect(ctx, s.own(), `SELECT `+c.team+`, id, `+c.column+` FROM `+c.table+` WHERE length(`+c.column+`) > 0`,
			nil, func(scan db.Scanner) (one sealedSecret, err error) {
				err = scan(&one.team, &one.id, &one.text)
				return one, err
			})
		if err != nil {
			return replaced, fmt.Errorf("read the secrets of %s: %w", c.table, err)
		}
		for _, one := range secrets {
			text := replace(one.text, c.context(one.team, one.id))
			if text == nil {
				continue
			}
			changed, err := s.Team(one.team).exec(ctx, `UPDATE `+c.table+` SET `+c.column+` = $4
				WHERE `+c.team+` = $1 AND id = $2 AND `+c.column+` = $3`, one.team, one.id, one.text, text)
			if err != nil {
				return replaced, fmt.Errorf("replace a secret of %s: %w", c.table, err)
			}
			replaced += int(changed)
		}
	}
	files, err := s.replaceCertificateFiles(ctx, replace)
	replaced += files
	if err != nil {
		return replaced, fmt.Errorf("replace the files of certificates: %w", err)
	}
	return replaced, s.audited(ctx, []dmarcd.AuditEntry{audit}, "", func(tx) error { return nil })
}
