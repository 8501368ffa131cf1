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

// maxLoose bounds how many records are read one by one for an answer. Each takes some
// microseconds: more have to be on sheets.
const maxLoose = 300_000

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
		JOIN reports ON reports.id = shares.report_id AND reports.emptied_at <= 0 AND reports.state = 'counted'
	WHERE domains.team_id = $1 AND domains.deleted_at = 0
		AND shares.day BETWEEN $2 AND $3 AND shares.kind = 'aggregate'`

// looseShares returns the shares of one domain, or of all where name is "". Of those
// that have more records than limit some are missing.
func (t *Team) looseShares(ctx context.Context, name string, from, to dmarcd.Day, limit int) (looseShares, error) {
	loose := looseShares{args: []any{t.id, from, to}, shares: make(map[dmarcd.SentPlace]looseShare)}
	if name != "" {
		// What is not asked for is left out: the engines plan a query by its text.
		loose.narrowed, loose.args = ` AND domains.name = $4`, append(loose.args, plain(name))
	}
	query := `SELECT shares.report_id, shares.n, shares.domain_id, reports.organization, shares.day, shares.header_from, shares.records` +
		sentShares + loose.narrowed + fmt.Sprintf(` LIMIT $%d`, len(loose.args)+1)
	_, err := collectRead(ctx, t.store, query, append(slices.Clip(loose.args), limit+1), func(scan scanner) (none struct{}, err error) {
		var share looseShare
		err = scan(&share.Report, &share.N, &share.Domain, &share.Organization, &share.Day, &share.HeaderFrom, &share.records)
		share.records = max(share.records, 1)
		loose.records += share.records
		loose.shares[dmarcd.SentPlace{Report: share.Report, Share: share.N}] = share
		return none, err
	})
	return loose, err
}

// What ends the fields of a record, and a record, in the text of a share: characters
// that were made for that. None of the fields has a control character.
const (
	fieldEnd  = "\x1f"
	recordEnd = "\x1e"
)

// readLoose reads the records of shares.
func (t *Team) readLoose(ctx context.Context, mail *mailReader, loose looseShares) error {
	if len(loose.shares) == 0 {
		return nil
	}
	return t.store.longRead(ctx, func(read tx) error { return t.scanLoose(ctx, read, mail, loose) })
}

func (t *Team) scanLoose(ctx context.Context, read tx, mail *mailReader, loose looseShares) error {
	if err := mail.expect(loose.records); err != nil {
		return err
	}
	// All records of a share come as one text: to take a row out of the engine costs
	// several times what it costs to read it there.
	next := len(loose.args) + 1
	field, record := fmt.Sprintf("CAST($%d AS TEXT)", next), fmt.Sprintf("CAST($%d AS TEXT)", next+1)
	t.store.queries.Add(1)
	rows, err := read.run.QueryContext(ctx, `SELECT records.report_id, records.share, string_agg(
			records.n || `+field+` || records.count || `+field+`
				|| (CASE WHEN records.dkim = 'pass' THEN 1 ELSE 0 END + CASE WHEN records.spf = 'pass' THEN 2 ELSE 0 END
					+ CASE records.disposition WHEN 'quarantine' THEN 4 WHEN 'reject' THEN 8 ELSE 0 END)
				|| `+field+` || records.source || `+field+` || records.details, `+record+`)
		FROM records JOIN (SELECT shares.report_id, shares.n`+sentShares+loose.narrowed+fmt.Sprintf(` AND shares.report_id >= $%d`, next+2)+`) AS sent
			ON records.report_id = sent.report_id AND records.share = sent.n
		GROUP BY records.report_id, records.share`, append(loose.args, fieldEnd, recordEnd, loose.first())...)
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
		if share.Records, err = mail.records(text); err != nil {
			return err
		}
		mail.Shares = append(mail.Shares, share.SentShare)
	}
	return t.store.kind(rows.Err())
}

// records reads the records of a share from their text.
func (r *mailReader) records(text []byte) ([]dmarcd.Sent, error) {
	all := make([]dmarcd.Sent, 0, bytes.Count(text, []byte(recordEnd))+1)
	for record := range bytes.SplitSeq(text, []byte(recordEnd)) {
		sent, err := r.record(record)
		if err != nil {
			return nil, fmt.Errorf("read a record: %w", err)
		}
		if sent.Count > 0 { // else it tells of no mail
			all = append(all, sent)
		}
	}
	return inOrder(all), nil
}

func (r *mailReader) record(text []byte) (dmarcd.Sent, error) {
	var fields [5][]byte
	for i := range fields {
		fields[i], text, _ = bytes.Cut(text, []byte(fieldEnd))
	}
	var sent dmarcd.Sent
	var errs [4]error
	var n, bits uint64
	n, errs[0] = strconv.ParseUint(string(fields[0]), 10, 32)
	sent.Count, errs[1] = strconv.ParseInt(string(fields[1]), 10, 64)
	bits, errs[2] = strconv.ParseUint(string(fields[2]), 10, 8)
	sent.Address = r.address(fields[3])
	sent.Identities, errs[3] = r.identities(fields[4])
	sent.N, sent.Outcome = uint32(n), dmarcd.Outcome(bits)
	return sent, errors.Join(errs[:]...)
}
