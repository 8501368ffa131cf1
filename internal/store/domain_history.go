package store

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/store/db"
	"github.com/dmarcd/dmarcd/internal/store/shape"
)

// LatestCheck returns the newest entry of a domain's history, or ErrNotFound.
func (t *Team) LatestCheck(ctx context.Context, name string) (facts.StoredCheck, error) {
	checks, err := t.Checks(ctx, name, Times{}, Cursor{}, 1)
	if err == nil && len(checks) == 0 {
		err = dmarcd.ErrNotFound
	}
	if err != nil {
		return facts.StoredCheck{}, err
	}
	return checks[0], nil
}

// Checks returns up to limit entries of a domain's history that began within the times, newest first,
// older than the cursor; none for an unknown domain.
func (t *Team) Checks(ctx context.Context, name string, within Times, before Cursor, limit int) ([]facts.StoredCheck, error) {
	at, id := before.bounds()
	from, until := within.bounds()
	return db.Collect(ctx, t.store, `SELECT `+checkColumns+` FROM checks
		WHERE team_id = $1 AND (first_at < $2 OR first_at = $2 AND id < $3)
			AND domain_id = (SELECT id FROM domains WHERE team_id = $1 AND name = $4 AND deleted_at = 0)
			AND first_at >= $5 AND first_at < $6
		ORDER BY first_at DESC, id DESC LIMIT $7`, []any{t.id, at, id, name, from, until, limit}, scanCheck)
}

const checkColumns = `id, first_at, last_at, document, changes`

// scanCheck reads checkColumns.
func scanCheck(scan db.Scanner) (facts.StoredCheck, error) {
	var c facts.StoredCheck
	var firstAt, lastAt int64
	var document, changes string
	if err := scan(&c.ID, &firstAt, &lastAt, &document, &changes); err != nil {
		return c, err
	}
	c.FirstAt, c.LastAt = fromUnix(firstAt), fromUnix(lastAt)
	var err error
	if c.Check, err = shape.DecodeCheck(document); err != nil {
		return c, fmt.Errorf("read check %s: %w", c.ID, err)
	}
	c.Check.At, c.Check.Conclusive = c.LastAt, true
	if c.Changes, err = shape.DecodeChanges(changes); err != nil {
		return c, fmt.Errorf("read check %s: %w", c.ID, err)
	}
	return c, nil
}

// saveEntry adds a full check to the history of its domain.
func (t *Team) saveEntry(ctx context.Context, tx tx, row *checkedDomain, check facts.Check, plan dmarcd.Plan) error {
	row.fullAt = row.CheckedAt
	row.nextFullAt = plan.NextFull
	if check.Grade != "" {
		row.Grade = check.Grade
	}
	document := shape.EncodeCheck(check)
	last, found, err := t.lastEntry(ctx, tx, row.ID)
	if err != nil {
		return err
	}
	var changes []facts.Change
	problems := problemsOf(last.problems, check)
	if found && document == last.document && slices.Equal(problems, last.problems) {
		return t.confirmEntry(ctx, tx, row, last.id) // the usual case
	}
	if found {
		if last.check, err = shape.DecodeCheck(last.document); err != nil {
			return fmt.Errorf("read check %s: %w", last.id, err)
		}
		changes = facts.Changes(last.check, check)
		// A problem in a part that the last check could not examine may be the only one that is
		// resolved.
		resolved := slices.ContainsFunc(last.problems, func(f dmarcd.Finding) bool { return lacks(problems, f.ID) })
		if len(changes) == 0 && !resolved && !seesMore(check, last.check) {
			return t.confirmEntry(ctx, tx, row, last.id)
		}
	}
	if found {
		t.addEvents(tx, row.ID, row.CheckedAt, findingEvents(last.problems, problems)...)
	}
	if found && len(changes) == 0 {
		// A new id: caches hold the document by id.
		_, err := tx.Exec(ctx, `UPDATE checks SET id = $1, last_at = $2, grade = $3, document = $4, errors = $5 WHERE team_id = $6 AND id = $7`,
			db.NewID(), unix(row.CheckedAt), check.Grade, document, shape.EncodeFindings(problems), t.id, last.id)
		return err
	}
	// Entries are ordered by time: two checks in one second, or a clock that was set back, must not
	// leave an older entry as the newest.
	at := max(unix(row.CheckedAt), last.firstAt+1)
	_, err = tx.Exec(ctx, `INSERT INTO checks (id, team_id, domain_id, first_at, last_at, grade, document, changes, parts, errors)
		VALUES ($1, $2, $3, $4, $4, $5, $6, $7, $8, $9)`,
		db.NewID(), t.id, row.ID, at, check.Grade, document, shape.EncodeChanges(changes), partBits(changes), shape.EncodeFindings(problems))
	if err != nil {
		return err
	}
	return t.trimHistory(ctx, tx, row.ID)
}

