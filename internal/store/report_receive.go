package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store/db"
)

// Receive stores deliveries: reports with their records and counters, rejections with
// their reasons, and the original bytes; all of it or, if it returns an error, nothing.
// For each delivery it returns the receipts of its reports, then of its rejections.
//
// Small deliveries are written in one transaction. Large ones are written ahead, in short
// transactions between which other writers get their turn, and become visible with the
// last one.
//
// It is idempotent, also across processes: a known report is a duplicate.
func (t *Team) Receive(ctx context.Context, deliveries []*dmarcd.Delivery) ([][]dmarcd.Receipt, error) {
	for attempt := 1; ; attempt++ {
		receipts, err := t.receive(ctx, deliveries)
		switch {
		case err == nil:
			return receipts, nil
		case !errors.Is(err, db.ErrMoved) || attempt == receiveAttempts:
			return nil, fmt.Errorf("keep reports: %w", err)
		}
	}
}

// receiveAttempts limits the attempts to write deliveries ahead: the report that made one a
// duplicate may be deleted before the last transaction.
const receiveAttempts = 3

func (t *Team) receive(ctx context.Context, deliveries []*dmarcd.Delivery) (receipts [][]dmarcd.Receipt, err error) {
	ahead, err := t.writeAhead(ctx, deliveries)
	defer ahead.discard(ctx)
	if err != nil {
		return nil, err
	}
	exclusive := false
	err = t.retryTx(ctx, func(tx tx) (err error) {
		r := t.newReception(ctx, tx)
		r.ahead, r.locks.exclusive = ahead, exclusive
		receipts, err = r.run(ctx, deliveries)
		// A replaced version may count for other domains than the new one.
		exclusive = exclusive || errors.Is(err, errUnlocked)
		return err
	})
	return receipts, err
}

// reception is a transaction that stores deliveries.
type reception struct {
	team   *Team
	tx     tx
	ahead  *ahead
	now    time.Time
	owners *attribution
	// owned are the owners of the shares of each report.
	owned   map[*dmarcd.NewReport][]owner
	locks   *domainLocks
	changes tally
	// quota is the quota of the team; usage, its usage before the deliveries.
	quota   dmarcd.Quota
	usage   dmarcd.Usage
	signers selectors
	// shares and records collect the rows of several reports: bulk inserts are faster.
	shares, records *db.Bulk
	// originals are also stored together.
	originals     []pendingOriginal
	originalBytes int
	// inserted maps reports whose rows are already inserted to their ids, 0 if another version
	// exists.
	inserted map[*dmarcd.NewReport]dmarcd.ReportID
	// replaces is set once the current delivery replaced a version; sharesLeft is the number of
	// shares that further replaced versions may have.
	replaces   bool
	sharesLeft int64
}

func (t *Team) newReception(ctx context.Context, tx tx) *reception {
	return &reception{
		team: t, tx: tx, now: t.store.now(), owners: newAttribution(t, tx), owned: make(map[*dmarcd.NewReport][]owner),
		locks: t.newLocks(tx), changes: make(tally), signers: make(selectors),
		shares: tx.Bulk(ctx, `shares`, shareColumns), records: tx.Bulk(ctx, `records`, recordColumns),
	}
}

const (
	shareColumns  = `team_id, report_id, n, domain_id, kind, day, header_from, from_path, policy_path, records, ` + countColumns
	recordColumns = `team_id, report_id, share, n, count, source, disposition, dkim, spf, details`
)

func (r *reception) run(ctx context.Context, deliveries []*dmarcd.Delivery) ([][]dmarcd.Receipt, error) {
	// The lock orders this transaction and those that add domains: a share stored as unclaimed is
	// found by the next one.
	lock := r.team.shareLock
	if r.locks.exclusive {
		lock = r.team.lock
	}
	if err := lock(ctx, r.tx); err != nil {
		return nil, err
	}
	if err := r.admit(ctx, deliveries); err != nil {
		return nil, err
	}
	for _, delivery := range deliveries {
		for i := range delivery.Reports {
			owners, err := r.owners.ofShares(ctx, &delivery.Reports[i])
			if err != nil {
				return nil, err
			}
			r.owned[&delivery.Reports[i]] = owners
		}
	}
	if err := r.lockOwners(ctx, slices.Collect(maps.Values(r.owned))...); err != nil {
		return nil, err
	}
	if err := r.insertReports(ctx, deliveries); err != nil {
		return nil, err
	}
	receipts := make([][]dmarcd.Receipt, len(deliveries))
	for i, delivery := range deliveries {
		var err error
		if receipts[i], err = r.insert(ctx, delivery); err != nil {
			return nil, err
		}
		r.tx.note(r.team.id, delivery.Name, delivery.Audit...)
	}
	for _, rows := range []*db.Bulk{r.shares, r.records} {
		if err := rows.Flush(); err != nil {
			return nil, err
		}
	}
	if err := r.flushOriginals(ctx); err != nil {
		return nil, err
	}
	if err := r.insertSelectors(ctx); err != nil {
		return nil, err
	}
	return receipts, r.team.count(ctx, r.tx, r.changes)
}

