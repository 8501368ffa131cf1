package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store/db"
	"github.com/dmarcd/dmarcd/internal/store/shape"
)

// version is a stored version of a report.
type version struct {
	id             dmarcd.ReportID
	state          dmarcd.ReportState
	authentication dmarcd.Authentication
	standing       dmarcd.Standing
	same           bool // has the same content
	visible        bool // at least one of its domains exists
}

// isCurrent reports whether this version counts, unless an editor excluded it.
func (v version) isCurrent() bool {
	return v.state == dmarcd.ReportCounted || v.state == dmarcd.ReportExcluded
}

// receiveReport stores a report unless it is a duplicate.
func (r *reception) receiveReport(ctx context.Context, delivery *dmarcd.Delivery, report *dmarcd.NewReport) (dmarcd.Receipt, error) {
	receipt := dmarcd.Receipt{
		ID: dmarcd.ReportID(r.team.store.nextID()), Kind: report.Kind, Member: report.Member, Status: dmarcd.Stored,
		ExternalID: report.ExternalID, Organization: report.Organization, Domain: report.Domain,
		Records: report.Records, Messages: report.Messages, Quirks: report.Quirks,
	}
	prepare(report, r.now)
	owners := r.owned[report]
	var found outcome
	var err error
	written := r.ahead.reports[report]
	if written != nil {
		receipt.ID = written.id
		found, err = r.publish(ctx, &receipt, delivery, report, written, owners)
	} else if id := r.inserted[report]; id != 0 {
		receipt.ID, found = id, wantedOutcome(report)
	} else {
		found, err = r.insertVersion(ctx, &receipt, delivery, report)
	}
	if err != nil || receipt.Status == dmarcd.Duplicate {
		return receipt, err
	}
	r.tx.charge(r.team.id, used{reports: 1})
	switch {
	case found.state == dmarcd.ReportHeld:
		receipt.Status, receipt.Reason = dmarcd.Held, found.heldReason
	case receipt.Status == dmarcd.Stored && !slices.ContainsFunc(owners, func(o owner) bool { return o.id != 0 }):
		receipt.Status = dmarcd.Unclaimed
	}
	if written != nil {
		return receipt, nil
	}
	return receipt, r.insertShares(receipt.ID, report, found.state, owners)
}

// prepare sets the period of a report without one: the time of receipt.
func prepare(report *dmarcd.NewReport, now time.Time) {
	if report.Begin.IsZero() && report.End.IsZero() {
		report.Begin, report.End = now, now
	}
}

// countsOf returns the counts of a share.
func countsOf(report *dmarcd.NewReport, share dmarcd.Share) dmarcd.Counts {
	counts := share.Counts
	if report.Standing == dmarcd.Unverified {
		counts.Unverified = dmarcd.AddCount(counts.Total(), 0)
	}
	return counts
}

// outcome is the state of a report relative to its other versions.
type outcome struct {
	state      dmarcd.ReportState
	heldReason string
	// pendingUntil is the time until which the purge leaves a report that is written ahead alone.
	pendingUntil time.Time
}

// wantedOutcome is the outcome for a report without other versions.
func wantedOutcome(report *dmarcd.NewReport) outcome {
	if report.HeldReason != "" {
		return outcome{state: dmarcd.ReportHeld, heldReason: report.HeldReason}
	}
	return outcome{state: dmarcd.ReportCounted}
}

// insertVersion inserts the row of a report and returns its outcome. It sets in the receipt whether
// the report is a duplicate or replaces a version.
func (r *reception) insertVersion(ctx context.Context, receipt *dmarcd.Receipt, delivery *dmarcd.Delivery, report *dmarcd.NewReport) (outcome, error) {
	found := wantedOutcome(report)
	if _, tried := r.inserted[report]; !tried {
		inserted, err := r.insertReport(ctx, receipt.ID, delivery, report, found)
		if err != nil || inserted {
			return found, err
		}
	}
	found, err := r.settle(ctx, receipt, delivery.Authentication, report, found)
	if err != nil || receipt.Status == dmarcd.Duplicate {
		return found, err
	}
	inserted, err := r.insertReport(ctx, receipt.ID, delivery, report, found)
	if err == nil && !inserted {
		err = db.ErrMoved // a concurrent write of another version
	}
	return found, err
}

