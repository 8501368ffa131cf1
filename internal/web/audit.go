package web

import (
	"net/http"
	"time"
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
	found, err := c.team.Keeping.Audit(c.r.Context(), query.Get("after"))
	if err != nil {
		return err
	}
	t := Table{
		ID: "audit", Caption: "Changes", CSV: withQuery(path, query, "csv", "audit"),
		Columns: []Column{{Title: "When"}, {Title: "Who", Wide: true}, {Title: "What"}, {Title: "To what", Wide: true}, {Title: "From where"}},
		Empty:   Empty{"No changes yet", "Every change that a member, a token or an operator makes is kept here.", Link{}},
	}
	for _, e := range found.Items {
		t.Rows = append(t.Rows, []Cell{at(e.At), text(e.Actor), text(e.Action), text(e.Target).noted(e.Detail), code(e.Address)})
	}
	if c.wantsCSV("audit") {
		return c.csv(t)
	}
	return c.render(http.StatusOK, settingsFrame("audit", "Audit log"),
		auditView{settingsTabs(c.viewer, "Audit log"), t, cursorPager(path, query, next(found))})
}
