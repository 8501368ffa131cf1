package store

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/rollup"
	"github.com/dmarcd/dmarcd/internal/store/db"
	"github.com/dmarcd/dmarcd/internal/store/shape"
)

// looseShares selects the shares that are read record by record.
type looseShares struct {
	from, to dmarcd.Day
	domain   string // "" for all domains
	tag      string // of the domains, "" for all
	// after excludes reports up to this one.
	after dmarcd.ReportID
}

// sentShares selects the shares that count in some days: $1 is the team, $2 and $3 are the
// days.
const sentShares = ` FROM domains
		JOIN shares ON shares.team_id = domains.team_id AND shares.domain_id = domains.id
		JOIN reports ON reports.team_id = shares.team_id AND reports.id = shares.report_id AND reports.emptied_at <= 0 AND reports.state = 'counted'
	WHERE domains.team_id = $1 AND domains.deleted_at = 0
		AND shares.day BETWEEN $2 AND $3 AND shares.kind = 'aggregate'`

// condition returns the end of the query, and its arguments. It omits unused conditions: the
// engines plan a query by its text.
func (l looseShares) condition(team dmarcd.TeamID) (text string, args []any) {
	text, args = sentShares, []any{team, l.from, l.to}
	if l.domain != "" {
		args = append(args, db.Plain(l.domain))
		text += fmt.Sprintf(` AND domains.name = $%d`, len(args))
	}
	tagged, args := hasTag(l.tag, args)
	text += tagged
	if l.after > 0 {
		args = append(args, l.after)
		text += fmt.Sprintf(` AND shares.report_id > $%d`, len(args))
	}
	return text, args
}

// looseColumns are those of scanLooseShare.
const looseColumns = `shares.report_id, shares.n, shares.domain_id, shares.day, shares.unverified, reports.organization, shares.header_from`

func scanLooseShare(scan db.Scanner, dest ...any) (share rollup.Share, err error) {
	var unverified int64
	err = scan(append([]any{&share.Report, &share.N, &share.Domain, &share.Day, &unverified, &share.Reporter, &share.From}, dest...)...)
	share.Unverified = unverified > 0
	return share, err
}

// Separators of fields and records in the text of a share. No field contains control
// characters.
const (
	fieldEnd  = "\x1f"
	recordEnd = "\x1e"
)

// maxJoined limits the records of a share that are read as one text.
const maxJoined = 1000

// joinedRecords returns the expression for several records as one text: fetching a row costs
// several times more than reading it in the engine. With a row for each record, named by the key
// of its share, BenchmarkSent took 1.5 to 2 times as long on PostgreSQL, and 1.4 times or more on
// SQLite. The placeholders are fieldEnd and recordEnd.
func joinedRecords(field, record int) string {
	end := fmt.Sprintf(" || CAST($%d AS TEXT) || ", field)
	return `string_agg(records.n` + end + `records.count` + end + `(CASE WHEN records.dkim = 'pass' THEN 1 ELSE 0 END
			+ CASE WHEN records.spf = 'pass' THEN 2 ELSE 0 END
			+ CASE records.disposition WHEN 'quarantine' THEN 4 WHEN 'reject' THEN 8 ELSE 0 END)` + end + `records.source` + end + `records.details, ` +
		fmt.Sprintf("CAST($%d AS TEXT))", record)
}

// encodeLoose calls emit with blocks of the records of shares, and returns the highest report id.
// turn waits for a slot of long work, which ends before each block is emitted.
func (t *Team) encodeLoose(
	ctx context.Context, read tx, of looseShares, turn func() (end func()), emit func(block []byte, records int) error,
) (newest dmarcd.ReportID, err error) {
	end := turn()
	defer func() { end() }()
	w := blockWriter{emit: func(block []byte, records int) error {
		end()
		defer func() { end = turn() }()
		return emit(block, records)
	}}
	if err := t.scanLoose(ctx, read, &w, of); err != nil {
		return 0, err
	}
	return w.newest, w.flush()
}

// scanLoose writes the records of shares.
func (t *Team) scanLoose(ctx context.Context, read tx, w *blockWriter, of looseShares) error {
	condition, args := of.condition(t.id)
	next := len(args) + 1
	// Shares with many records are rare; they are read later in steps.
	var large []rollup.Share
	var frozen []coldShare
	err := read.Query(ctx, `SELECT `+looseColumns+`,
			CASE WHEN shares.records > `+fmt.Sprint(maxJoined)+` OR reports.cold > 0 THEN NULL ELSE
				(SELECT `+joinedRecords(next, next+1)+` FROM records
					WHERE records.team_id = $1 AND records.report_id = shares.report_id AND records.share = shares.n) END,
			shares.records, reports.cold`+condition,
		append(slices.Clip(args), fieldEnd, recordEnd), func(scan db.Scanner) error {
			var text sql.RawBytes
			var records, group int64
			share, err := scanLooseShare(scan, &text, &records, &group)
			switch {
			case err != nil:
				return err
			case group > 0:
				frozen = append(frozen, coldShare{share, group})
				return nil
			case records > maxJoined:
				large = append(large, share)
				return nil
			}
			w.begin(share)
			return w.addJoined(text)
		})
	if err != nil {
		return fmt.Errorf("read records: %w", err)
	}
	for _, share := range large {
		if err := t.scanLarge(ctx, read, w, share); err != nil {
			return fmt.Errorf("read records: %w", err)
		}
	}
	return t.scanCold(ctx, read, w, frozen)
}

