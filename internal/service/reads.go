package service

import (
	"context"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store"
)

// The types that lists are narrowed by and continued from are the store's.
type (
	// Cursor is a place in a list that is ordered by time.
	Cursor = store.Cursor
	// RecordCursor is a place in the records of a report.
	RecordCursor = store.RecordCursor
	// DailyCursor is a place in the counts of domains by day.
	DailyCursor = store.DailyCursor
	// ReportFilter narrows a list of reports.
	ReportFilter = store.ReportFilter
	// EventFilter narrows a list of events.
	EventFilter = store.EventFilter
	// DailyCounts is what was counted on a day.
	DailyCounts = store.DailyCounts
	// Record is a record of a report, with its place.
	Record = store.Record
	// DomainFilter narrows and orders the domains of an overview.
	DomainFilter = store.OverviewFilter
	// DomainList is a part of an overview.
	DomainList = store.Overview
)

// Domain returns a domain by its name as it was written; what is no name is
// dmarcd.ErrNotFound, like any other that the team does not have.
func (t *Team) Domain(ctx context.Context, name string) (dmarcd.Domain, error) {
	if err := t.may(dmarcd.RightSee); err != nil {
		return dmarcd.Domain{}, err
	}
	return t.named(ctx, name)
}

// Domains returns up to limit domains whose names come after the given one, by name.
func (t *Team) Domains(ctx context.Context, after string, limit int) ([]dmarcd.Domain, error) {
	if err := t.may(dmarcd.RightSee); err != nil {
		return nil, err
	}
	return t.team.Domains(ctx, after, limit)
}

// Summary returns the counts of all domains in some days.
func (t *Team) Summary(ctx context.Context, days dmarcd.Days) (dmarcd.Summary, error) {
	if err := t.may(dmarcd.RightSee); err != nil {
		return dmarcd.Summary{}, err
	}
	return t.team.Summary(ctx, days)
}

// DomainSummary returns the counts of a domain in some days.
func (t *Team) DomainSummary(ctx context.Context, name string, days dmarcd.Days) (dmarcd.Summary, error) {
	if err := t.may(dmarcd.RightSee); err != nil {
		return dmarcd.Summary{}, err
	}
	parsed, err := dmarcd.ParseName(name)
	if err != nil {
		return dmarcd.Summary{}, dmarcd.ErrNotFound
	}
	return t.team.DomainSummary(ctx, parsed, days)
}

// LatestCheck returns the latest check of a domain, or dmarcd.ErrNotFound.
func (t *Team) LatestCheck(ctx context.Context, domain dmarcd.Domain) (dmarcd.KeptCheck, error) {
	if err := t.may(dmarcd.RightSee); err != nil {
		return dmarcd.KeptCheck{}, err
	}
	return t.team.LatestCheck(ctx, domain.Name)
}

// Checks returns up to limit checks of a domain, the latest first, older than the cursor.
func (t *Team) Checks(ctx context.Context, domain dmarcd.Domain, before Cursor, limit int) ([]dmarcd.KeptCheck, error) {
	if err := t.may(dmarcd.RightSee); err != nil {
		return nil, err
	}
	return t.team.Checks(ctx, domain.Name, before, limit)
}

// Reports returns up to limit reports, the latest first, received before the one with
// that id; 0 is the beginning.
func (t *Team) Reports(ctx context.Context, filter ReportFilter, before dmarcd.ReportID, limit int) ([]dmarcd.Report, error) {
	if err := t.may(dmarcd.RightSee); err != nil {
		return nil, err
	}
	return t.team.Reports(ctx, filter, before, limit)
}

// Report returns a report.
func (t *Team) Report(ctx context.Context, id dmarcd.ReportID) (dmarcd.Report, error) {
	if err := t.may(dmarcd.RightSee); err != nil {
		return dmarcd.Report{}, err
	}
	return t.team.Report(ctx, id)
}

// Records returns up to limit records of a report, behind the cursor.
func (t *Team) Records(ctx context.Context, id dmarcd.ReportID, after RecordCursor, limit int) ([]Record, error) {
	if err := t.may(dmarcd.RightSee); err != nil {
		return nil, err
	}
	return t.team.Records(ctx, id, after, limit)
}