// confirmEntry records that a check found the same as an entry.
func (t *Team) confirmEntry(ctx context.Context, tx tx, row *checkedDomain, entry dmarcd.CheckID) error {
	_, err := tx.Exec(ctx, `UPDATE checks SET last_at = $1 WHERE team_id = $2 AND id = $3`, unix(row.CheckedAt), t.id, entry)
	return err
}

// The history of a domain has at most maxHistory entries, and before the latest one at most
// historyBytes: the publisher of the records decides how long they are and how often they change.
const (
	maxHistory   = 1000
	historyBytes = 1 << 20
)

// trimHistory removes the oldest entries of a domain's history beyond the limits.
func (t *Team) trimHistory(ctx context.Context, tx tx, domain dmarcd.DomainID) error {
	var entries, bytes int64
	var ids []dmarcd.CheckID
	err := tx.Query(ctx, `SELECT id, octet_length(document) + octet_length(changes) + octet_length(errors) FROM checks
		WHERE team_id = $1 AND domain_id = $2 ORDER BY first_at DESC, id DESC`, []any{t.id, domain}, func(scan db.Scanner) error {
		var id dmarcd.CheckID
		var size int64
		err := scan(&id, &size)
		if entries++; entries > 1 {
			bytes += size
		}
		if entries > maxHistory || bytes > historyBytes {
			ids = append(ids, id)
		}
		return err
	})
	for _, id := range ids {
		if err == nil {
			_, err = tx.Exec(ctx, `DELETE FROM checks WHERE team_id = $1 AND id = $2`, t.id, id)
		}
	}
	return err
}

// seesMore reports whether a check without changes determined a part that the last entry lacks, or
// other answers below the SPF record, and itself lacks nothing. It then completes that entry:
// otherwise later checks would be compared with unknown parts, and SPF evaluated with outdated
// addresses.
func seesMore(check, last facts.Check) bool {
	now, before := check.Facts.Unseen(), last.Facts.Unseen()
	if slices.ContainsFunc(now, func(part string) bool { return !slices.Contains(before, part) }) {
		return false
	}
	// Findings also depend on settings of the domain.
	concluded := func(a, b dmarcd.Finding) bool { return a.ID == b.ID && a.Record == b.Record }
	return len(now) < len(before) || !reflect.DeepEqual(check.Facts.SPF.Tree, last.Facts.SPF.Tree) ||
		!slices.EqualFunc(check.Findings, last.Findings, concluded)
}

// entry is the part of a check that the next one is compared with.
type entry struct {
	id       dmarcd.CheckID
	firstAt  int64
	document string
	check    facts.Check // decoded from the document when the documents differ
	problems []dmarcd.Finding
}

// lastEntry returns the newest entry of a domain's history, if any.
func (t *Team) lastEntry(ctx context.Context, tx tx, domain dmarcd.DomainID) (last entry, found bool, err error) {
	var problems string
	err = tx.QueryRow(ctx, `SELECT id, first_at, document, errors FROM checks WHERE team_id = $1 AND domain_id = $2
		ORDER BY first_at DESC, id DESC LIMIT 1`, []any{t.id, domain}, &last.id, &last.firstAt, &last.document, &problems)
	if errors.Is(err, dmarcd.ErrNotFound) {
		return entry{}, false, nil
	}
	if err != nil {
		return entry{}, false, err
	}
	last.problems, err = shape.DecodeFindings(problems)
	return last, true, err
}

// problemsOf returns the errors and warnings of a check, and the earlier ones of parts that it
// could not examine, without the texts that only users read.
func problemsOf(before []dmarcd.Finding, check facts.Check) []dmarcd.Finding {
	var problems []dmarcd.Finding
	for _, f := range check.Findings {
		if f.Level == dmarcd.LevelError || f.Level == dmarcd.LevelWarning {
			problems = append(problems, dmarcd.Finding{ID: f.ID, Level: f.Level, What: strings.ReplaceAll(f.What, "\n", " "), Host: f.Host})
		}
	}
	for _, f := range before {
		if check.Facts.Hides(f) && lacks(problems, f.ID) {
			problems = append(problems, f)
		}
	}
	return problems
}

// lacks reports whether no finding has that id.
func lacks(findings []dmarcd.Finding, id string) bool {
	return !slices.ContainsFunc(findings, func(f dmarcd.Finding) bool { return f.ID == id })
}

// findingEvents compares problems by id: the text may change while the problem stays.
func findingEvents(before, after []dmarcd.Finding) []dmarcd.Event {
	var events []dmarcd.Event
	for _, f := range after {
		if lacks(before, f.ID) {
			events = append(events, dmarcd.Event{Kind: dmarcd.FindingAppeared, EventData: dmarcd.EventData{Finding: f.ID, After: f.What, Level: f.Level}})
		}
	}
	for _, f := range before {
		if lacks(after, f.ID) {
			events = append(events, dmarcd.Event{Kind: dmarcd.FindingResolved, EventData: dmarcd.EventData{Finding: f.ID, Before: f.What}})
		}
	}
	return events
}