// scanLarge writes the records of one share in steps.
func (t *Team) scanLarge(ctx context.Context, read tx, w *blockWriter, share rollup.Share) error {
	w.begin(share)
	for last := int64(-1); ; {
		var text sql.Null[string]
		var n sql.Null[int64]
		err := read.QueryRow(ctx, `SELECT `+joinedRecords(1, 2)+`, MAX(records.n)
			FROM (SELECT n, count, dkim, spf, disposition, source, details FROM records
				WHERE team_id = $3 AND report_id = $4 AND share = $5 AND n > $6 ORDER BY n LIMIT $7) AS records`,
			[]any{fieldEnd, recordEnd, t.id, share.Report, share.N, last, maxJoined}, &text, &n)
		if err != nil || !n.Valid {
			return err
		}
		if err := w.addJoined([]byte(text.V)); err != nil {
			return err
		}
		last = n.V
	}
}

type looseRecord struct {
	rollup.Record
	address, details []byte
}

// addJoined adds the records of a text to the share.
func (w *blockWriter) addJoined(text []byte) error {
	if len(text) == 0 {
		return nil
	}
	records := make([]looseRecord, 0, maxJoined)
	for joined := range bytes.SplitSeq(text, []byte(recordEnd)) {
		record, err := splitRecord(joined)
		if err != nil {
			return err
		}
		if record.Count > 0 { // a record without messages is not in rollups
			records = append(records, record)
		}
	}
	slices.SortFunc(records, func(a, b looseRecord) int { return cmp.Compare(a.N, b.N) })
	for i := range records {
		if err := w.add(records[i].Record, string(records[i].address), string(records[i].details)); err != nil {
			return err
		}
	}
	return nil
}

func splitRecord(text []byte) (record looseRecord, err error) {
	var fields [5][]byte
	for i := range fields {
		fields[i], text, _ = bytes.Cut(text, []byte(fieldEnd))
	}
	n, err := strconv.ParseUint(string(fields[0]), 10, 32)
	count, err2 := strconv.ParseInt(string(fields[1]), 10, 64)
	outcome, err3 := strconv.ParseUint(string(fields[2]), 10, 8)
	record.Record = rollup.Record{N: uint32(n), Count: count, Outcome: dmarcd.Outcome(outcome)}
	record.address, record.details = fields[3], fields[4]
	return record, errors.Join(err, err2, err3)
}

// parseIdentity parses the identity of a record.
func parseIdentity(text string) (rollup.Identity, error) {
	var record aggregate.Record
	if err := shape.DecodeRecord(text, &record); err != nil {
		return rollup.Identity{}, err
	}
	identity := rollup.Identity{Envelope: record.EnvelopeFrom}
	for _, r := range record.DKIMResults {
		identity.Signatures = append(identity.Signatures, rollup.Signature{Domain: r.Domain, Selector: r.Selector, Result: rollup.ResultOf(r.Result)})
	}
	for _, r := range record.SPFResults {
		// Without an envelope domain, the SPF domain is the envelope.
		if identity.Envelope == "" && r.Scope != "helo" {
			identity.Envelope = r.Domain
		}
		identity.SPF = append(identity.SPF, rollup.SPFCheck{Domain: r.Domain, Result: rollup.ResultOf(r.Result), Helo: r.Scope == "helo"})
	}
	for _, reason := range record.Reasons {
		identity.Reasons |= parseReason(reason)
	}
	return identity, nil
}

// parseReason returns the bit of a reason. Receivers report trust in ARC in the comment of
// local_policy (RFC 8617 §7.2.2).
func parseReason(reason aggregate.Reason) rollup.Reasons {
	switch reason.Type {
	case "forwarded":
		return rollup.Forwarded
	case "trusted_forwarder":
		return rollup.TrustedForwarder
	case "mailing_list":
		return rollup.MailingList
	case "sampled_out":
		return rollup.SampledOut
	case "policy_test_mode":
		return rollup.TestMode
	case "local_policy":
		if strings.Contains(reason.Comment, "arc=pass") {
			return rollup.ARC
		}
		return rollup.LocalPolicy
	}
	return rollup.OtherReason
}
