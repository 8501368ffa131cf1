package store

import (
	"context"
	"fmt"
	"slices"

	"github.com/dmarcd/dmarcd"
)

// version is a version of a report that is there already.
type version struct {
	id       dmarcd.ReportID
	replaced bool
	genuine  dmarcd.Genuine
	same     bool // it says the same as the one that came
	visible  bool // not all of it was about domains that are deleted since
}

// keepReport keeps a report, unless it is known or may not take the place of the
// version that counts.
func (r *reception) keepReport(ctx context.Context, delivery *dmarcd.Delivery, report *dmarcd.NewReport) (dmarcd.Receipt, error) {
	receipt := dmarcd.Receipt{
		ID: dmarcd.ReportID(r.team.store.nextID()), Kind: report.Kind, Member: report.Member, Status: dmarcd.Stored,
		ExternalID: report.ExternalID, Organization: report.Organization, Domain: report.Domain,
		Records: report.Records, Messages: report.Messages, Quirks: report.Quirks,
	}
	if report.Begin.IsZero() && report.End.IsZero() {
		// A report that tells no time is found at the time it came.
		report.Begin, report.End = r.now, r.now
	}
	owners, err := r.owners.ofShares(ctx, report)
	if err != nil {
		return receipt, err
	}
	if !r.room.fits(owners, report.Shares) {
		return r.tooMany(ctx, receipt, report)
	}
	inserted, err := r.insertReport(ctx, receipt.ID, delivery, report)
	if err != nil {
		return receipt, err
	}
	if !inserted {
		receipt, err = r.settle(ctx, receipt, delivery.Verdict.Genuine, report)
		if err != nil || receipt.Status == dmarcd.Duplicate || receipt.Status == dmarcd.Refused {
			return receipt, err
		}
		if inserted, err = r.insertReport(ctx, receipt.ID, delivery, report); err != nil {
			return receipt, err
		}
		if !inserted {
			return receipt, errMoved // another process keeps a version of it just now
		}
	}
	if receipt.Status == dmarcd.Stored && !slices.ContainsFunc(owners, func(o owner) bool { return o.id != 0 }) {
		receipt.Status = dmarcd.Unclaimed
	}
	return receipt, r.insertShares(receipt.ID, report, owners)
}

// insertReport inserts the row of a report as the version that counts, and reports
// whether there was none yet.
func (r *reception) insertReport(ctx context.Context, id dmarcd.ReportID, delivery *dmarcd.Delivery, report *dmarcd.NewReport) (bool, error) {
	added, err := r.tx.insertMany(ctx, `INSERT INTO reports (id, team_id, kind, identity, content, replaced, organization, external_id,
			domain, begin_at, end_at, records, messages, compliant, quirks, damage, intake, genuine, verdict, received_at, original, member, document)
		VALUES `, [][]any{{
		id, r.team.id, report.Kind, report.Key[:], report.Content[:], false, plain(report.Organization), plain(report.ExternalID),
		plain(report.Domain), unix(report.Begin), unix(report.End), report.Records, report.Messages, report.Compliant,
		formatQuirks(report.Quirks), plain(report.Damage), delivery.Intake, genuine(delivery.Verdict), formatVerdict(delivery.Verdict),
		unix(r.now), delivery.Original.Hash[:], plain(report.Member), plain(report.Document),
	}}, ` ON CONFLICT DO NOTHING`)
	return added == 1, err
}

// versions returns the versions that are there of a report, and keeps others from
// changing them.
func (r *reception) versions(ctx context.Context, report *dmarcd.NewReport) ([]version, error) {
	if err := r.shares.flush(); err != nil { // they may be of this batch
		return nil, err
	}
	return collect(ctx, r.tx, `SELECT id, replaced, genuine, content = $3, `+visibleReport+` FROM reports
		WHERE team_id = $1 AND identity = $2 ORDER BY id`+r.team.store.dialect.lockRow,
		[]any{r.team.id, report.Key[:], report.Content[:]}, func(scan scanner) (v version, err error) {
			err = scan(&v.id, &v.replaced, &v.genuine, &v.same, &v.visible)
			return v, err
		})
}