// insertReport inserts the row of a report. It returns false if the report exists, or if it should
// count and another version does.
func (r *reception) insertReport(ctx context.Context, id dmarcd.ReportID, delivery *dmarcd.Delivery, report *dmarcd.NewReport, at outcome) (bool, error) {
	added, err := r.tx.InsertMany(ctx, insertReports, [][]any{r.reportRow(id, delivery, report, at)}, ` ON CONFLICT DO NOTHING`)
	if added == 1 {
		r.chargeReport(report)
	}
	return added == 1, err
}

const insertReports = `INSERT INTO reports (id, team_id, kind, identity, content, state, held_reason, organization, external_id,
		domain, begin_at, end_at, records, messages, compliant, quirks, damage, intake, genuine, authentication, standing, received_at, original, member, document, pending_until, text_bytes)
	VALUES `

func (r *reception) reportRow(id dmarcd.ReportID, delivery *dmarcd.Delivery, report *dmarcd.NewReport, at outcome) []any {
	return []any{
		id, r.team.id, report.Kind, report.Key[:], report.Content[:], at.state, at.heldReason, keyText(report.Organization), keyText(report.ExternalID),
		nameText(report.Domain), unix(report.Begin), unix(report.End), report.Records, report.Messages, report.Compliant,
		formatQuirks(report.Quirks), db.Plain(report.Damage), delivery.Intake, genuine(delivery.Authentication), formatAuthentication(delivery.Authentication),
		report.Standing, unix(r.now), delivery.Original.Hash[:], db.Plain(report.Member), db.Plain(report.Document), unix(at.pendingUntil), report.TextBytes,
	}
}

func (r *reception) chargeReport(report *dmarcd.NewReport) {
	r.tx.charge(r.team.id, used{
		stored: reportRowBytes + int64(len(db.Plain(report.Document))) + int64(report.Records)*recordBytes + report.TextBytes,
	})
}

// insertReports inserts all reports without other versions in a few statements. The remaining ones
// are inserted one by one: those with another version in this batch or in the database, and those
// written ahead.
func (r *reception) insertReports(ctx context.Context, deliveries []*dmarcd.Delivery) error {
	versions := make(map[dmarcd.Hash]int)
	for _, delivery := range deliveries {
		for i := range delivery.Reports {
			versions[delivery.Reports[i].Key]++
		}
	}
	var rows [][]any
	wanted := make(map[dmarcd.ReportID]*dmarcd.NewReport)
	for _, delivery := range deliveries {
		for i := range delivery.Reports {
			report := &delivery.Reports[i]
			if versions[report.Key] > 1 || r.ahead.reports[report] != nil {
				continue
			}
			prepare(report, r.now)
			id := dmarcd.ReportID(r.team.store.nextID())
			wanted[id] = report
			rows = append(rows, r.reportRow(id, delivery, report, wantedOutcome(report)))
		}
	}
	inserted, err := db.InsertReturning(ctx, r.tx.Tx, insertReports, rows, ` ON CONFLICT DO NOTHING RETURNING id`, db.Value[dmarcd.ReportID])
	if err != nil {
		return err
	}
	r.inserted = make(map[*dmarcd.NewReport]dmarcd.ReportID, len(wanted))
	for _, report := range wanted {
		r.inserted[report] = 0
	}
	for _, id := range inserted {
		r.inserted[wanted[id]] = id
		r.chargeReport(wanted[id])
	}
	return nil
}

