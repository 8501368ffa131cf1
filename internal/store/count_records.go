package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/rollup"
	"github.com/dmarcd/dmarcd/internal/store/db"
)

// SentState returns the state of the records that Scan reads; unknown for a view by tag. Their
// number is an upper bound: each message of a day without a rollup counts as a record.
func (t *Team) SentState(ctx context.Context, name string, days dmarcd.Days) (state dmarcd.SentState, err error) {
	from, to := bounds(days)
	err = t.store.QueryRow(ctx, `SELECT CAST(COALESCE(SUM(
			CASE WHEN team_days.compliant + team_days.non_compliant > 1000000000 THEN 1000000000
				ELSE team_days.compliant + team_days.non_compliant END), 0) AS BIGINT), COUNT(*), CAST(COALESCE(SUM(team_days.changes), 0) AS BIGINT)
		FROM team_days WHERE team_days.team_id = $1 AND team_days.day BETWEEN $2 AND $3`, []any{t.id, from, to},
		&state.Records, &state.Days, &state.Changes)
	if err != nil || name == "" && t.tag == "" {
		return state, err
	}
	if name == "" {
		tagged, err := t.taggedMessages(ctx, days)
		return dmarcd.SentState{Records: min(state.Records, tagged)}, err
	}
	sum, err := t.DomainSummary(ctx, db.Plain(name), days)
	if errors.Is(err, dmarcd.ErrNotFound) {
		return dmarcd.SentState{}, nil
	}
	state.Records = min(state.Records, sum.Total())
	return state, err
}

// taggedMessages returns the number of messages of the domains with the tag of the view.
func (t *Team) taggedMessages(ctx context.Context, days dmarcd.Days) (sum int64, err error) {
	from, to := bounds(days)
	tagged, args := t.tagged([]any{t.id, from, to})
	err = t.store.longQueryRow(ctx, `SELECT `+sumOf(`domain_days.compliant + domain_days.non_compliant`)+`
		FROM domains JOIN domain_days ON domain_days.team_id = $1 AND domain_days.domain_id = domains.id
		WHERE domains.team_id = $1 AND domains.deleted_at = 0 AND domain_days.day BETWEEN $2 AND $3`+tagged, args, &sum)
	return sum, err
}

// Scan calls visit with the counted records of the given days, in no particular order: those of one
// domain, or of all domains of the view if name is "". An unknown domain has none. It reads a
// consistent snapshot. An error of visit ends the scan. turn waits for a slot of long work for the
// records that are not in a rollup; Scan ends it before each visit.
func (t *Team) Scan(ctx context.Context, name string, days dmarcd.Days, turn func() (end func()), visit func(rollup.Part) error) error {
	release, err := t.store.scans.Acquire(ctx, t.id, 1)
	if err != nil {
		return t.store.db.Kind(err)
	}
	defer release()
	from, to := bounds(days)
	return t.store.recordSnapshot(ctx, func(read tx) error {
		scan := &mailScan{team: t, read: read, from: from, to: to, domain: name, turn: turn, visit: visit}
		return scan.run(ctx)
	})
}

type mailScan struct {
	team     *Team
	read     tx
	from, to dmarcd.Day
	// domain is the name of one domain, "" for all domains of the view; domains are its
	// ids, nil for all domains of the team.
	domain  string
	domains map[dmarcd.DomainID]bool
	turn    func() (end func())
	visit   func(rollup.Part) error
}

func (s *mailScan) run(ctx context.Context) error {
	days, inRollups, err := s.days(ctx)
	if err != nil {
		return err
	}
	if s.domain != "" || s.team.tag != "" {
		loose, err := s.isLoose(ctx, inRollups)
		if err != nil {
			return err
		}
		if loose {
			return s.scanLoose(ctx, looseShares{from: s.from, to: s.to})
		}
		if s.domains, err = s.ids(ctx); err != nil {
			return err
		}
	}
	if err := s.scanRollups(ctx); err != nil {
		return err
	}
	// Read what the rollups lack: newer reports, and the days without a rollup, with one
	// query per gap.
	for i := 0; i < len(days); i++ {
		missing := looseShares{from: days[i].day, to: days[i].day, after: days[i].newest}
		switch {
		case days[i].isCurrent:
			continue
		case !days[i].hasRollup:
			for missing.after = 0; i+1 < len(days) && !days[i+1].hasRollup; i++ {
				missing.to = days[i+1].day
			}
		}
		if err := s.scanLoose(ctx, missing); err != nil {
			return err
		}
	}
	return nil
}

// mailDay is a day with mail.
type mailDay struct {
	day dmarcd.Day
	// hasRollup is set if there is a rollup to read, isCurrent if it lacks nothing.
	hasRollup, isCurrent bool
	newest               dmarcd.ReportID
}

// days returns the days with mail, and the number of their records in rollups.
func (s *mailScan) days(ctx context.Context) (days []mailDay, inRollups int64, err error) {
	days, err = db.Collect(ctx, s.read, `SELECT team_days.day, team_days.in_rollup, team_days.changes, team_days.newest_report,
			(SELECT COALESCE(SUM(day_rollups.records), 0) FROM day_rollups WHERE day_rollups.team_id = $1 AND `+currentRollup+`)
		FROM team_days
		WHERE team_days.team_id = $1 AND team_days.day BETWEEN $2 AND $3 AND (team_days.compliant > 0 OR team_days.non_compliant > 0)
		ORDER BY team_days.day`, []any{s.team.id, s.from, s.to}, func(scan db.Scanner) (d mailDay, err error) {
		var built, changes, records int64
		err = scan(&d.day, &built, &changes, &d.newest, &records)
		d.hasRollup, d.isCurrent = records > 0, records > 0 && built == changes
		inRollups += records
		return d, err
	})
	return days, inRollups, err
}

