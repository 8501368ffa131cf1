package store

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"time"

	"github.com/dmarcd/dmarcd"
)

// allDomains in place of a domain means that any will do.
const allDomains dmarcd.DomainID = 0

// onSheet is the condition that nothing is on the sheet of a day that went since; what
// came since may be missing.
const onSheet = `day_sheets.team_id = team_days.team_id AND day_sheets.day = team_days.day AND team_days.on_sheet >= team_days.broken`

// mailDays are days with mail.
type mailDays struct {
	all []dmarcd.Day
	// growing are those whose sheets miss what came since they were made.
	growing []dmarcd.Day
	// onSheets is how many records there are on sheets.
	onSheets int
	// state is another whenever records came or went.
	state string
}

func (t *Team) mailDays(ctx context.Context, from, to dmarcd.Day) (mailDays, error) {
	var days mailDays
	var state []byte
	_, err := collectRead(ctx, t.store, `SELECT team_days.day, COALESCE(day_sheets.records, 0), team_days.on_sheet, team_days.changes
		FROM team_days LEFT JOIN day_sheets ON `+onSheet+`
		WHERE team_days.team_id = $1 AND team_days.day BETWEEN $2 AND $3 AND (team_days.compliant > 0 OR team_days.non_compliant > 0)
		ORDER BY team_days.day`, []any{t.id, from, to}, func(scan scanner) (none struct{}, err error) {
		var day dmarcd.Day
		var records int
		var sheet, changes int64
		err = scan(&day, &records, &sheet, &changes)
		days.all = append(days.all, day)
		if days.onSheets += records; sheet < changes && records > 0 {
			days.growing = append(days.growing, day)
		}
		state = binary.AppendVarint(binary.AppendVarint(state, int64(day)), changes)
		return none, err
	})
	days.state = string(state)
	return days, err
}

// readDays reads the records of some days, of all domains of the team or of the one with
// that name and id. What is not on a sheet is read one record after the other.
func (t *Team) readDays(ctx context.Context, mail *mailReader, days mailDays, name string, id dmarcd.DomainID) error {
	if len(days.all) == 0 {
		return nil
	}
	// What came since a sheet was made is found before the sheet is read: had
	// something gone meanwhile, the sheet would not be used.
	since := make(map[dmarcd.Day]*looseShares)
	for _, day := range days.growing {
		loose, err := t.looseShares(ctx, name, day, day)
		if err != nil {
			return err
		}
		since[day] = &loose
	}
	read, err := t.readSheets(ctx, mail, days.all[0], days.all[len(days.all)-1], id, since)
	if err != nil {
		return err
	}
	for _, day := range days.growing {
		if !read[day] {
			continue
		}
		if err := t.readLoose(ctx, mail, *since[day]); err != nil {
			return err
		}
	}
	return t.readOther(ctx, mail, name, days.all, read)
}

// readSheets reads all sheets that can be used, drops what is on them from what came
// since, and returns their days.
func (t *Team) readSheets(ctx context.Context, mail *mailReader, from, to dmarcd.Day, id dmarcd.DomainID, since map[dmarcd.Day]*looseShares) (map[dmarcd.Day]bool, error) {
	read := make(map[dmarcd.Day]bool)
	_, err := collectRead(ctx, t.store, `SELECT day_sheets.day, day_sheets.sheet FROM day_sheets JOIN team_days ON `+onSheet+`
		WHERE day_sheets.team_id = $1 AND day_sheets.day BETWEEN $2 AND $3`, []any{t.id, from, to},
		func(scan scanner) (none struct{}, err error) {
			var day dmarcd.Day
			var sheet sql.RawBytes
			if err := scan(&day, &sheet); err != nil {
				return none, err
			}
			before := len(mail.Shares)
			if err := mail.readSheet(day, sheet, id); err != nil {
				return none, err
			}
			read[day] = true
			if loose := since[day]; loose != nil {
				for i := range mail.Shares[before:] {
					loose.drop(&mail.Shares[before+i])
				}
			}
			return none, nil
		})
	return read, err
}

// readOther reads the records of the days that are not read yet, in as few steps as
// there are gaps between those that are.
func (t *Team) readOther(ctx context.Context, mail *mailReader, name string, days []dmarcd.Day, read map[dmarcd.Day]bool) error {
	for i := 0; i < len(days); i++ {
		if read[days[i]] {
			continue
		}
		first := i
		for i+1 < len(days) && !read[days[i+1]] {
			i++
		}
		loose, err := t.looseShares(ctx, name, days[first], days[i])
		if err != nil {
			return err
		}
		if err := t.readLoose(ctx, mail, loose); err != nil {
			return err
		}
	}
	return nil
}

