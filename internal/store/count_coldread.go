package store

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/cold"
	"github.com/dmarcd/dmarcd/internal/rollup"
	"github.com/dmarcd/dmarcd/internal/store/db"
	"github.com/dmarcd/dmarcd/internal/store/shape"
)

// coldPosition is a position in a group of cold reports: after the record that it names.
type coldPosition struct {
	report   dmarcd.ReportID
	share, n int
}

func positionOf(r *cold.Record) coldPosition {
	return coldPosition{dmarcd.ReportID(r.Report), int(r.Share), int(r.N)}
}

func (p coldPosition) compare(other coldPosition) int {
	return cmp.Or(cmp.Compare(p.report, other.report), cmp.Compare(p.share, other.share), cmp.Compare(p.n, other.n))
}

// beforeReport returns the position before the records of a report.
func beforeReport(id dmarcd.ReportID) coldPosition { return coldPosition{report: id, share: -1, n: -1} }

// errEnough ends reading records without an error.
var errEnough = errors.New("enough records")

// coldRange selects records of a group: after a position, up to the last record of a report. If
// wanted is set, records of other shares may be missing; it is called in order.
type coldRange struct {
	after  coldPosition
	last   dmarcd.ReportID
	wanted func(report int64, share int32) bool
}

// readCold calls visit with records of the group id, in order, block by block. The records are
// shared and must not be changed.
func (t *Team) readCold(ctx context.Context, read tx, id int64, of coldRange, visit func([]cold.Record) error) error {
	blocks, err := t.coldBlocks(ctx, read, id)
	if err != nil {
		return err
	}
	for _, block := range blocks {
		if block.first > of.last || block.last.compare(of.after) <= 0 {
			continue
		}
		records, err := t.coldBlock(ctx, read, block, of.wanted)
		if err != nil {
			return err
		}
		from, found := slices.BinarySearchFunc(records, of.after, func(r cold.Record, p coldPosition) int { return positionOf(&r).compare(p) })
		if found {
			from++
		}
		to, _ := slices.BinarySearchFunc(records, int64(of.last)+1, func(r cold.Record, id int64) int { return cmp.Compare(r.Report, id) })
		if err := visit(records[from:max(from, to)]); err != nil {
			if errors.Is(err, errEnough) {
				return nil
			}
			return err
		}
	}
	return nil
}

type coldKey struct {
	team dmarcd.TeamID
	id   int64
	n    int // 0 where it is the key of a group
}

// coldBlock describes a block.
type coldBlock struct {
	coldKey

	first    dmarcd.ReportID
	last     coldPosition // of its last record
	bytes    int64
	checksum []byte
}

// coldBlocks returns the blocks of a group in order, from the cache if possible: blocks never
// change. A group that was rewritten since its id was read has none.
func (t *Team) coldBlocks(ctx context.Context, read tx, id int64) ([]coldBlock, error) {
	key := coldKey{team: t.id, id: id}
	if blocks, ok := t.store.coldGroups.Get(key); ok {
		return blocks, nil
	}
	blocks, err := db.Collect(ctx, read, `SELECT n, first_report, last_report, last_share, last_n, bytes, checksum FROM cold_blocks
		WHERE team_id = $1 AND id = $2 ORDER BY n`, []any{t.id, id}, func(scan db.Scanner) (coldBlock, error) {
		b := coldBlock{coldKey: key}
		return b, scan(&b.n, &b.first, &b.last.report, &b.last.share, &b.last.n, &b.bytes, &b.checksum)
	})
	if err == nil && len(blocks) > 0 {
		t.store.coldGroups.Put(key, blocks, 200*len(blocks))
	}
	return blocks, err
}

// coldBlock returns the records of a block: all from the cache if possible, otherwise at least
// those of wanted shares; nil wants all.
func (t *Team) coldBlock(ctx context.Context, read tx, b coldBlock, wanted func(report int64, share int32) bool) ([]cold.Record, error) {
	if records, ok := t.store.cold.Get(b.coldKey); ok {
		return records, nil
	}
	whole := true
	records, err := t.loadColdBlock(ctx, read, b, func(report int64, share int32) bool {
		is := wanted == nil || wanted(report, share)
		whole = whole && is
		return is
	})
	if err == nil && whole {
		t.store.cold.Put(b.coldKey, records, cold.Size(records))
	}
	return records, err
}