// versions returns and locks the stored versions of a report.
func (r *reception) versions(ctx context.Context, report *dmarcd.NewReport) ([]version, error) {
	if err := r.shares.Flush(); err != nil { // a version may be in this batch
		return nil, err
	}
	return db.Collect(ctx, r.tx, `SELECT id, state, genuine, authentication, standing, content = $3, `+visibleReport+` FROM reports
		WHERE team_id = $1 AND identity = $2 AND state <> 'deleted' ORDER BY id`+r.team.store.db.LockRow,
		[]any{r.team.id, report.Key[:], report.Content[:]}, func(scan db.Scanner) (v version, err error) {
			var genuine dmarcd.Genuine
			var authentication string
			err = scan(&v.id, &v.state, &genuine, &authentication, &v.standing, &v.same, &v.visible)
			v.authentication = parseAuthentication(genuine, authentication)
			return v, err
		})
}

// settle decides the outcome of a report with other versions, and replaces one of them if needed.
func (r *reception) settle(ctx context.Context, receipt *dmarcd.Receipt, authentication dmarcd.Authentication, report *dmarcd.NewReport, wanted outcome) (outcome, error) {
	versions, err := r.versions(ctx, report)
	if err != nil {
		return wanted, err
	}
	if len(versions) == 0 {
		return wanted, db.ErrMoved // the version was removed, or another process drew the same id
	}
	// Ignore versions that wait for the purge: a domain that is added again starts empty.
	for _, v := range versions {
		if v.visible {
			continue
		}
		if _, err := r.tx.Exec(ctx, `UPDATE reports SET state = 'deleted' WHERE team_id = $1 AND id = $2`, r.team.id, v.id); err != nil {
			return wanted, err
		}
	}
	versions = slices.DeleteFunc(versions, func(v version) bool { return !v.visible })
	if at := slices.IndexFunc(versions, func(v version) bool { return v.same }); at >= 0 {
		receipt.ID, receipt.Status = versions[at].id, dmarcd.Duplicate
		return wanted, nil
	}
	at := slices.IndexFunc(versions, version.isCurrent)
	switch {
	case at < 0 || wanted.state == dmarcd.ReportHeld:
		return wanted, nil
	case !dmarcd.MayReplace(authentication, report.Standing, versions[at].authentication, versions[at].standing):
		return outcome{state: dmarcd.ReportHeld, heldReason: conflict(authentication, versions[at].authentication)}, nil
	}
	if many, err := r.replacesMany(ctx, versions[at]); err != nil || many {
		return outcome{state: dmarcd.ReportHeld, heldReason: tooManyReplaced}, err
	}
	receipt.Status = dmarcd.Replaced
	// Exclusion survives replacement.
	wanted.state = versions[at].state
	changes := []stateChange{{id: versions[at].id, from: versions[at].state, to: dmarcd.ReportReplaced}}
	return wanted, r.team.changeStates(ctx, r.tx, r.locks, r.changes, changes)
}

// tooManyReplaced is the reason why a report is held instead of replacing the stored version.
const tooManyReplaced = "This message replaces too many large reports at once. An editor can release it."

// replacesMany reports whether the current delivery would replace too many shares for one
// transaction if it replaced this version too. The first version may have any number of shares,
// further ones sharesPerStep together. After a version with too many, sharesLeft is 0: otherwise
// the shares of each of a thousand versions would be read.
func (r *reception) replacesMany(ctx context.Context, v version) (bool, error) {
	if v.state != dmarcd.ReportCounted {
		return false, nil // its counts do not have to be subtracted
	}
	if !r.replaces {
		r.replaces, r.sharesLeft = true, sharesPerStep
		return false, nil
	}
	var shares int64
	err := r.tx.QueryRow(ctx, `SELECT COUNT(*) FROM (SELECT n FROM shares WHERE team_id = $1 AND report_id = $2 LIMIT $3) AS first`,
		[]any{r.team.id, v.id, r.sharesLeft + 1}, &shares)
	many := shares > r.sharesLeft
	r.sharesLeft = max(0, r.sharesLeft-shares)
	return many, err
}

// conflict returns the reason why a report is held instead of replacing the stored version.
func conflict(received, stored dmarcd.Authentication) string {
	by := func(v dmarcd.Authentication) string {
		switch {
		case !v.Verified():
			return "unverified"
		case v.Domain == "":
			return "verified"
		}
		return "authenticated as " + v.Domain
	}
	return fmt.Sprintf("Conflict: another version of this report is stored, %s. This one is %s and does not replace it until an editor releases it.", by(stored), by(received))
}

