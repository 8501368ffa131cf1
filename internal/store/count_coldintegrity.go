package store

import (
	"context"
	"errors"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/cold"
	"github.com/dmarcd/dmarcd/internal/store/db"
)

// coldSums are the sums of cold records by share.
type coldSums map[shareRef]coldSum

type coldSum struct {
	records, withMessages int64
	messages              float64 // as in integrityChecks
}

func (s coldSums) add(r *cold.Record) {
	key := shareRef{dmarcd.ReportID(r.Report), int(r.Share)}
	sum := s[key]
	sum.records++
	sum.messages += float64(r.Count)
	if r.Count > 0 {
		sum.withMessages++
	}
	s[key] = sum
}

// compareCold compares the records of a group with the shares of its reports, and returns the
// problem or "".
func (t *Team) compareCold(ctx context.Context, read tx, id int64, sums coldSums) (problem string, err error) {
	err = read.Query(ctx, `SELECT shares.report_id, shares.n, shares.records, shares.compliant, shares.non_compliant FROM reports
			JOIN shares ON shares.team_id = $1 AND shares.report_id = reports.id
		WHERE`+ofGroup+` AND reports.emptied_at = 0 AND shares.kind = 'aggregate' AND `+visibleShare, []any{t.id, id},
		func(scan db.Scanner) error {
			var share shareRef
			var records, compliant, nonCompliant int64
			err := scan(&share.report, &share.n, &records, &compliant, &nonCompliant)
			sum := sums[share]
			switch {
			case sum.records != records:
				problem = "a report has records missing"
			// A saturated sum is a lower bound.
			case compliant < dmarcd.MaxCount && nonCompliant < dmarcd.MaxCount && sum.messages != float64(compliant+nonCompliant):
				problem = "a report's counts are not the sum of its records"
			}
			return err
		})
	return problem, err
}

// coldIntegrity verifies all blocks, and compares their records with the shares of the reports
// and the rollups of the days. It reads one group at a time.
func (s *Store) coldIntegrity(ctx context.Context) (problem string, err error) {
	teams, err := s.teamIDs(ctx, `SELECT DISTINCT team_id FROM cold_blocks ORDER BY team_id`)
	if err != nil {
		return "", err
	}
	for _, id := range teams {
		var problem string
		err := s.own().recordSnapshot(ctx, func(read tx) error {
			problem, err = s.Team(id).coldIntegrity(ctx, read)
			return err
		})
		switch {
		case errors.Is(err, cold.ErrDamaged):
			return err.Error(), nil
		case err != nil:
			return "", err
		case problem != "":
			return problem + " in " + id.String(), nil
		}
	}
	return "", nil
}

func (t *Team) coldIntegrity(ctx context.Context, read tx) (problem string, err error) {
	blocks, err := db.Collect(ctx, read, `SELECT id, n, bytes, checksum, records FROM cold_blocks WHERE team_id = $1 ORDER BY id, n`, []any{t.id},
		func(scan db.Scanner) (b countedBlock, err error) {
			b.team = t.id
			return b, scan(&b.id, &b.n, &b.bytes, &b.checksum, &b.records)
		})
	if err != nil {
		return "", err
	}
	frozen := make(map[dmarcd.Day]int64)
	sums := make(coldSums)
	for i, b := range blocks {
		records, err := t.loadColdBlock(ctx, read, b.coldBlock, func(int64, int32) bool { return true })
		if err != nil {
			return "", err
		}
		if int64(len(records)) != b.records {
			return "a block has not its number of records", nil
		}
		for i := range records {
			sums.add(&records[i])
		}
		if i+1 < len(blocks) && blocks[i+1].id == b.id {
			continue
		}
		if problem, err := t.compareCold(ctx, read, b.id, sums); err != nil || problem != "" {
			return problem, err
		}
		if err := t.addRollupRecords(ctx, read, b.id, sums, frozen); err != nil {
			return "", err
		}
		clear(sums)
	}
	return t.compareRollups(ctx, read, frozen)
}

type countedBlock struct {
	coldBlock

	records int64
}

// addRollupRecords adds, by day, the number of a group's records that belong in rollups.
func (t *Team) addRollupRecords(ctx context.Context, read tx, id int64, sums coldSums, to map[dmarcd.Day]int64) error {
	return read.Query(ctx, `SELECT shares.report_id, shares.n, shares.day FROM reports
			JOIN shares ON shares.team_id = $1 AND shares.report_id = reports.id
			JOIN domains ON domains.team_id = $1 AND domains.id = shares.domain_id AND domains.deleted_at = 0
		WHERE`+ofGroup+` AND reports.state = 'counted' AND shares.kind = 'aggregate'`,
		[]any{t.id, id}, func(scan db.Scanner) error {
			var share shareRef
			var day dmarcd.Day
			err := scan(&share.report, &share.n, &day)
			to[day] += sums[share].withMessages
			return err
		})
}

// compareRollups compares the number of records in the rollups of days with the rows plus the
// frozen (cold) records.
func (t *Team) compareRollups(ctx context.Context, read tx, frozen map[dmarcd.Day]int64) (problem string, err error) {
	err = read.Query(ctx, `SELECT team_days.day, day_rollups.records, (`+rowsOfDay+`) FROM team_days
			JOIN (SELECT team_id, day, build, SUM(records) AS records FROM day_rollups WHERE day_rollups.team_id = $1 GROUP BY team_id, day, build) AS day_rollups ON `+currentRollup+`
		WHERE team_days.team_id = $1 AND team_days.in_rollup = team_days.changes`, []any{t.id}, func(scan db.Scanner) error {
		var day dmarcd.Day
		var records float64 // PostgreSQL returns a sum as a decimal
		var rows int64
		err := scan(&day, &records, &rows)
		if int64(records) != rows+frozen[day] {
			problem = differentRollup
		}
		return err
	})
	return problem, err
}