// sheetsPerStep is how many rollups of one team a step rebuilds.
const sheetsPerStep = 20

// sheetAge is how long a sheet may miss a few changes: a day of which reports come in
// all the time is not put on a sheet each time.
const sheetAge = 10 * time.Minute

// staleSheet selects the days whose rollup is to be rebuilt; $1 is the latest time at
// which a rollup that misses few changes was built.
const staleSheet = `(compliant + non_compliant >= 2000 OR on_sheet >= 0) AND on_sheet < changes
	AND (on_sheet < broken OR changes - on_sheet >= 10 + on_sheet / 10 OR sheet_at <= $1)`

// MakeSheets rebuilds rollups of days whose records changed, some for each team, and
// reports whether there may be more. A day whose records change meanwhile is left for the
// next time; what fails for one team is done for the others all the same, see eachTeam.
func (s *Store) MakeSheets(ctx context.Context) (more bool, err error) {
	built := unix(s.now().Add(-sheetAge))
	teams, err := collectRead(ctx, s, `SELECT DISTINCT team_id FROM team_days WHERE `+staleSheet, []any{built}, scanTeamID)
	if err != nil {
		return false, err
	}
	return s.eachTeam(ctx, "day rollups", teams, func(ctx context.Context, t *Team) (bool, error) {
		return t.makeSheets(ctx, built)
	})
}

func (t *Team) makeSheets(ctx context.Context, built int64) (more bool, err error) {
	type change struct {
		day     dmarcd.Day
		changes int64
	}
	changed, err := collectRead(ctx, t.store, `SELECT day, changes FROM team_days WHERE `+staleSheet+` AND team_id = $2
		ORDER BY day LIMIT $3`, []any{built, t.id, sheetsPerStep}, func(scan scanner) (change, error) {
		var c change
		return c, scan(&c.day, &c.changes)
	})
	if err != nil {
		return false, err
	}
	for _, c := range changed {
		if err := t.makeSheet(ctx, c.day, c.changes); err != nil {
			return false, err
		}
	}
	return len(changed) == sheetsPerStep, nil
}

// What a sheet may hold. The records of a larger day are read one by one: to write its
// sheet, and to read it, would take too much memory.
const (
	maxSheetRecords = 1_000_000
	maxSheetText    = 24 << 20 // bytes of its addresses and details
	// sheetBytes is what making a sheet takes for each record, at most.
	sheetBytes = 128
)

// makeSheet puts the records of a day on a sheet that tells so many changes.
func (t *Team) makeSheet(ctx context.Context, day dmarcd.Day, changes int64) error {
	loose, err := t.looseShares(ctx, "", day, day)
	if err != nil && !errors.Is(err, dmarcd.ErrLimit) {
		return err
	}
	if memory := t.store.options.Memory; memory != nil && err == nil {
		release, err := memory.Acquire(ctx, t.id, int64(min(loose.records, maxSheetRecords))*sheetBytes)
		if errors.Is(err, dmarcd.ErrTemporary) {
			return nil // the next time
		}
		if err != nil {
			return err
		}
		defer release()
	}
	mail := newMailReader(dmarcd.SentLimits{Records: maxSheetRecords, Keys: maxSheetRecords})
	mail.raw, mail.maxText = true, maxSheetText
	if err == nil {
		err = t.readLoose(ctx, mail, loose)
	}
	if errors.Is(err, dmarcd.ErrLimit) {
		mail, err = newMailReader(dmarcd.SentLimits{}), nil // without a sheet
	}
	if err != nil {
		return err
	}
	records := mail.Records()
	return t.tx(ctx, func(tx tx) error {
		// Whoever changes the records of the day waits for this row, or has
		// changed it.
		current, err := tx.exec(ctx, `UPDATE team_days SET on_sheet = $1, sheet_at = $2 WHERE team_id = $3 AND day = $4 AND changes = $1`,
			changes, unix(t.store.now()), t.id, day)
		if err != nil || current == 0 {
			return err
		}
		if records == 0 {
			_, err = tx.exec(ctx, `DELETE FROM day_sheets WHERE team_id = $1 AND day = $2`, t.id, day)
			return err
		}
		_, err = tx.exec(ctx, `INSERT INTO day_sheets (team_id, day, records, sheet) VALUES ($1, $2, $3, $4)
			ON CONFLICT (team_id, day) DO UPDATE SET records = excluded.records, sheet = excluded.sheet`, t.id, day, records, newSheet(mail))
		return err
	})
}
