package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
)

// sentShares are the shares whose records count in some days: $1 is the team, $2 and
// $3 are the days.
const sentShares = ` FROM domains
		JOIN shares ON shares.team_id = domains.team_id AND shares.domain_id = domains.id
		JOIN reports ON reports.id = shares.report_id AND reports.emptied_at <= 0
	WHERE domains.team_id = $1 AND domains.deleted_at = 0
		AND shares.day BETWEEN $2 AND $3 AND shares.replaced = FALSE AND shares.kind = 'aggregate'`

// EachSent calls visit for every record that counts in the given days: of one domain,
// or of all present domains of the team where name is "". An unknown domain has none.
// More records than limit are ErrLimit. An error of visit ends it and is returned.
func (t *Team) EachSent(ctx context.Context, name string, days dmarcd.Days, limit int, visit func(dmarcd.Sent) error) error {
	from, to := bounds(days)
	shares, err := t.sentShares(ctx, name, []any{t.id, from, to, limit + 1})
	if err != nil || len(shares) == 0 {
		return err
	}
	if len(shares) > limit || recordsOf(shares) > limit {
		return dmarcd.ErrLimit
	}
	narrowed, args := narrow(name, []any{t.id, from, to, fieldEnd, recordEnd})
	// All records of a share come as one text: to take a row out of the engine costs
	// several times what it costs to read it there. None of the fields has a control
	// character.
	t.store.queries.Add(1)
	rows, err := t.store.read.QueryContext(ctx, `SELECT records.report_id, records.share, string_agg(
			records.n || CAST($4 AS TEXT) || records.count || CAST($4 AS TEXT)
				|| (CASE WHEN records.dkim = 'pass' THEN 1 ELSE 0 END + CASE WHEN records.spf = 'pass' THEN 2 ELSE 0 END
					+ CASE records.disposition WHEN 'quarantine' THEN 4 WHEN 'reject' THEN 8 ELSE 0 END)
				|| CAST($4 AS TEXT) || records.source || CAST($4 AS TEXT) || records.details, CAST($5 AS TEXT))
		FROM records JOIN (SELECT shares.report_id, shares.n`+sentShares+narrowed+`) AS sent
			ON records.report_id = sent.report_id AND records.share = sent.n
		GROUP BY records.report_id, records.share`, args...)
	if err != nil {
		return t.store.kind(err)
	}
	defer func() { _ = rows.Close() }() // rows.Err tells
	known := make(identities)
	for rows.Next() {
		var place dmarcd.SentPlace
		var text string
		if err := rows.Scan(&place.Report, &place.Share, &text); err != nil {
			return fmt.Errorf("read records: %w", t.store.kind(err))
		}
		share := shares[place]
		if share == nil {
			continue // it came in between the two queries
		}
		for record := range strings.SplitSeq(text, recordEnd) {
			sent, err := known.sent(record)
			if err != nil {
				return err
			}
			sent.Share = share
			if err := visit(sent); err != nil {
				return err
			}
		}
	}
	return t.store.kind(rows.Err())
}

// What ends the fields of a record, and a record, in the text of a share: characters
// that were made for that.
const (
	fieldEnd  = "\x1f"
	recordEnd = "\x1e"
)

// narrow returns the condition that the domain has that name, "" for any, and the
// arguments with it. What is not asked for is left out: the engines plan a query by its
// text.
func narrow(name string, args []any) (string, []any) {
	if name == "" {
		return "", args
	}
	return fmt.Sprintf(` AND domains.name = $%d`, len(args)+1), append(args, plain(name))
}

// recordsOf returns how many records the shares have.
func recordsOf(shares map[dmarcd.SentPlace]*dmarcd.SentShare) int {
	sum := 0
	for _, s := range shares {
		sum += s.Records
	}
	return sum
}

// dispositions are in the order of their numbers in EachSent.
var dispositions = [...]aggregate.Policy{aggregate.PolicyNone, aggregate.PolicyQuarantine, aggregate.PolicyReject}

// sentShares returns the shares by their places, in which N is 0.
func (t *Team) sentShares(ctx context.Context, name string, args []any) (map[dmarcd.SentPlace]*dmarcd.SentShare, error) {
	narrowed, args := narrow(name, args)
	all, err := collectRead(ctx, t.store, `SELECT shares.report_id, shares.n, reports.organization, shares.day, shares.header_from, shares.records`+
		sentShares+narrowed+` LIMIT $4`, args, func(scan scanner) (*dmarcd.SentShare, error) {
		s := new(dmarcd.SentShare)
		return s, scan(&s.Report, &s.N, &s.Organization, &s.Day, &s.HeaderFrom, &s.Records)
	})
	shares := make(map[dmarcd.SentPlace]*dmarcd.SentShare, len(all))
	for _, s := range all {
		shares[dmarcd.SentPlace{Report: s.Report, Share: s.N}] = s
	}
	return shares, err
}

// identities are those that were read, by the text of the details: the mail of one
// sender has the same every day, and reading the text takes longer than finding it.
type identities map[string]*dmarcd.SentIdentities

// maxIdentities bounds how many are remembered.
const maxIdentities = 20_000

// sent reads a record from its text.
func (known identities) sent(text string) (dmarcd.Sent, error) {
	var sent dmarcd.Sent
	number, rest, _ := strings.Cut(text, fieldEnd)
	count, rest, _ := strings.Cut(rest, fieldEnd)
	outcome, rest, _ := strings.Cut(rest, fieldEnd)
	source, details, _ := strings.Cut(rest, fieldEnd)
	var errs [4]error
	var bits int
	sent.N, errs[0] = strconv.Atoi(number)
	sent.Count, errs[1] = strconv.ParseInt(count, 10, 64)
	bits, errs[2] = strconv.Atoi(outcome)
	sent.Identities, errs[3] = known.read(details)
	if err := errors.Join(errs[:]...); err != nil || bits>>2 >= len(dispositions) {
		return sent, fmt.Errorf("read a record: %w", err)
	}
	sent.Source, sent.DKIM, sent.SPF, sent.Disposition = source, bits&1 != 0, bits&2 != 0, dispositions[bits>>2]
	return sent, nil
}

func (known identities) read(text string) (*dmarcd.SentIdentities, error) {
	if found := known[text]; found != nil {
		return found, nil
	}
	var record aggregate.Record
	if err := parseDetails(text, &record); err != nil {
		return nil, err
	}
	if len(known) == maxIdentities {
		clear(known)
	}
	found := &dmarcd.SentIdentities{EnvelopeFrom: record.EnvelopeFrom, DKIM: record.DKIMResults, SPF: record.SPFResults}
	known[text] = found
	return found, nil
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
				JOIN shares ON shares.report_id = records.report_id AND shares.n = records.share
				JOIN domains ON domains.id = shares.domain_id AND domains.team_id = shares.team_id AND domains.deleted_at = 0
				JOIN reports ON reports.id = shares.report_id
			WHERE shares.team_id = $1 AND (records.report_id, records.share, records.n) IN (VALUES `+strings.Join(wanted, ", ")+`)`,
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