// lockOwners locks the domains of shares in a fixed order, so that none is deleted
// meanwhile.
func (r *reception) lockOwners(ctx context.Context, owners ...[]owner) error {
	ids := make(map[dmarcd.DomainID]struct{})
	for _, some := range owners {
		for _, owner := range some {
			ids[owner.id] = struct{}{}
		}
	}
	present, err := r.locks.lockAll(ctx, ids)
	if err == nil && !present {
		err = db.ErrMoved
	}
	return err
}

// insert stores one delivery.
func (r *reception) insert(ctx context.Context, delivery *dmarcd.Delivery) ([]dmarcd.Receipt, error) {
	var receipts []dmarcd.Receipt
	needed := false // a duplicate does not store its bytes again
	r.replaces = false
	for i := range delivery.Reports {
		report := &delivery.Reports[i]
		receipt, err := r.receiveReport(ctx, delivery, report)
		if err != nil {
			return nil, err
		}
		needed = needed || receipt.Status != dmarcd.Duplicate
		receipts = append(receipts, receipt)
	}
	r.addHeldEvents(delivery, receipts)
	full := r.quota.Check(r.usage, dmarcd.QuotaUnreadable)
	for i, rejection := range delivery.Rejections {
		bytes := int64(rejectedBytes)
		if i == 0 && full == nil { // the others have the same bytes
			bytes += delivery.Original.PackedSize
		}
		whole, err := r.reject(ctx, delivery, rejection, bytes, full)
		if err != nil {
			return nil, err
		}
		needed = needed || whole
		receipts = append(receipts, dmarcd.Receipt{
			Kind: rejection.Kind, Member: rejection.Member, Status: dmarcd.StatusRejected, Reason: rejection.Reason,
		})
	}
	if needed {
		return receipts, r.insertOriginal(ctx, delivery.Original)
	}
	return receipts, nil
}

// acknowledged reports whether a delivery can no longer be refused: the SMTP client
// already has its 250. The SMTP server calls Admit before.
func acknowledged(d *dmarcd.Delivery) bool { return d.Intake == dmarcd.IntakeSMTP }

// admit returns a *dmarcd.QuotaError if a quota of the team is exhausted.
func (r *reception) admit(ctx context.Context, deliveries []*dmarcd.Delivery) (err error) {
	r.quota, r.usage, err = r.team.admit(ctx, r.tx)
	var full *dmarcd.QuotaError
	if errors.As(err, &full) && !slices.ContainsFunc(deliveries, func(d *dmarcd.Delivery) bool { return !acknowledged(d) }) {
		return nil
	}
	return err
}

// maxMember limits the path of a rejected item, in bytes: it is part of a key. Package unpack
// returns no longer ones.
const maxMember = 1100

// reject stores a rejection and charges bytes for it; a repeated one is stored once. It reports
// whether the original is to be stored. full is the error of an exhausted quota for unreadable
// content: a mail is then listed without its original, and anything else is refused with that
// error.
func (r *reception) reject(ctx context.Context, delivery *dmarcd.Delivery, rejection dmarcd.Rejection, bytes int64, full error) (whole bool, err error) {
	id := r.team.store.nextID()
	var stored int64
	err = r.tx.QueryRow(ctx, `INSERT INTO rejected (id, team_id, domain_id, kind, intake, name, member, reason, genuine, authentication, received_at, original, bytes)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
		ON CONFLICT (team_id, original, member) DO UPDATE SET reason = excluded.reason RETURNING id`, []any{
		id, r.team.id, delivery.Domain, rejection.Kind, delivery.Intake, db.Plain(delivery.Name), db.Cut(rejection.Member, maxMember), db.Plain(rejection.Reason),
		genuine(delivery.Authentication), formatAuthentication(delivery.Authentication), unix(r.now), delivery.Original.Hash[:], bytes,
	}, &stored)
	if err != nil || stored != id {
		return err == nil && full == nil, err // already stored
	}
	r.tx.charge(r.team.id, used{stored: rejectedBytes, unreadable: bytes})
	r.usage[dmarcd.QuotaUnreadable] += bytes
	if full != nil && delivery.Intake != dmarcd.IntakeSMTP && delivery.Intake != dmarcd.IntakeIMAP {
		return false, full
	}
	return full == nil, nil
}
