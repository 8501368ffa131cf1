package service

import (
	"context"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/store"
)

// Filters and cursors are types of the store.
type (
	// Cursor is a position in a list ordered by time.
	Cursor = store.Cursor
	// RecordCursor is a position in the records of a report.
	RecordCursor = store.RecordCursor
	// DailyCursor is a position in the daily counts of domains.
	DailyCursor = store.DailyCursor
	// ReportFilter narrows a list of reports.
	ReportFilter = store.ReportFilter
	// EventFilter narrows a list of events.
	EventFilter = store.EventFilter
	// ChangeFilter narrows a list of changes in DNS.
	ChangeFilter = store.ChangeFilter
	// Times limits a list to some time.
	Times = store.Times
	// DailyCounts are the counts of a day.
	DailyCounts = store.DailyCounts
	// Record is a record of a report, with its position.
	Record = store.Record
	// DomainRow is a domain with its mail in some days.
	DomainRow = store.DomainRow
	// PostureFilter narrows and orders the list of domains.
	PostureFilter = store.PostureFilter
	// PosturePosition is a position in the list of domains.
	PosturePosition = store.PosturePosition
	// PostureRow is a domain in that list.
	PostureRow = store.PostureRow
	// PostureCount counts the domains of that list.
	PostureCount = store.PostureCount
)

// Domain returns a domain by its name as entered; an invalid name is dmarcd.ErrNotFound.
func (t *Team) Domain(ctx context.Context, name string) (dmarcd.Domain, error) {
	return t.named(ctx, dmarcd.RightSee, name)
}

// Domains returns up to limit domains after a name, ordered by name.
func (t *Team) Domains(ctx context.Context, after string, limit int) ([]dmarcd.Domain, error) {
	return see(t, func() ([]dmarcd.Domain, error) { return t.team.Domains(ctx, after, limit) })
}

