package store

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/dmarcd/dmarcd"
)

// looseShares are the shares of some days whose records are read one by one.
type looseShares struct {
	// narrowed and args are what the query for the records needs.
	narrowed string
	args     []any
	shares   map[dmarcd.SentPlace]looseShare // in the places the number of a record is 0
	records  int
}

// looseShare is a share before its records are read.
type looseShare struct {
	dmarcd.SentShare
	records int // at least 1: a share is work too
}

// drop takes a share out that was read elsewhere.
func (l *looseShares) drop(share *dmarcd.SentShare) {
	place := dmarcd.SentPlace{Report: share.Report, Share: share.N}
	l.records -= l.shares[place].records
	delete(l.shares, place)
}

// first returns the first report of the shares.
func (l *looseShares) first() dmarcd.ReportID {
	first := dmarcd.ReportID(math.MaxInt64)
	for place := range l.shares {
		first = min(first, place.Report)
	}
	return first
}

// sentShares are the shares whose records count in some days: $1 is the team, $2 and
// $3 are the days.
const sentShares = ` FROM domains
		JOIN shares ON shares.team_id = domains.team_id AND shares.domain_id = domains.id
		JOIN reports ON reports.team_id = shares.team_id AND reports.id = shares.report_id AND reports.emptied_at <= 0 AND reports.state = 'counted'
	WHERE domains.team_id = $1 AND domains.deleted_at = 0
		AND shares.day BETWEEN $2 AND $3 AND shares.kind = 'aggregate'`

// looseShares returns the shares of one domain, or of all where name is "". More than
// maxShares are dmarcd.ErrLimit.
func (t *Team) looseShares(ctx context.Context, name string, from, to dmarcd.Day) (looseShares, error) {
	loose := looseShares{args: []any{t.id, from, to}, shares: make(map[dmarcd.SentPlace]looseShare)}
	if name != "" {
		// What is not asked for is left out: the engines plan a query by its text.
		loose.narrowed, loose.args = ` AND domains.name = $4`, append(loose.args, plain(name))
	}
	query := `SELECT shares.report_id, shares.n, shares.domain_id, reports.organization, shares.day, shares.header_from, shares.records` +
		sentShares + loose.narrowed + fmt.Sprintf(` LIMIT $%d`, len(loose.args)+1)
	_, err := collectRead(ctx, t.store, query, append(slices.Clip(loose.args), maxShares+1), func(scan scanner) (none struct{}, err error) {
		var share looseShare
		err = scan(&share.Report, &share.N, &share.Domain, &share.Organization, &share.Day, &share.HeaderFrom, &share.records)
		share.records = max(share.records, 1)
		loose.records += share.records
		loose.shares[dmarcd.SentPlace{Report: share.Report, Share: share.N}] = share
		return none, err
	})
	if err == nil && len(loose.shares) > maxShares {
		err = dmarcd.ErrLimit
	}
	return loose, err
}

// What ends the fields of a record, and a record, in the text of a share: characters
// that were made for that. None of the fields has a control character.
const (
	fieldEnd  = "\x1f"
	recordEnd = "\x1e"
)

// maxJoined is how many records of a share are read as one text.
const maxJoined = 1000

// readLoose reads the records of shares.
func (t *Team) readLoose(ctx context.Context, mail *mailReader, loose looseShares) error {
	if len(loose.shares) == 0 {
		return nil
	}
	if err := mail.expect(loose.records); err != nil {
		return err
	}
	var large []looseShare
	for _, share := range loose.shares {
		if share.records > maxJoined {
			large = append(large, share)
		}
	}
	if len(large) < len(loose.shares) {
		err := t.store.longRead(ctx, func(read tx) error { return t.readSmall(ctx, read, mail, loose) })
		if err != nil {
			return err
		}
	}
	for _, share := range large {
		if err := t.readLarge(ctx, mail, share); err != nil {
			return err
		}
	}
	return nil
}

// joinedRecords returns the expression for some records as one text: to fetch a row
// from the engine costs several times what it costs to read it there. The placeholders
// are fieldEnd and recordEnd.
func joinedRecords(field, record int) string {
	end := fmt.Sprintf(" || CAST($%d AS TEXT) || ", field)
	return `string_agg(records.n` + end + `records.count` + end + `(CASE WHEN records.dkim = 'pass' THEN 1 ELSE 0 END
			+ CASE WHEN records.spf = 'pass' THEN 2 ELSE 0 END
			+ CASE records.disposition WHEN 'quarantine' THEN 4 WHEN 'reject' THEN 8 ELSE 0 END)` + end + `records.source` + end + `records.details, ` +
		fmt.Sprintf("CAST($%d AS TEXT))", record)
}

