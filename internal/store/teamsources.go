package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/dmarcd/dmarcd"
)

// SentSize returns how many records Sent has to read at most: it takes each message of
// the days that are not on a sheet for a record.
func (t *Team) SentSize(ctx context.Context, name string, days dmarcd.Days) (records int64, err error) {
	from, to := bounds(days)
	err = t.store.queryRow(ctx, `SELECT CAST(COALESCE(SUM(
			CASE WHEN team_days.on_sheet = team_days.changes AND day_sheets.records > 0 THEN day_sheets.records
				WHEN team_days.compliant + team_days.non_compliant > 1000000000 THEN 1000000000
				ELSE team_days.compliant + team_days.non_compliant END), 0) AS BIGINT)
		FROM team_days LEFT JOIN day_sheets ON `+onSheet+`
		WHERE team_days.team_id = $1 AND team_days.day BETWEEN $2 AND $3`, []any{t.id, from, to}, &records)
	if err != nil || name == "" {
		return records, err
	}
	sum, err := t.DomainSummary(ctx, plain(name), days)
	if errors.Is(err, dmarcd.ErrNotFound) {
		return 0, nil
	}
	return min(records, sum.Total()), err
}

// Sent returns the records that count in the given days: of one domain, or of all
// present domains of the team where name is "". An unknown domain has none. More
// records than the limits allow, or more than 300,000 shares, are dmarcd.ErrLimit. What it returns
// may be shared with others, and must not be changed.
func (t *Team) Sent(ctx context.Context, name string, days dmarcd.Days, limits dmarcd.SentLimits) (*dmarcd.SentMail, error) {
	from, to := bounds(days)
	of, err := t.mailDays(ctx, from, to)
	if err != nil {
		return nil, err
	}
	key := recentKey{t.id, name, from, to, of.state}
	if known := t.store.recent.get(key); known != nil && known.Records() <= limits.Records {
		return known, nil
	}
	read := func(ctx context.Context, mail *mailReader) error {
		switch {
		case name != "":
			return t.readDomain(ctx, mail, name, from, to, of)
		case of.onSheets > limits.Records:
			return dmarcd.ErrLimit // before they are read
		}
		return t.readDays(ctx, mail, of, "", allDomains)
	}
	mail := newMailReader(limits)
	err = read(ctx, mail)
	if errors.Is(err, errManyKeys) {
		mail, err = t.readMerged(ctx, limits, read)
	}
	if err != nil {
		return nil, err
	}
	sent := mail.SentMail // without what it was read with
	t.store.recent.put(key, &sent)
	return &sent, nil
}

const (
	// fewLoose records are read one by one without thinking about it, and manyLoose
	// never if there are sheets.
	fewLoose  = 1000
	manyLoose = 300_000
	// sheetGain is how many records on sheets, most of them of other domains, are
	// passed over in the time that it takes to read one without.
	sheetGain = 200
)

// readDomain reads the records of a domain, from sheets where that is faster.
func (t *Team) readDomain(ctx context.Context, mail *mailReader, name string, from, to dmarcd.Day, of mailDays) error {
	loose, err := t.looseShares(ctx, name, from, to)
	if err != nil {
		return err
	}
	if loose.records <= fewLoose || loose.records <= manyLoose && loose.records*sheetGain < of.onSheets {
		return t.readLoose(ctx, mail, loose)
	}
	domain, err := t.Domain(ctx, name)
	if errors.Is(err, dmarcd.ErrNotFound) {
		return nil // it was deleted just now
	}
	if err != nil {
		return err
	}
	return t.readDays(ctx, mail, of, domain.Name, domain.ID)
}

// placesPerQuery is how many records one query looks for.
const placesPerQuery = 30

// SentRecords returns the records at those places, in their order, without those
// that are not there any more.
func (t *Team) SentRecords(ctx context.Context, places []dmarcd.SentPlace) ([]dmarcd.SentRecord, error) {
	found := make(map[dmarcd.SentPlace]dmarcd.SentRecord, len(places))
	for rest := places; len(rest) > 0; rest = rest[min(len(rest), placesPerQuery):] {
		args := []any{t.id}
		var wanted []string
		for _, place := range rest[:min(len(rest), placesPerQuery)] {
			wanted = append(wanted, fmt.Sprintf("(CAST($%d AS BIGINT), CAST($%d AS INTEGER), CAST($%d AS INTEGER))",
				len(args)+1, len(args)+2, len(args)+3)) // PostgreSQL takes them for text by themselves
			args = append(args, place.Report, place.Share, place.N)
		}
		records, err := collectRead(ctx, t.store, `SELECT shares.report_id, reports.organization, shares.day,
				records.share, records.n, domains.name, records.source, records.count,
				records.disposition, records.dkim, records.spf, shares.header_from, records.details
			FROM records
				JOIN shares ON shares.team_id = records.team_id AND shares.report_id = records.report_id AND shares.n = records.share
				JOIN domains ON domains.id = shares.domain_id AND domains.team_id = shares.team_id AND domains.deleted_at = 0
				JOIN reports ON reports.team_id = shares.team_id AND reports.id = shares.report_id AND reports.state = 'counted'
			WHERE records.team_id = $1 AND (records.report_id, records.share, records.n) IN (VALUES `+strings.Join(wanted, ", ")+`)`,
			args, scanSentRecord)
		if err != nil {
			return nil, err
		}
		for _, r := range records {
			found[r.Place] = r
		}
	}
	var records []dmarcd.SentRecord
	for _, place := range places {
		if r, ok := found[place]; ok {
			records = append(records, r)
		}
	}
	return records, nil
}

func scanSentRecord(scan scanner) (dmarcd.SentRecord, error) {
	var sent dmarcd.SentRecord
	record, err := scanRecord(func(dest ...any) error {
		return scan(append([]any{&sent.Place.Report, &sent.Organization, &sent.Day}, dest...)...)
	})
	sent.Place.Share, sent.Place.N, sent.Record = record.Cursor.Share, record.Cursor.N, record.Record
	return sent, err
}
