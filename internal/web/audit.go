package web

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/web/site"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

const auditPerPage = 100

// audit shows the audit log of the team.
func (s *Web) audit(c *site.Call) error {
	view := listView{Heading: "Team settings", Tabs: settingsTabs(c.Viewer, "Audit log")}
	return showAudit(c, settingsFrame("audit", "Audit log"), view, auditTable, func(ctx context.Context, before service.Cursor, limit int) ([]dmarcd.AuditEntry, error) {
		return c.Team.Audit(ctx, service.Times{}, before, limit)
	})
}

// installationAudit shows the audit log of the installation and all teams.
func (s *Web) installationAudit(c *site.Call) error {
	teams, err := c.System.Teams(c.R.Context())
	if err != nil {
		return err
	}
	names := make(map[dmarcd.TeamID]string, len(teams))
	for _, team := range teams {
		names[team.ID] = team.Name
	}
	view := listView{Heading: "Installation", Tabs: installationTabs("Audit log")}
	table := func(entries []dmarcd.AuditEntry) ui.Table { return installationAuditTable(entries, names) }
	return showAudit(c, installationFrame("audit", "Audit log"), view, table, c.System.Audit)
}

// auditReader reads audit entries older than a cursor, newest first.
type auditReader func(ctx context.Context, before service.Cursor, limit int) ([]dmarcd.AuditEntry, error)

func showAudit(c *site.Call, page site.Page, view listView, table func([]dmarcd.AuditEntry) ui.Table, read auditReader) error {
	found, err := requested(c, "audit", pages(auditPerPage, func(before service.Cursor, limit int) ([]dmarcd.AuditEntry, error) {
		return read(c.R.Context(), before, limit)
	}, func(e dmarcd.AuditEntry) (time.Time, int64) { return e.At, int64(e.ID) }))
	if err != nil {
		return err
	}
	path, query := c.R.URL.Path, c.R.URL.Query()
	view.Table, view.Pager = table(found.Items), ui.CursorPager(path, query, next(found))
	view.Table.CSV = ui.WithQuery(path, query, "csv", "audit", "after", "")
	return c.Render(http.StatusOK, page, view, view.Table)
}

func auditTable(entries []dmarcd.AuditEntry) ui.Table {
	t := ui.Table{
		ID: "audit", Caption: "Changes",
		Columns: []ui.Column{{Title: "When"}, {Title: "User", Wide: true}, {Title: "Change"}, {Title: "Target", Wide: true, Note: "Detail"}, {Title: "IP address"}},
		Empty:   ui.Empty{Title: "No changes yet", Advice: "Every change by a member, a token or an operator is listed here.", Action: ui.Link{}},
	}
	for _, e := range entries {
		t.Rows = append(t.Rows, []ui.Cell{ui.At(e.At), ui.Text(e.Actor), ui.Text(actionWords(e.Action)), ui.Text(e.Target).Noted(e.Detail), ui.Code(e.Address)})
	}
	return t
}

// installationAuditTable is auditTable with a column for teams.
func installationAuditTable(entries []dmarcd.AuditEntry, teams map[dmarcd.TeamID]string) ui.Table {
	t := auditTable(entries)
	t.Columns = slices.Insert(t.Columns, 1, ui.Column{Title: "Team"})
	for i, e := range entries {
		t.Rows[i] = slices.Insert(t.Rows[i], 1, ui.Text(teams[e.Team]))
	}
	return t
}

// auditActions are the descriptions of actions.
var auditActions = map[string]string{
	"alert.acknowledge":    "acknowledged an alert",
	"alert.rules":          "changed the alert rules",
	"alert.test":           "tested the alerts",
	"digest.set":           "changed a digest",
	"domain.add":           "added a domain",
	"domain.delete":        "deleted a domain",
	"domain.forwarding":    "decided about forwarded mail",
	"domain.parked":        "set whether a domain is parked",
	"domain.purpose":       "set the purpose of a domain",
	"domain.selftest":      "ran a self-test",
	"domain.tags":          "set the tags of a domain",
	"sample.add":           "added sample data",
	"sample.delete":        "removed the sample data",
	"mailbox.add":          "added a mailbox",
	"mailbox.remove":       "removed a mailbox",
	"mailbox.resume":       "resumed a mailbox",
	"mailbox.login_failed": "failed to log in to a mailbox",
	"user.login":           "signed in",
	"user.login_failed":    "failed to sign in",
	"user.logout":          "signed out",
	"member.invite":        "invited a member",
	"member.uninvite":      "withdrew an invitation",
	"member.join":          "joined the team",
	"member.remove":        "removed a member",
	"member.role":          "changed a role",
	"rejected.delete":      "deleted a rejected report",
	"record.approve":       "approved and published a managed record",
	"record.export":        "exported records",
	"record.propose":       "proposed a managed record",
	"record.withdraw":      "withdrew a proposal for a managed record",
	"rejected.download":    "downloaded the original of a rejected report",
	"report.delete":        "deleted a report",
	"report.download":      "downloaded the original of a report",
	"report.exclude":       "excluded reports",
	"report.include":       "included reports",
	"report.retry":         "read a report again",
	"report.import":        "imported reports",
	"report.upload":        "uploaded reports",
	"retention.set":        "changed the retention",
	"secret.rotate":        "encrypted the secrets with another key",
	"zone.drop":            "dropped orphaned names of the zone",
	"sender.class":         "set the class of a sender",
	"sender.remove":        "removed a sender",
	"sender.set":           "added or changed a sender",
	"session.end":          "ended a session",
	"team.allow":           "allowed API access",
	"team.approval":        "set whether managed records need approval",
	"team.deny":            "blocked API access",
	"team.create":          "created the team",
	"team.quota":           "changed quotas",
	"token.create":         "created a token",
	"token.revoke":         "revoked a token",
	"user.invite":          "invited a user",
	"user.join":            "became a user",
	"user.address":         "confirmed the address of an account",
	"user.address_asked":   "asked for a link to confirm an address",
	"user.name":            "changed a name",
	"user.authenticator":   "changed an authenticator app",
	"user.passkey":         "added or removed a passkey",
	"user.passkey_copied":  "was refused with a passkey that may have been copied",
	"user.proved":          "confirmed who they are",
	"user.recovery_code":   "used a recovery code",
	"user.recovery_codes":  "created recovery codes",
	"user.factor_reset":    "reset a second factor",
	"team.second_factor":   "set whether members need a second factor",
	"users.second_factor":  "set whether users need a second factor",
	"user.password":        "changed a password",
	"user.remove":          "removed a user",
	"user.reset":           "asked for a link to set a password",
	"webhook.add":          "added a channel",
	"webhook.confirm":      "confirmed an email address",
	"webhook.remove":       "removed a channel",
	"webhook.retry":        "retried a delivery",
	"webhook.rotate":       "rotated the secret of a channel",
	"webhook.test":         "tested a channel",
	"webhook.unsubscribe":  "unsubscribed",
	"webhook.update":       "changed a channel",
}

// actionWords returns the description of an action, or its name.
func actionWords(action string) string {
	if words, ok := auditActions[action]; ok {
		return words
	}
	return action
}
