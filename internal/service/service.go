// Package service holds the use cases of dmarcd, each once: the role check, the
// validation, the change, and the audit entry in the transaction of the change. The
// API, the web pages and the command line decode, call it and encode. It takes and
// returns the types of package dmarcd, and its errors are of the kinds of that
// package.
//
// So far it has the decisions about reports; the other use cases are still in the
// front ends.
package service

import (
	"context"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store"
)

// Actor is who asks for something: a user, a token or an operator on the command line.
type Actor struct {
	// Role is what the actor may do in the team.
	Role dmarcd.Role

	entry dmarcd.AuditEntry
}

// User is a user with a role in the team, who is connected from address.
func User(id dmarcd.UserID, email string, role dmarcd.Role, address string) Actor {
	return Actor{Role: role, entry: dmarcd.AuditEntry{User: id, Actor: email, Address: address}}
}

// Token is a token of the team, used from address. One that may write has the rights
// of an editor.
func Token(id dmarcd.TokenID, scope dmarcd.Scope, address string) Actor {
	role := dmarcd.RoleViewer
	if scope == dmarcd.ScopeWrite {
		role = dmarcd.RoleEditor
	}
	return Actor{Role: role, entry: dmarcd.AuditEntry{Actor: "token " + id.String(), Address: address}}
}

// Operator is the command line.
func Operator() Actor {
	return Actor{Role: dmarcd.RoleOwner, entry: dmarcd.AuditEntry{Actor: "command line"}}
}

// Team is what an actor can do in one team. It is for one request, and costs nothing
// to make.
type Team struct {
	team  *store.Team
	actor Actor
}

// NewTeam returns what the actor can do in the team.
func NewTeam(team *store.Team, actor Actor) *Team { return &Team{team: team, actor: actor} }

// mayChange returns dmarcd.ErrForbidden unless the actor may change the team's data.
func (t *Team) mayChange() error {
	if !t.actor.Role.Can(dmarcd.RightChange) {
		return dmarcd.ErrForbidden
	}
	return nil
}

// entry returns the audit entry of a change.
func (t *Team) entry(action, target, detail string) dmarcd.AuditEntry {
	entry := t.actor.entry
	entry.Action, entry.Target, entry.Detail = action, target, detail
	return entry
}

// SetCounted includes a report in the counters or excludes it, and returns the report
// as it is then. To include a held report releases it; another version of the same
// report that was counted is replaced.
func (t *Team) SetCounted(ctx context.Context, id dmarcd.ReportID, counted bool) (dmarcd.Report, error) {
	if err := t.mayChange(); err != nil {
		return dmarcd.Report{}, err
	}
	if _, err := t.team.SetReportCounted(ctx, id, counted, t.entry(countedAction(counted), id.String(), "")); err != nil {
		return dmarcd.Report{}, err
	}
	return t.team.Report(ctx, id)
}

func countedAction(counted bool) string {
	if counted {
		return "report.include"
	}
	return "report.exclude"
}

// DeleteReport deletes a report, and its original unless others came with it.
func (t *Team) DeleteReport(ctx context.Context, id dmarcd.ReportID) error {
	if err := t.mayChange(); err != nil {
		return err
	}
	return t.team.DeleteReport(ctx, id, t.entry("report.delete", id.String(), ""))
}

// DeleteRejected deletes a rejected item, and its original unless others came with it.
func (t *Team) DeleteRejected(ctx context.Context, id dmarcd.RejectedID) error {
	if err := t.mayChange(); err != nil {
		return err
	}
	return t.team.DeleteRejected(ctx, id, t.entry("rejected.delete", id.String(), ""))
}

// Selection selects reports. At least one field must be set.
type Selection struct {
	// Reporter is the name of the reporter, in any case; "" is any.
	Reporter string
	// Days is when the reports begin.
	Days dmarcd.Days
}

// SetCountedAll is SetCounted for all reports of a selection. It returns how many were
// changed. Held and replaced reports are left alone.
func (t *Team) SetCountedAll(ctx context.Context, selected Selection, counted bool) (int, error) {
	if err := t.mayChange(); err != nil {
		return 0, err
	}
	if selected == (Selection{}) {
		return 0, &dmarcd.InvalidError{Field: "reporter", Message: "Select the reports: give a reporter, the first day, the last day, or several of these."}
	}
	if days := selected.Days; days.From != nil && days.To != nil && *days.From > *days.To {
		return 0, &dmarcd.InvalidError{Field: "from", Message: "The first day must not be later than the last."}
	}
	return t.team.SetReportsCounted(ctx, store.ReportFilter{Organization: selected.Reporter, Days: selected.Days}, counted,
		t.entry(countedAction(counted), selected.Reporter, selected.String()))
}

// String is the selection for the audit log.
func (s Selection) String() string {
	text := "all reports"
	if s.Days.From != nil {
		text += " from " + s.Days.From.String()
	}
	if s.Days.To != nil {
		text += " to " + s.Days.To.String()
	}
	return text
}