// loadColdBlock verifies a block, and returns the records of wanted shares. A block that differs
// from what was written is cold.ErrDamaged.
func (t *Team) loadColdBlock(ctx context.Context, read tx, b coldBlock, wanted func(report int64, share int32) bool) ([]cold.Record, error) {
	damaged := func(reason string) error {
		return fmt.Errorf("block %d of group %d of %s: %w: %s", b.n, b.id, t.id, cold.ErrDamaged, reason)
	}
	if b.bytes > cold.MaxBytes {
		return nil, damaged("it is too large")
	}
	var block []byte
	err := read.QueryRow(ctx, `SELECT block FROM cold_blocks WHERE team_id = $1 AND id = $2 AND n = $3`, []any{t.id, b.id, b.n}, &block)
	if err != nil {
		return nil, err
	}
	if checksum := cold.Checksum(block); !bytes.Equal(checksum[:], b.checksum) {
		return nil, damaged("its checksum differs")
	}
	records, err := cold.ReadShares(block, wanted)
	if err != nil {
		return nil, fmt.Errorf("block %d of group %d of %s: %w", b.n, b.id, t.id, err)
	}
	return records, nil
}

// coldCacheBytes limits the decoded blocks in memory, coldGroupBytes the lists of blocks: pages
// of a report, and reports that follow each other, are in the same block.
const (
	coldCacheBytes = 16 << 20
	coldGroupBytes = 1 << 20
)

// coldShare is a share of a cold report.
type coldShare struct {
	rollup.Share

	id int64 // of its blocks
}

func (s *coldShare) compare(r *cold.Record) int {
	return cmp.Or(cmp.Compare(s.Report, dmarcd.ReportID(r.Report)), cmp.Compare(s.N, int(r.Share)))
}