// addHeldEvents adds an event for each domain with held reports in a delivery, with the first of
// them and their number. A report belongs to the first of its domains that the team has.
func (r *reception) addHeldEvents(delivery *dmarcd.Delivery, receipts []dmarcd.Receipt) {
	events := make(map[dmarcd.DomainID]*dmarcd.Event)
	var domains []dmarcd.DomainID // in the order of their reports
	for i, receipt := range receipts {
		owners := r.owned[&delivery.Reports[i]]
		at := slices.IndexFunc(owners, func(o owner) bool { return o.id != 0 })
		if receipt.Status != dmarcd.Held || at < 0 {
			continue
		}
		id := owners[at].id
		if e := events[id]; e != nil {
			e.Messages = max(e.Messages, 1) + 1
			continue
		}
		events[id] = &dmarcd.Event{Kind: dmarcd.HeldReport, EventData: dmarcd.EventData{
			Report: receipt.ID, Organization: db.Plain(receipt.Organization), Reason: receipt.Reason,
		}}
		domains = append(domains, id)
	}
	for _, id := range domains {
		r.team.addEvents(r.tx, id, r.now, *events[id])
	}
}

// visibleShare selects shares that are unclaimed or whose domain exists. $1 is the team, bound in
// the subquery too: Citus does not infer it from the query around it.
const visibleShare = `(shares.domain_id = 0 OR EXISTS
	(SELECT 1 FROM domains WHERE domains.id = shares.domain_id AND domains.team_id = $1 AND domains.deleted_at = 0))`

// insertShares inserts the shares and records of a report, and counts them unless its state
// excludes it.
func (r *reception) insertShares(id dmarcd.ReportID, report *dmarcd.NewReport, state dmarcd.ReportState, owners []owner) error {
	numbers := make(map[string]int, len(report.Shares))
	day := dmarcd.DayOf(report.Begin)
	for n, share := range report.Shares {
		if owner := owners[n].id; owner != 0 && state == dmarcd.ReportCounted {
			r.changes.add(tallyKey{owner, day}, countsOf(report, share), id)
		}
		numbers[share.From] = n
		if err := r.addShare(id, n, report, share, owners[n]); err != nil {
			return err
		}
	}
	if report.EachRecord == nil {
		return nil
	}
	seen := make(selectors)
	err := r.team.eachRecord(report, id, owners, numbers, seen, r.records.Add)
	if err == nil && state == dmarcd.ReportCounted {
		r.signers.merge(seen)
	}
	return err
}

func (r *reception) addShare(id dmarcd.ReportID, n int, report *dmarcd.NewReport, share dmarcd.Share, owner owner) error {
	from := nameText(share.From)
	values := append([]any{
		r.team.id, id, n, owner.id, report.Kind, dmarcd.DayOf(report.Begin), from, pathOf(from), pathOf(nameText(report.Domain)), share.Records,
	}, countValues(countsOf(report, share))...)
	return r.shares.Add(values...)
}

// eachRecord calls add with the row of each record, and adds its selectors to seen. numbers maps
// From domains to shares.
func (t *Team) eachRecord(report *dmarcd.NewReport, id dmarcd.ReportID, owners []owner, numbers map[string]int, seen selectors, add func(values ...any) error) error {
	day := dmarcd.DayOf(report.Begin)
	n := int64(0)
	for record, err := range report.EachRecord {
		if err != nil {
			return err
		}
		share, ok := numbers[record.HeaderFrom]
		if !ok {
			return fmt.Errorf("a record's From domain %q has no share", record.HeaderFrom)
		}
		// The driver's own types need no conversion.
		err = add(int64(t.id), int64(id), int64(share), n, record.Count, withoutControls(record.Source), db.Plain(string(record.Disposition)),
			db.Plain(string(record.DKIM)), db.Plain(string(record.SPF)), shape.EncodeRecord(record))
		if err != nil {
			return err
		}
		seen.note(owners[share], day, record.DKIMResults)
		n++
	}
	return nil
}