// readSmall reads the records of the shares that have at most maxJoined.
func (t *Team) readSmall(ctx context.Context, read tx, mail *mailReader, loose looseShares) error {
	next := len(loose.args) + 1
	t.store.queries.Add(1)
	rows, err := read.run.QueryContext(ctx, `SELECT records.report_id, records.share, `+joinedRecords(next, next+1)+`
		FROM records JOIN (SELECT shares.report_id, shares.n`+sentShares+loose.narrowed+
		fmt.Sprintf(` AND shares.report_id >= $%d AND shares.records <= $%d`, next+2, next+3)+`) AS sent
			ON records.team_id = $1 AND records.report_id = sent.report_id AND records.share = sent.n
		GROUP BY records.report_id, records.share`, append(slices.Clip(loose.args), fieldEnd, recordEnd, loose.first(), maxJoined)...)
	if err != nil {
		return t.store.kind(err)
	}
	defer func() { _ = rows.Close() }() // rows.Err tells
	for rows.Next() {
		var place dmarcd.SentPlace
		var text sql.RawBytes
		if err := rows.Scan(&place.Report, &place.Share, &text); err != nil {
			return fmt.Errorf("read records: %w", t.store.kind(err))
		}
		share, known := loose.shares[place]
		if !known {
			continue // it came in between the two queries, or was dropped
		}
		if mail.tally == nil {
			share.Records = make([]dmarcd.Sent, 0, share.records)
		}
		if err := mail.records(text, &share); err != nil {
			return err
		}
		if err := mail.addShare(share.SentShare); err != nil {
			return err
		}
	}
	return t.store.kind(rows.Err())
}

// readLarge reads the records of one share, some at a time.
func (t *Team) readLarge(ctx context.Context, mail *mailReader, share looseShare) error {
	if mail.tally == nil {
		share.Records = make([]dmarcd.Sent, 0, share.records)
	}
	for last := int64(-1); ; {
		var text sql.Null[string]
		var n sql.Null[int64]
		err := t.store.longQueryRow(ctx, `SELECT `+joinedRecords(1, 2)+`, MAX(records.n)
			FROM (SELECT n, count, dkim, spf, disposition, source, details FROM records
				WHERE team_id = $3 AND report_id = $4 AND share = $5 AND n > $6 ORDER BY n LIMIT $7) AS records`,
			[]any{fieldEnd, recordEnd, t.id, share.Report, share.N, last, maxJoined}, &text, &n)
		if err != nil {
			return fmt.Errorf("read records: %w", err)
		}
		if !n.Valid {
			return mail.addShare(share.SentShare)
		}
		if err := mail.records([]byte(text.V), &share); err != nil {
			return err
		}
		last = n.V
	}
}

// records adds the records in a text to a share.
func (r *mailReader) records(text []byte, to *looseShare) error {
	from := len(to.Records)
	for record := range bytes.SplitSeq(text, []byte(recordEnd)) {
		sent, err := r.record(record)
		if err != nil {
			return err
		}
		if sent.Count > 0 && r.tally == nil { // else it reports no mail
			to.Records = append(to.Records, sent)
		}
	}
	inOrder(to.Records[from:])
	return nil
}

func (r *mailReader) record(text []byte) (dmarcd.Sent, error) {
	var fields [5][]byte
	for i := range fields {
		fields[i], text, _ = bytes.Cut(text, []byte(fieldEnd))
	}
	n, err := strconv.ParseUint(string(fields[0]), 10, 32)
	count, err2 := strconv.ParseInt(string(fields[1]), 10, 64)
	outcome, err3 := strconv.ParseUint(string(fields[2]), 10, 8)
	if err := errors.Join(err, err2, err3); err != nil || count <= 0 {
		return dmarcd.Sent{}, err
	}
	var form [5]byte
	return r.add(uint32(n), sheetAddress(fields[3], &form), fields[4], dmarcd.Outcome(outcome), count)
}
