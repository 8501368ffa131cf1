package backend

import (
	"context"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/web"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// auditPage returns a part of an audit log, of a team or of the installation.
func auditPage(
	ctx context.Context, after string,
	read func(context.Context, service.Cursor, int) ([]dmarcd.AuditEntry, error), name func(dmarcd.TeamID) string,
) (wire.Page[web.AuditEntry], error) {
	before, err := parseCursor(after)
	if err != nil {
		return wire.Page[web.AuditEntry]{}, err
	}
	entries, err := read(ctx, before, auditPerPage+1)
	if err != nil {
		return wire.Page[web.AuditEntry]{}, err
	}
	return wire.NewPage(entries, auditPerPage, func(e dmarcd.AuditEntry) string {
		return wire.FormatCursor(e.At, int64(e.ID))
	}, func(e dmarcd.AuditEntry) (web.AuditEntry, error) {
		return web.AuditEntry{
			At: e.At, Actor: e.Actor, Action: e.Action, Target: e.Target, Detail: e.Detail, Address: e.Address, Team: name(e.Team),
		}, nil
	})
}

// Audit implements web.Installation.
func (i installation) Audit(ctx context.Context, after string) (wire.Page[web.AuditEntry], error) {
	teams, err := i.system.Teams(ctx)
	if err != nil {
		return wire.Page[web.AuditEntry]{}, err
	}
	names := make(map[dmarcd.TeamID]string, len(teams))
	for _, team := range teams {
		names[team.ID] = team.Name
	}
	return auditPage(ctx, after, i.system.Audit, func(id dmarcd.TeamID) string { return names[id] })
}