// ReportOriginal returns what a report was sent in, or dmarcd.ErrNotFound where that is
// past its retention.
func (t *Team) ReportOriginal(ctx context.Context, id dmarcd.ReportID) (dmarcd.KeptOriginal, error) {
	if err := t.may(dmarcd.RightSee); err != nil {
		return dmarcd.KeptOriginal{}, err
	}
	return t.team.ReportOriginal(ctx, id)
}

// Rejected returns up to limit rejected items, the latest first, received before the one
// with that id; 0 is the beginning.
func (t *Team) Rejected(ctx context.Context, before dmarcd.RejectedID, limit int) ([]dmarcd.Rejected, error) {
	if err := t.may(dmarcd.RightSee); err != nil {
		return nil, err
	}
	return t.team.Rejected(ctx, before, limit)
}

// RejectedByID returns a rejected item.
func (t *Team) RejectedByID(ctx context.Context, id dmarcd.RejectedID) (dmarcd.Rejected, error) {
	if err := t.may(dmarcd.RightSee); err != nil {
		return dmarcd.Rejected{}, err
	}
	return t.team.RejectedByID(ctx, id)
}

// RejectedOriginal returns what a rejected item was sent in, or dmarcd.ErrNotFound where
// that is past its retention.
func (t *Team) RejectedOriginal(ctx context.Context, id dmarcd.RejectedID) (dmarcd.KeptOriginal, error) {
	if err := t.may(dmarcd.RightSee); err != nil {
		return dmarcd.KeptOriginal{}, err
	}
	return t.team.RejectedOriginal(ctx, id)
}

// Daily returns the counts of all domains by day.
func (t *Team) Daily(ctx context.Context, days dmarcd.Days, limit int) ([]DailyCounts, error) {
	if err := t.may(dmarcd.RightSee); err != nil {
		return nil, err
	}
	return t.team.Daily(ctx, days, limit)
}

// DomainDaily returns the counts of a domain by day. A domain that the team does not have
// has none.
func (t *Team) DomainDaily(ctx context.Context, name string, days dmarcd.Days, limit int) ([]DailyCounts, error) {
	if err := t.may(dmarcd.RightSee); err != nil {
		return nil, err
	}
	return t.team.DomainDaily(ctx, name, days, limit)
}

// DailyByDomain returns the counts of each domain by day, behind the cursor.
func (t *Team) DailyByDomain(ctx context.Context, days dmarcd.Days, after DailyCursor, limit int) ([]DailyCounts, error) {
	if err := t.may(dmarcd.RightSee); err != nil {
		return nil, err
	}
	return t.team.DailyByDomain(ctx, days, after, limit)
}

// ReserveMemory waits until the request may hold as much memory as one team may, and
// returns the context under which nothing else of the request waits. It returns
// memory.ErrBusy after some seconds. release must be called.
func (t *Team) ReserveMemory(ctx context.Context) (held context.Context, release func(), err error) {
	if err := t.may(dmarcd.RightSee); err != nil {
		return nil, nil, err
	}
	return t.service.options.Memory.AcquireAll(ctx, t.team.ID())
}

// DomainRows returns domains with their grades and counts, for an overview.
func (t *Team) DomainRows(ctx context.Context, filter DomainFilter) (DomainList, error) {
	if err := t.may(dmarcd.RightSee); err != nil {
		return DomainList{}, err
	}
	return t.team.DomainRows(ctx, filter)
}

// Tokens returns the tokens, revoked and expired ones too, without their secrets.
func (t *Team) Tokens(ctx context.Context) ([]dmarcd.Token, error) {
	if err := t.may(dmarcd.RightSee); err != nil {
		return nil, err
	}
	return t.team.Tokens(ctx)
}

// Members returns the members by their addresses.
func (t *Team) Members(ctx context.Context) ([]dmarcd.Member, error) {
	if err := t.may(dmarcd.RightSee); err != nil {
		return nil, err
	}
	return t.team.Members(ctx)
}

// Invites returns the invitations that can still be used.
func (t *Team) Invites(ctx context.Context) ([]dmarcd.Invite, error) {
	if err := t.may(dmarcd.RightSee); err != nil {
		return nil, err
	}
	return t.team.Invites(ctx)
}

// Audit returns up to limit entries of the audit log, the latest first, older than the
// cursor.
func (t *Team) Audit(ctx context.Context, before Cursor, limit int) ([]dmarcd.AuditEntry, error) {
	if err := t.may(dmarcd.RightManage); err != nil {
		return nil, err
	}
	return t.team.Audit(ctx, store.AuditFilter{}, before, limit)
}
