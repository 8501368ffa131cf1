package api

import (
	"net/http"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// getMe describes the token of the request, its team and the server.
func (a *API) getMe(c *call) error {
	team, err := c.service.Self(c.r.Context())
	if err != nil {
		return err
	}
	quota, used, err := c.service.Quota(c.r.Context())
	if err != nil {
		return err
	}
	return c.writeCacheable(wire.NewMe(team, c.token, quota, used, a.options.Version))
}

func (a *API) listAudit(c *call) error {
	limit, after := c.query.cursor()
	within := service.TimesOf(c.query.days())
	if err := c.reserveRows(limit); err != nil {
		return err
	}
	entries, err := c.service.Audit(c.r.Context(), within, after, limit+1)
	if err != nil {
		return err
	}
	return writePage(c, wire.NewPage(entries, limit, func(e dmarcd.AuditEntry) string { return wire.FormatCursor(e.At, int64(e.ID)) }, wire.NewAuditEntry))
}

func (a *API) getRetention(c *call) error {
	retention, err := c.service.Retention(c.r.Context())
	if err != nil {
		return err
	}
	return c.writeCacheable(wire.Retention(retention))
}

func (a *API) setRetention(c *call) error {
	body := readObject(c, "records", `{"counters": 0, "records": 400, "originals": 90}`)
	// A number that does not fit is one that is too large.
	days := func(name string) int { return int(min(max(body.number(name), -1), 1<<30)) }
	retention := service.Retention{Counters: days("counters"), Records: days("records"), Originals: days("originals")}
	if body.err != nil {
		return body.err
	}
	if err := c.service.SetRetention(c.r.Context(), retention); err != nil {
		return err
	}
	return c.writeJSON(http.StatusOK, wire.Retention(retention))
}