// scanCold writes the records of shares of cold reports.
func (t *Team) scanCold(ctx context.Context, read tx, w *blockWriter, shares []coldShare) error {
	slices.SortFunc(shares, func(a, b coldShare) int {
		return cmp.Or(cmp.Compare(a.id, b.id), cmp.Compare(a.Report, b.Report), cmp.Compare(a.N, b.N))
	})
	for len(shares) > 0 {
		id := shares[0].id
		end := slices.IndexFunc(shares, func(s coldShare) bool { return s.id != id })
		if end < 0 {
			end = len(shares)
		}
		group := shares[:end]
		shares = shares[end:]
		begun, rest := false, group
		of := coldRange{beforeReport(group[0].Report), group[len(group)-1].Report, func(report int64, share int32) bool {
			r := cold.Record{Report: report, Share: share}
			for len(rest) > 0 && rest[0].compare(&r) < 0 {
				rest = rest[1:]
			}
			return len(rest) > 0 && rest[0].compare(&r) == 0
		}}
		err := t.readCold(ctx, read, id, of, func(records []cold.Record) error {
			for i := range records {
				r := &records[i]
				for len(group) > 0 && group[0].compare(r) < 0 {
					group, begun = group[1:], false
				}
				if len(group) == 0 {
					return errEnough
				}
				if group[0].compare(r) > 0 || r.Count <= 0 { // a record without messages is not in rollups
					continue
				}
				if !begun {
					w.begin(group[0].Share)
					begun = true
				}
				if err := w.add(rollup.Record{N: uint32(r.N), Count: r.Count, Outcome: coldOutcome(r)}, r.Source, r.Details); err != nil { //nolint:gosec // not negative
					return err
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("read old records: %w", err)
		}
	}
	return nil
}

// coldOutcome computes the same outcome as joinedRecords does in SQL.
func coldOutcome(r *cold.Record) dmarcd.Outcome {
	var outcome dmarcd.Outcome
	if r.DKIM == string(aggregate.ResultPass) {
		outcome = 1
	}
	if r.SPF == string(aggregate.ResultPass) {
		outcome += 2
	}
	switch aggregate.Policy(r.Disposition) {
	case aggregate.PolicyQuarantine:
		outcome += 4
	case aggregate.PolicyReject:
		outcome += 8
	}
	return outcome
}

// coldRecords is Records for a report whose records are cold.
func (t *Team) coldRecords(ctx context.Context, id dmarcd.ReportID, after RecordCursor, limit int) (all []Record, more bool, err error) {
	type share struct {
		n            int
		domain, from string
	}
	var group, tried int64
	err = t.store.longRead(ctx, func(read tx) error {
		for {
			// Each share after the first has a record to return. With the condition cold > 0,
			// PostgreSQL might read all cold reports by the index on it.
			shares, err := db.Collect(ctx, read, `SELECT reports.cold, shares.n, COALESCE(domains.name, ''), shares.header_from
				FROM reports JOIN shares ON shares.team_id = $1 AND shares.report_id = reports.id
					LEFT JOIN domains ON domains.id = shares.domain_id AND domains.team_id = $1
				WHERE reports.team_id = $1 AND reports.id = $2 AND reports.state <> 'deleted' AND reports.emptied_at <= 0
					AND shares.n >= $3 AND `+visibleShare+` ORDER BY shares.n LIMIT $4`,
				[]any{t.id, id, after.Share, limit + 2}, func(scan db.Scanner) (share, error) {
					var s share
					return s, scan(&group, &s.n, &s.domain, &s.from)
				})
			if err != nil || len(shares) == 0 || group == 0 || group == tried {
				return err
			}
			tried = group
			blocks, text := 0, 0
			err = t.readCold(ctx, read, group, coldRange{after: coldPosition{id, after.Share, after.N}, last: id}, func(records []cold.Record) error {
				blocks++
				for i := range records {
					r := &records[i]
					for len(shares) > 0 && shares[0].n < int(r.Share) {
						shares = shares[1:]
					}
					if len(shares) == 0 {
						return errEnough
					}
					if shares[0].n > int(r.Share) {
						continue // its domain is deleted
					}
					if more = len(all) == limit || text > maxRecordsText; more {
						return errEnough
					}
					text += len(r.Details)
					record, err := recordOf(r, shares[0].domain, shares[0].from)
					if err != nil {
						return err
					}
					all = append(all, record)
				}
				return nil
			})
			if err != nil || blocks > 0 {
				return err
			}
			// The end of the report, or the group was rewritten meanwhile.
		}
	})
	return all, more, err
}

// recordOf returns a cold record of a share.
func recordOf(r *cold.Record, domain, from string) (Record, error) {
	record := Record{
		Cursor: RecordCursor{Share: int(r.Share), N: int(r.N), Begun: true}, Domain: domain,
		Record: aggregate.Record{
			Source: r.Source, Count: r.Count, Disposition: aggregate.Policy(r.Disposition),
			DKIM: aggregate.Result(r.DKIM), SPF: aggregate.Result(r.SPF), HeaderFrom: from,
		},
	}
	return record, shape.DecodeRecord(r.Details, &record.Record)
}

// coldSent is the position of a cold record, with the columns of its share.
type coldSent struct {
	dmarcd.SentRecord

	id           int64
	domain, from string
}

// sentCold adds the cold records at these positions to those found.
func (t *Team) sentCold(ctx context.Context, wanted string, args []any, found map[dmarcd.SentPosition]dmarcd.SentRecord) error {
	return t.store.snapshot(ctx, func(read tx) error {
		positions, err := db.Collect(ctx, read, `SELECT reports.cold, positions.report_id, positions.share, positions.n, reports.organization, shares.day, domains.name, shares.header_from
			FROM (SELECT column1 AS report_id, column2 AS share, column3 AS n FROM (VALUES `+wanted+`) AS wanted) AS positions
				JOIN shares ON shares.team_id = $1 AND shares.report_id = positions.report_id AND shares.n = positions.share
				JOIN domains ON domains.id = shares.domain_id AND domains.team_id = $1 AND domains.deleted_at = 0
				JOIN reports ON reports.team_id = $1 AND reports.id = shares.report_id AND reports.state = 'counted' AND reports.emptied_at <= 0
			ORDER BY 1, 2, 3, 4`, args, func(scan db.Scanner) (coldSent, error) {
			var s coldSent
			return s, scan(&s.id, &s.Position.Report, &s.Position.Share, &s.Position.N, &s.Organization, &s.Day, &s.domain, &s.from)
		})
		if err != nil {
			return err
		}
		for _, s := range positions {
			if s.id == 0 {
				continue // it is hot
			}
			of := coldRange{after: coldPosition{s.Position.Report, s.Position.Share, s.Position.N - 1}, last: s.Position.Report}
			err := t.readCold(ctx, read, s.id, of, func(records []cold.Record) error {
				if len(records) == 0 || int(records[0].Share) != s.Position.Share || int(records[0].N) != s.Position.N {
					return errEnough
				}
				record, err := recordOf(&records[0], s.domain, s.from)
				if err != nil {
					return err
				}
				s.Record = record.Record
				found[s.Position] = s.SentRecord
				return errEnough
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}