const (
	// Up to fewLoose records of a domain are always read one by one, more than manyLoose
	// never if there are rollups.
	fewLoose  = 1000
	manyLoose = 300_000
	// rollupGain is the number of records in rollups, most of them of other domains, that
	// are skipped in the time of reading one row.
	rollupGain = 200
	// coldCost is the number of rows that are read in the time of decoding a block of cold records;
	// each share may be in a different block.
	coldCost = "500"
)

// isLoose reports whether the records of the domains are read faster without rollups. An
// unknown domain has no records.
func (s *mailScan) isLoose(ctx context.Context, inRollups int64) (bool, error) {
	condition, args := looseShares{from: s.from, to: s.to, domain: s.domain, tag: s.tag()}.condition(s.team.id)
	var records int64
	err := s.read.QueryRow(ctx, `SELECT CAST(COALESCE(SUM(shares.records + CASE WHEN reports.cold > 0 THEN `+coldCost+` ELSE 0 END), 0) AS BIGINT)`+condition, args, &records)
	return records <= fewLoose || records <= manyLoose && records*rollupGain < inRollups, err
}

// tag is the tag of the domains to read, "" for a named domain.
func (s *mailScan) tag() string {
	if s.domain != "" {
		return ""
	}
	return s.team.tag
}

// ids returns the ids of the domains to read.
func (s *mailScan) ids(ctx context.Context) (map[dmarcd.DomainID]bool, error) {
	condition, args := hasTag(s.tag(), []any{s.team.id})
	if s.domain != "" {
		args = append(args, db.Plain(s.domain))
		condition = ` AND domains.name = $2`
	}
	return db.CollectMap[dmarcd.DomainID, bool](ctx, s.read, `SELECT domains.id, TRUE FROM domains WHERE domains.team_id = $1 AND domains.deleted_at = 0`+condition, args...)
}

func (s *mailScan) scanRollups(ctx context.Context) error {
	return s.read.Query(ctx, `SELECT day_rollups.block FROM team_days JOIN day_rollups ON `+currentRollup+`
		WHERE team_days.team_id = $1 AND team_days.day BETWEEN $2 AND $3 AND (team_days.compliant > 0 OR team_days.non_compliant > 0)
		ORDER BY day_rollups.day, day_rollups.build, day_rollups.n`, // the same order in all replicas
		[]any{s.team.id, s.from, s.to}, func(scan db.Scanner) error {
			var block sql.RawBytes
			if err := scan(&block); err != nil {
				return err
			}
			return s.visit(rollup.Part{Block: block, Domains: s.domains})
		})
}

func (s *mailScan) scanLoose(ctx context.Context, of looseShares) error {
	of.domain, of.tag = s.domain, s.tag()
	_, err := s.team.encodeLoose(ctx, s.read, of, s.turn, func(block []byte, _ int) error { return s.visit(rollup.Part{Block: block}) })
	return err
}

// positionsPerQuery is the number of records per query.
const positionsPerQuery = 30

// SentRecords returns the records at these positions, in order, without removed ones.
func (t *Team) SentRecords(ctx context.Context, positions []dmarcd.SentPosition) ([]dmarcd.SentRecord, error) {
	found := make(map[dmarcd.SentPosition]dmarcd.SentRecord, len(positions))
	for some := range slices.Chunk(positions, positionsPerQuery) {
		args := []any{t.id}
		var wanted []string
		for _, position := range some {
			wanted = append(wanted, fmt.Sprintf("(CAST($%d AS BIGINT), CAST($%d AS INTEGER), CAST($%d AS INTEGER))",
				len(args)+1, len(args)+2, len(args)+3)) // PostgreSQL would treat them as text
			args = append(args, position.Report, position.Share, position.N)
		}
		records, err := db.Collect(ctx, t.store, `SELECT shares.report_id, reports.organization, shares.day,
				records.share, records.n, domains.name, records.source, records.count,
				records.disposition, records.dkim, records.spf, shares.header_from, records.details
			FROM records
				JOIN shares ON shares.team_id = records.team_id AND shares.report_id = records.report_id AND shares.n = records.share
				JOIN domains ON domains.id = shares.domain_id AND domains.team_id = shares.team_id AND domains.deleted_at = 0
				JOIN reports ON reports.team_id = shares.team_id AND reports.id = shares.report_id AND reports.state = 'counted' AND reports.emptied_at <= 0 AND reports.cold = 0
			WHERE records.team_id = $1 AND (records.report_id, records.share, records.n) IN (VALUES `+strings.Join(wanted, ", ")+`)`,
			args, scanSentRecord)
		if err != nil {
			return nil, err
		}
		for _, r := range records {
			found[r.Position] = r
		}
		if len(records) < len(wanted) {
			if err := t.sentCold(ctx, strings.Join(wanted, ", "), args, found); err != nil {
				return nil, err
			}
		}
	}
	var records []dmarcd.SentRecord
	for _, position := range positions {
		if r, ok := found[position]; ok {
			records = append(records, r)
		}
	}
	return records, nil
}

func scanSentRecord(scan db.Scanner) (dmarcd.SentRecord, error) {
	var sent dmarcd.SentRecord
	record, err := scanRecord(scan.After(&sent.Position.Report, &sent.Organization, &sent.Day))
	sent.Position.Share, sent.Position.N, sent.Record = record.Cursor.Share, record.Cursor.N, record.Record
	return sent, err
}
