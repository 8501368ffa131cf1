package store

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd"
)

// CheckEntry is a look at everything, as it is kept. The store does not read the
// two texts.
type CheckEntry struct {
	// Document is what was seen, and Changes what is different from the
	// document of the entry Since; "" if nothing is.
	Document, Changes string
	// Since is the entry that Changes is against; 0 if there was none.
	Since dmarcd.CheckID
	// Errors are the findings of level error: id and words.
	Errors []dmarcd.Finding
	// Unseen holds the parts (what stands before the dot in a finding's id)
	// that could not be looked at: their findings stay as they were.
	Unseen []string
}

const checkColumns = `id, first_at, last_at, grade, document, changes`

func scanCheck(scan scanner) (dmarcd.KeptCheck, error) {
	var c dmarcd.KeptCheck
	var firstAt, lastAt int64
	err := scan(&c.ID, &firstAt, &lastAt, &c.Grade, &c.Document, &c.Changes)
	c.FirstAt, c.LastAt = fromUnix(firstAt), fromUnix(lastAt)
	return c, err
}

// SaveFullCheck is SaveCheck for a look at everything: it also keeps the entry
// in the domain's history, as a row of its own or, where nothing changed, as a
// later time of the last one, and writes events of errors that appeared or were
// mended. An inconclusive look is no entry. If the history has moved on since
// entry.Since it returns ErrConflict.
//
// What such a look changes is believed at once: it is a day after the last one,
// longer than caches hold an answer, or follows from a change that is believed.
func (t *Team) SaveFullCheck(ctx context.Context, name string, check dmarcd.Check, plan dmarcd.Plan, entry CheckEntry) (dmarcd.Domain, error) {
	return t.saveCheck(ctx, name, check, plan, &entry)
}

func (t *Team) keepEntry(ctx context.Context, tx tx, row *checkedDomain, check dmarcd.Check, plan dmarcd.Plan, entry CheckEntry) error {
	row.fullAt = row.CheckedAt
	row.nextFullAt = plan.NextFull
	if check.Grade != "" {
		row.Grade = check.Grade
	}
	last, errs, err := t.lastEntry(ctx, tx, row.ID)
	if err != nil {
		return err
	}
	if last != entry.Since {
		return dmarcd.ErrConflict
	}
	if last != 0 && entry.Changes == "" {
		_, err := tx.exec(ctx, `UPDATE checks SET last_at = $1 WHERE team_id = $2 AND id = $3`, unix(row.CheckedAt), t.id, last)
		return err
	}
	now := errorsNow(errs, entry)
	if last != 0 {
		if err := t.addEvents(ctx, tx, row.ID, row.CheckedAt, findingEvents(errs, now)); err != nil {
			return err
		}
	}
	_, err = tx.exec(ctx, `INSERT INTO checks (id, team_id, domain_id, first_at, last_at, grade, document, changes, errors)
		VALUES ($1, $2, $3, $4, $4, $5, $6, $7, $8)`,
		newID(), t.id, row.ID, unix(row.CheckedAt), check.Grade, entry.Document, entry.Changes, strings.Join(now, "\n"))
	return err
}

// lastEntry returns the id of the newest entry and its errors, one "id: words"
// each; 0 where there is none.
func (t *Team) lastEntry(ctx context.Context, tx tx, domain dmarcd.DomainID) (id dmarcd.CheckID, errs []string, err error) {
	var text string
	err = tx.queryRow(ctx, `SELECT id, errors FROM checks WHERE team_id = $1 AND domain_id = $2
		ORDER BY first_at DESC, id DESC LIMIT 1`, []any{t.id, domain}, &id, &text)
	if errors.Is(err, dmarcd.ErrNotFound) {
		return 0, nil, nil
	}
	if text != "" {
		errs = strings.Split(text, "\n")
	}
	return id, errs, err
}

// errorsNow returns the errors of an entry, and of the one before for the parts
// that could not be looked at.
func errorsNow(before []string, entry CheckEntry) []string {
	var now []string
	for _, f := range entry.Errors {
		now = append(now, f.ID+": "+strings.ReplaceAll(f.What, "\n", " "))
	}
	for _, line := range before {
		part, _, _ := strings.Cut(line, ".")
		if slices.Contains(entry.Unseen, part) {
			now = append(now, line)
		}
	}
	return now
}

// findingEvents compares errors by their ids: the words may change with a number
// while the error stays.
func findingEvents(before, after []string) []dmarcd.Event {
	id := func(line string) string {
		id, _, _ := strings.Cut(line, ": ")
		return id
	}
	lacks := func(lines []string, line string) bool {
		return !slices.ContainsFunc(lines, func(other string) bool { return id(other) == id(line) })
	}
	var events []dmarcd.Event
	for _, line := range after {
		if lacks(before, line) {
			events = append(events, dmarcd.Event{Kind: dmarcd.FindingAppeared, After: line})
		}
	}
	for _, line := range before {
		if lacks(after, line) {
			events = append(events, dmarcd.Event{Kind: dmarcd.FindingMended, Before: line})
		}
	}
	return events
}

// LatestCheck returns the newest entry of a domain's history; ErrNotFound where
// there is no such domain or no entry.
func (t *Team) LatestCheck(ctx context.Context, name string) (dmarcd.KeptCheck, error) {
	checks, err := t.Checks(ctx, name, Cursor{}, 1)
	if err == nil && len(checks) == 0 {
		err = dmarcd.ErrNotFound
	}
	if err != nil {
		return dmarcd.KeptCheck{}, err
	}
	return checks[0], nil
}

// Checks returns up to limit entries of a domain's history, newest first, older
// than the cursor; none where there is no such domain.
func (t *Team) Checks(ctx context.Context, name string, before Cursor, limit int) ([]dmarcd.KeptCheck, error) {
	at, id := before.bounds()
	return collectRead(ctx, t.store, `SELECT `+checkColumns+` FROM checks
		WHERE team_id = $1 AND (first_at < $2 OR first_at = $2 AND id < $3)
			AND domain_id = (SELECT id FROM domains WHERE team_id = $1 AND name = $4 AND deleted_at = 0)
		ORDER BY first_at DESC, id DESC LIMIT $5`, []any{t.id, at, id, name, limit}, scanCheck)
}