// Summary returns the counts of all domains in some days.
func (t *Team) Summary(ctx context.Context, days dmarcd.Days) (dmarcd.Summary, error) {
	return see(t, func() (dmarcd.Summary, error) { return t.team.Summary(ctx, days) })
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
func (t *Team) LatestCheck(ctx context.Context, domain dmarcd.Domain) (facts.StoredCheck, error) {
	return see(t, func() (facts.StoredCheck, error) { return t.team.LatestCheck(ctx, domain.Name) })
}

// TimesOf returns the times of some days.
func TimesOf(days dmarcd.Days) Times { return store.TimesOf(days) }

// DomainChanges returns up to limit checks that found changes in DNS, the latest first, older than the cursor.
func (t *Team) DomainChanges(ctx context.Context, filter ChangeFilter, before Cursor, limit int) ([]facts.DomainChange, error) {
	return see(t, func() ([]facts.DomainChange, error) { return t.team.DomainChanges(ctx, filter, before, limit) })
}

// Checks returns up to limit checks of a domain within some time, the latest first, older than the cursor.
func (t *Team) Checks(ctx context.Context, domain dmarcd.Domain, within Times, before Cursor, limit int) ([]facts.StoredCheck, error) {
	return see(t, func() ([]facts.StoredCheck, error) { return t.team.Checks(ctx, domain.Name, within, before, limit) })
}

// Reports returns up to limit reports, newest first, received before that id; 0 starts at the
// newest.
func (t *Team) Reports(ctx context.Context, filter ReportFilter, before dmarcd.ReportID, limit int) ([]dmarcd.Report, error) {
	return see(t, func() ([]dmarcd.Report, error) { return t.team.Reports(ctx, filter, before, limit) })
}

// largeReport is the size of the detail from which a report is a large read, in bytes.
const largeReport = 256 << 10

// ReserveReport is ReserveMemory for a response with the whole report, if it is large: TLS reports
// can be. An unknown report is dmarcd.ErrNotFound.
func (t *Team) ReserveReport(ctx context.Context, id dmarcd.ReportID) (held context.Context, release func(), err error) {
	if err := t.may(dmarcd.RightSee); err != nil {
		return nil, nil, err
	}
	bytes, err := t.team.ReportBytes(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	if bytes < largeReport {
		return ctx, func() {}, nil
	}
	return t.ReserveMemory(ctx)
}

// Report returns a report.
func (t *Team) Report(ctx context.Context, id dmarcd.ReportID) (dmarcd.Report, error) {
	return see(t, func() (dmarcd.Report, error) { return t.team.Report(ctx, id) })
}

// Records returns up to limit records of a report, after the cursor, and whether there are more;
// fewer if their texts are long.
func (t *Team) Records(ctx context.Context, id dmarcd.ReportID, after RecordCursor, limit int) (records []Record, more bool, err error) {
	if err := t.may(dmarcd.RightSee); err != nil {
		return nil, false, err
	}
	return t.team.Records(ctx, id, after, limit)
}

// ReportOriginal returns the original of a report, or dmarcd.ErrNotFound after its retention. The
// download is in the audit log before it begins.
func (t *Team) ReportOriginal(ctx context.Context, id dmarcd.ReportID) (dmarcd.StoredOriginal, error) {
	return taken(ctx, t, t.actor.to("report.download", id.String(), ""), func() (dmarcd.StoredOriginal, error) { return t.team.ReportOriginal(ctx, id) })
}

// taken reads something of a team that leaves the installation, and writes the audit entry.
func taken[T any](ctx context.Context, t *Team, entry dmarcd.AuditEntry, read func() (T, error)) (result T, err error) {
	if result, err = see(t, read); err == nil {
		err = t.team.Note(ctx, entry)
	}
	return result, err
}

// Rejected returns up to limit rejected items, newest first, received before that id; 0 starts
// at the newest.
func (t *Team) Rejected(ctx context.Context, before dmarcd.RejectedID, limit int) ([]dmarcd.Rejected, error) {
	return see(t, func() ([]dmarcd.Rejected, error) { return t.team.Rejected(ctx, before, limit) })
}

// RejectedByID returns a rejected item.
func (t *Team) RejectedByID(ctx context.Context, id dmarcd.RejectedID) (dmarcd.Rejected, error) {
	return see(t, func() (dmarcd.Rejected, error) { return t.team.RejectedByID(ctx, id) })
}

// RejectedOriginal returns the original of a rejected item, or dmarcd.ErrNotFound after its
// retention.
func (t *Team) RejectedOriginal(ctx context.Context, id dmarcd.RejectedID) (dmarcd.StoredOriginal, error) {
	return taken(ctx, t, t.actor.to("rejected.download", id.String(), ""), func() (dmarcd.StoredOriginal, error) { return t.team.RejectedOriginal(ctx, id) })
}

// Daily returns the counts of all domains by day.
func (t *Team) Daily(ctx context.Context, days dmarcd.Days, limit int) ([]DailyCounts, error) {
	return see(t, func() ([]DailyCounts, error) { return t.team.Daily(ctx, days, limit) })
}

// ParkedDaily returns the counts by day of parked domains whose mail receivers reject.
func (t *Team) ParkedDaily(ctx context.Context, days dmarcd.Days, limit int) ([]DailyCounts, error) {
	return see(t, func() ([]DailyCounts, error) { return t.team.ParkedDaily(ctx, days, limit) })
}

// TLSDaily returns the sessions that TLS reports count for a domain by day. A domain that
// the team does not have has none.
func (t *Team) TLSDaily(ctx context.Context, name string, days dmarcd.Days) ([]DailyCounts, error) {
	return see(t, func() ([]DailyCounts, error) { return t.team.TLSDaily(ctx, name, days) })
}

// DomainDaily returns the counts of a domain by day; none for an unknown domain.
func (t *Team) DomainDaily(ctx context.Context, name string, days dmarcd.Days, limit int) ([]DailyCounts, error) {
	return see(t, func() ([]DailyCounts, error) { return t.team.DomainDaily(ctx, name, days, limit) })
}

// DailyByDomain returns the counts of each domain by day, after the cursor.
func (t *Team) DailyByDomain(ctx context.Context, days dmarcd.Days, after DailyCursor, limit int) ([]DailyCounts, error) {
	return see(t, func() ([]DailyCounts, error) { return t.team.DailyByDomain(ctx, days, after, limit) })
}

// ReserveMemory waits until the request may use a team's share of the memory budget, and
// returns a context in which it does not wait again. After some seconds it returns
// memory.ErrBusy. Call release after use.
func (t *Team) ReserveMemory(ctx context.Context) (held context.Context, release func(), err error) {
	if err := t.may(dmarcd.RightSee); err != nil {
		return nil, nil, err
	}
	return t.service.options.Memory.AcquireAll(ctx, t.team.ID())
}

// rowBytes is the most that a row of a list takes, with its response, in bytes: texts from DNS
// have up to 4 KiB. Lists of up to shortList rows are not counted.
const (
	rowBytes  = 16 << 10
	shortList = 100
)

// ReserveRows waits until a response may have that many rows of a list. After some seconds it
// returns memory.ErrBusy. Call release after use.
func (t *Team) ReserveRows(ctx context.Context, rows int) (release func(), err error) {
	if err := t.may(dmarcd.RightSee); err != nil {
		return nil, err
	}
	if rows <= shortList {
		return func() {}, nil
	}
	return t.service.options.Memory.Acquire(ctx, t.team.ID(), int64(rows)*rowBytes)
}

// ReadTurn waits for the team's turn to read and encode many rows: see store.Team.ReadTurn.
func (t *Team) ReadTurn(ctx context.Context) (end func(), err error) {
	if err := t.may(dmarcd.RightSee); err != nil {
		return nil, err
	}
	return t.team.ReadTurn(ctx), nil
}

// DomainTrends returns the days with messages of domains, in order.
func (t *Team) DomainTrends(ctx context.Context, domains []dmarcd.DomainID, days dmarcd.Days) (map[dmarcd.DomainID][]dmarcd.DayCount, error) {
	return see(t, func() (map[dmarcd.DomainID][]dmarcd.DayCount, error) {
		return t.team.DomainTrends(ctx, domains, days)
	})
}

// Tokens returns all tokens, including revoked and expired ones, without secrets.
func (t *Team) Tokens(ctx context.Context) ([]dmarcd.Token, error) {
	return see(t, func() ([]dmarcd.Token, error) { return t.team.Tokens(ctx) })
}

// Members returns the members by their addresses.
func (t *Team) Members(ctx context.Context) ([]dmarcd.Member, error) {
	return see(t, func() ([]dmarcd.Member, error) { return t.team.Members(ctx) })
}

// Invitations returns the open invitations.
func (t *Team) Invitations(ctx context.Context) ([]dmarcd.Invitation, error) {
	return see(t, func() ([]dmarcd.Invitation, error) { return t.team.Invitations(ctx) })
}

// Audit returns up to limit entries of the audit log within some time, the latest first, older than
// the cursor.
func (t *Team) Audit(ctx context.Context, within Times, before Cursor, limit int) ([]dmarcd.AuditEntry, error) {
	if err := t.may(dmarcd.RightManage); err != nil {
		return nil, err
	}
	return t.team.Audit(ctx, store.AuditFilter{Times: within}, before, limit)
}

// Series are messages by day.
type Series struct {
	// Days has a value for each day of a period, Counts is their sum, Before the sum of the previous
	// period of the same length.
	Days           []insight.DayCounts
	Counts, Before dmarcd.Counts
	// Parked is the number of messages of parked domains, which are left out.
	Parked int64
}

// NewSeries returns the series of a period from days with messages. Days before from belong to the
// previous period.
func NewSeries(counted []DailyCounts, from, to dmarcd.Day) Series {
	s := Series{Days: make([]insight.DayCounts, to-from+1)}
	for i := range s.Days {
		s.Days[i].Day = from + dmarcd.Day(i)
	}
	for _, c := range counted {
		if c.Day < from {
			s.Before.Add(c.Counts)
			continue
		}
		s.Days[c.Day-from].Counts = c.Counts
		s.Counts.Add(c.Counts)
	}
	return s
}

// Series returns the mail of the team without parked domains whose mail is rejected: that mail is
// spoofed, and must not lower the pass rate.
func (t *Team) Series(ctx context.Context, from, to dmarcd.Day) (Series, error) {
	length := to - from + 1
	begin := from - length
	days := dmarcd.Days{From: &begin, To: &to}
	all, err := t.Daily(ctx, days, 2*int(length))
	if err != nil {
		return Series{}, err
	}
	parked, err := t.ParkedDaily(ctx, days, 2*int(length))
	if err != nil {
		return Series{}, err
	}
	var out int64
	left := make(map[dmarcd.Day]dmarcd.Counts, len(parked))
	for _, d := range parked {
		left[d.Day] = d.Counts
		if d.Day >= from {
			out += d.Total()
		}
	}
	for i := range all {
		all[i].Counts = all[i].Without(left[all[i].Day])
	}
	s := NewSeries(all, from, to)
	s.Parked = out
	return s, nil
}