// tooMany is what becomes of a report that the counters cannot take.
func (r *reception) tooMany(ctx context.Context, receipt dmarcd.Receipt, report *dmarcd.NewReport) (dmarcd.Receipt, error) {
	versions, err := r.versions(ctx, report)
	if err != nil {
		return receipt, err
	}
	if known, ok := duplicate(receipt, versions); ok {
		return known, nil
	}
	return refused(receipt, "The report counts more messages than can be added up for a domain."), nil
}

// settle makes room for a report of which there are versions, where it may take
// their place. The status of the receipt that it returns tells.
func (r *reception) settle(ctx context.Context, receipt dmarcd.Receipt, genuine dmarcd.Genuine, report *dmarcd.NewReport) (dmarcd.Receipt, error) {
	versions, err := r.versions(ctx, report)
	if err != nil {
		return receipt, err
	}
	if len(versions) == 0 {
		return receipt, errMoved // the version went meanwhile, or another process drew the same id
	}
	// What only waits to be purged is forgotten: whoever adds the domain again
	// starts anew.
	for _, v := range versions {
		if v.visible {
			continue
		}
		if _, err := r.team.removeReport(ctx, r.tx, v.id); err != nil {
			return receipt, err
		}
	}
	versions = slices.DeleteFunc(versions, func(v version) bool { return !v.visible })
	if known, ok := duplicate(receipt, versions); ok {
		return known, nil
	}
	at := slices.IndexFunc(versions, func(v version) bool { return !v.replaced })
	if at < 0 {
		return receipt, nil
	}
	if versions[at].genuine == dmarcd.GenuineYes && genuine == dmarcd.GenuineNo {
		return refused(receipt, "A report of this id that was proved genuine is there already; this one says something else and is not genuine."), nil
	}
	receipt.Status = dmarcd.Replaced
	if err := r.replace(ctx, versions[at].id); err != nil {
		return receipt, fmt.Errorf("replace a version: %w", err)
	}
	return receipt, nil
}

// duplicate returns the receipt of a report that is among the versions, if it is.
func duplicate(receipt dmarcd.Receipt, versions []version) (dmarcd.Receipt, bool) {
	at := slices.IndexFunc(versions, func(v version) bool { return v.same })
	if at < 0 {
		return receipt, false
	}
	receipt.ID, receipt.Status = versions[at].id, dmarcd.Duplicate
	return receipt, true
}

func refused(receipt dmarcd.Receipt, reason string) dmarcd.Receipt {
	return dmarcd.Receipt{Kind: receipt.Kind, Member: receipt.Member, Status: dmarcd.Refused, Reason: reason}
}

// visibleShare is the condition that a share is unclaimed, or that its domain is
// there.
const visibleShare = `(shares.domain_id = 0 OR EXISTS
	(SELECT 1 FROM domains WHERE domains.id = shares.domain_id AND domains.team_id = shares.team_id AND domains.deleted_at = 0))`

// replace takes the counts of a version back.
func (r *reception) replace(ctx context.Context, id dmarcd.ReportID) error {
	if _, err := r.tx.exec(ctx, `UPDATE reports SET replaced = TRUE WHERE team_id = $1 AND id = $2`, r.team.id, id); err != nil {
		return err
	}
	counted, err := collect(ctx, r.tx, `UPDATE shares SET replaced = TRUE WHERE team_id = $1 AND report_id = $2
		RETURNING domain_id, day, `+countColumns, []any{r.team.id, id}, scanCounted)
	if err != nil {
		return err
	}
	return r.team.takeBack(ctx, r.tx, r.room, r.changes, counted)
}

// counted is what was counted for a domain in a day.
type counted struct {
	tallyKey
	counts dmarcd.Counts
}

func scanCounted(scan scanner) (counted, error) {
	var c counted
	err := scan(append([]any{&c.domain, &c.day}, countFields(&c.counts)...)...)
	return c, err
}

// takeBack has counts taken back, but for domains that are deleted: their days are
// out of the team's sums already.
func (t *Team) takeBack(ctx context.Context, tx tx, r room, changes tally, all []counted) error {
	for _, c := range all {
		if c.domain == 0 {
			continue
		}
		present, err := t.lock(ctx, tx, r, c.domain)
		if err != nil {
			return err
		}
		if present {
			changes.subtract(c.domain, c.day, c.counts)
		}
	}
	return nil
}
