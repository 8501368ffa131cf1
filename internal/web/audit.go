package web

import (
	"net/http"
	"time"

	"github.com/dmarcd/dmarcd/internal/wire"
)

// AuditEntry is a change that somebody made.
type AuditEntry struct {
	At time.Time
	// Actor is who, Action what was done, Target to what, Address from where.
	Actor, Action, Target, Detail, Address string
}

type auditView struct {
	Tabs  []tab
	Table Table
	Pager Pager
}

func (s *Web) audit(c *call) error {
	const path = Prefix + "/settings/audit"
	query := c.r.URL.Query()
	part := func(after string) (wire.Page[AuditEntry], error) {
		return c.team.Keeping.Audit(c.r.Context(), after)
	}
	if c.wantsCSV("audit") {
		all, err := wholeList(part)
		if err != nil {
			return err
		}
		return c.csv(auditTable(all, ""))
	}
	found, err := part(query.Get("after"))
	if err != nil {
		return err
	}
	t := auditTable(found.Items, withQuery(path, query, "csv", "audit", "after", ""))
	return c.render(http.StatusOK, settingsFrame("audit", "Audit log"),
		auditView{settingsTabs(c.viewer, "Audit log"), t, cursorPager(path, query, next(found))})
}

func auditTable(entries []AuditEntry, csv string) Table {
	t := Table{
		ID: "audit", Caption: "Changes", CSV: csv,
		Columns: []Column{{Title: "When"}, {Title: "Who", Wide: true}, {Title: "What"}, {Title: "To what", Wide: true, Note: "Detail"}, {Title: "From where"}},
		Empty:   Empty{"No changes yet", "Every change that a member, a token or an operator makes is kept here.", Link{}},
	}
	for _, e := range entries {
		t.Rows = append(t.Rows, []Cell{at(e.At), text(e.Actor), text(actionWords(e.Action)), text(e.Target).noted(e.Detail), code(e.Address)})
	}
	return t
}

// auditActions puts what was done into words.
var auditActions = map[string]string{
	"domain.add":      "added a domain",
	"domain.delete":   "deleted a domain",
	"domain.purpose":  "set the purpose of a domain",
	"mailbox.add":     "added a mailbox",
	"mailbox.remove":  "removed a mailbox",
	"member.invite":   "invited a member",
	"member.uninvite": "withdrew an invitation",
	"member.join":     "joined the team",
	"member.remove":   "removed a member",
	"member.role":     "changed a role",
	"report.retry":    "read a report again",
	"report.upload":   "uploaded reports",
	"retention.set":   "changed the retention",
	"session.end":     "ended a session",
	"team.allow":      "allowed the API",
	"team.deny":       "denied the API",
	"team.create":     "created the team",
	"token.create":    "made a token",
	"token.revoke":    "revoked a token",
	"user.invite":     "invited a user",
	"user.join":       "became a user",
	"user.name":       "changed a name",
	"user.password":   "changed a password",
	"user.remove":     "removed a user",
}

// actionWords returns the words of an action, or its name where it has none.
func actionWords(action string) string {
	if words, ok := auditActions[action]; ok {
		return words
	}
	return action
}
