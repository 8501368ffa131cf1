package store

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store/db"
)

// alertState is the state of an alert: the worst of its deliveries, if the rules passed it.
const alertState = `CASE WHEN alerts.state <> 'passed' THEN alerts.state ELSE COALESCE(
		(SELECT CASE MAX(CASE WHEN deliveries.state = 'not_sent' THEN 3 WHEN deliveries.state = 'delivered' THEN 1 WHEN deliveries.attempted_at > 0 THEN 4 ELSE 2 END)
				WHEN 4 THEN 'retrying' WHEN 3 THEN 'not_sent' WHEN 2 THEN 'waiting' WHEN 1 THEN 'delivered' END
			FROM deliveries WHERE deliveries.team_id = $1 AND deliveries.seq = alerts.seq),
		CASE WHEN alerts.delivered_at > 0 THEN 'delivered' ELSE 'not_sent' END) END`

const alertSelect = `SELECT alerts.level, ` + alertState + `, alerts.reason, alerts.send_at,
		COALESCE((SELECT MAX(deliveries.problem) FROM deliveries WHERE deliveries.team_id = $1 AND deliveries.seq = alerts.seq
			AND deliveries.state <> 'delivered'), ''),
		COALESCE((SELECT MIN(deliveries.next_at) FROM deliveries WHERE deliveries.team_id = $1 AND deliveries.seq = alerts.seq
			AND deliveries.state = 'pending'), 0), COALESCE(alerts.first_day, 0), COALESCE(alerts.last_day, 0),
		alerts.acknowledged_at, alerts.acknowledged_by, alerts.open, events.seq, events.id, events.at, COALESCE(domains.name, ''), events.kind, events.document
	FROM alerts JOIN events ON events.team_id = $1 AND events.seq = alerts.seq
		LEFT JOIN domains ON domains.team_id = $1 AND domains.id = events.domain_id
	WHERE alerts.team_id = $1 AND (events.domain_id IS NULL OR domains.deleted_at = 0) `

func scanAlert(scan db.Scanner) (dmarcd.Alert, error) {
	var a dmarcd.Alert
	var sendAt, nextAt, acknowledgedAt int64
	var problem string
	event, err := scanEvent(scan.After(&a.Level, &a.State, &a.Reason, &sendAt, &problem, &nextAt, &a.First, &a.Last, &acknowledgedAt, &a.AcknowledgedBy, &a.Open))
	a.Event, a.SendAt, a.AcknowledgedAt = event, fromUnix(sendAt), fromUnix(acknowledgedAt)
	switch a.State {
	case dmarcd.AlertRetrying:
		a.Reason, a.SendAt = problem, fromUnix(nextAt)
	case dmarcd.AlertNotSent:
		a.Reason = cmp.Or(problem, dmarcd.NoChannel)
	}
	return a, err
}

// alertConditions returns the SQL conditions of the filter and of the tag of the view on alerts alone,
// and args with their arguments appended; $1 is the team.
func (t *Team) alertConditions(f dmarcd.AlertFilter, args []any) (string, []any) {
	var b strings.Builder
	add := func(condition string, value any) {
		args = append(args, value)
		fmt.Fprintf(&b, condition, len(args))
	}
	if f.Open {
		b.WriteString(` AND alerts.open`)
	}
	if f.Kind != "" {
		add(` AND alerts.kind = $%d`, f.Kind)
	}
	if f.State != "" {
		add(` AND `+alertState+` = $%d`, f.State)
	}
	if f.Through > 0 {
		add(` AND alerts.seq <= $%d`, f.Through)
	}
	if f.Days != (dmarcd.Days{}) {
		from, before := f.Days.Times()
		args = append(args, from, before)
		fmt.Fprintf(&b, ` AND EXISTS (SELECT 1 FROM events WHERE events.team_id = $1 AND events.seq = alerts.seq AND events.at >= $%d AND events.at < $%d)`, len(args)-1, len(args))
	}
	switch {
	case f.NoDomain:
		b.WriteString(` AND alerts.domain_id = 0`)
	case f.Domain != "":
		add(` AND alerts.domain_id IN (SELECT id FROM domains WHERE team_id = $1 AND deleted_at = 0 AND name = $%d)`, db.Plain(f.Domain))
	case t.tag != "":
		var tagged string
		tagged, args = t.tagged(args)
		b.WriteString(` AND alerts.domain_id IN (SELECT domains.id FROM domains WHERE domains.team_id = $1 AND domains.deleted_at = 0` + tagged + `)`)
	default:
		b.WriteString(` AND (alerts.domain_id = 0 OR alerts.domain_id IN (SELECT id FROM domains WHERE team_id = $1 AND deleted_at = 0))`)
	}
	return b.String(), args
}

// Alerts returns up to limit alerts, newest first, of events with numbers below before; 0
// starts at the newest.
func (t *Team) Alerts(ctx context.Context, filter dmarcd.AlertFilter, before int64, limit int) ([]dmarcd.Alert, error) {
	conditions, args := t.alertConditions(filter, []any{t.id, cmp.Or(before, math.MaxInt64), limit})
	return db.Collect(ctx, t.store, alertSelect+`AND alerts.seq < $2`+conditions+` ORDER BY alerts.seq DESC LIMIT $3`, args, scanAlert)
}

// Alert returns the alert of the event with a number, or ErrNotFound.
func (t *Team) Alert(ctx context.Context, seq int64) (dmarcd.Alert, error) {
	return scanAlert(db.Row(ctx, t.store, alertSelect+`AND alerts.seq = $2`, t.id, seq))
}

// OpenAlerts returns the number of alerts that match the filter, at most limit.
func (t *Team) OpenAlerts(ctx context.Context, filter dmarcd.AlertFilter, limit int) (int, error) {
	filter.Open = true
	conditions, args := t.alertConditions(filter, []any{t.id, limit})
	return db.Value[int](db.Row(ctx, t.store, `SELECT count(*) FROM (SELECT seq FROM alerts WHERE alerts.team_id = $1`+conditions+` LIMIT $2) AS found`, args...))
}

// OpenAlertsOf returns the numbers of open alerts about domains; one without any is missing.
func (t *Team) OpenAlertsOf(ctx context.Context, domains []dmarcd.DomainID) (map[dmarcd.DomainID]int, error) {
	counts := make(map[dmarcd.DomainID]int)
	for some := range slices.Chunk(domains, rowsPerQuery) {
		list, args := db.In([]any{t.id}, some)
		found, err := db.CollectMap[dmarcd.DomainID, int](ctx, t.store, `SELECT domain_id, count(*) FROM alerts
			WHERE team_id = $1 AND open AND domain_id IN `+list+` GROUP BY domain_id`, args...)
		if err != nil {
			return nil, err
		}
		maps.Copy(counts, found)
	}
	return counts, nil
}

// AlertGroups returns up to limit groups of open alerts that match the filter, those with the newest
// alert first, whose newest alert is older than before; 0 starts at the newest. Each has up to each alerts.
func (t *Team) AlertGroups(ctx context.Context, filter dmarcd.AlertFilter, before int64, limit, each int) ([]dmarcd.AlertGroup, error) {
	filter.Open = true
	conditions, args := t.alertConditions(filter, []any{t.id, cmp.Or(before, math.MaxInt64), limit})
	type key struct {
		domain dmarcd.DomainID
		kind   dmarcd.EventKind
	}
	var keys []key
	groups, err := db.Collect(ctx, t.store, `SELECT alerts.domain_id, alerts.kind, count(*), MAX(alerts.seq) FROM alerts
		WHERE alerts.team_id = $1`+conditions+` GROUP BY alerts.domain_id, alerts.kind HAVING MAX(alerts.seq) < $2 ORDER BY MAX(alerts.seq) DESC LIMIT $3`,
		args, func(scan db.Scanner) (g dmarcd.AlertGroup, err error) {
			var k key
			if err := scan(&k.domain, &g.Kind, &g.Count, &g.Last); err != nil {
				return g, err
			}
			k.kind = g.Kind
			keys = append(keys, k)
			return g, nil
		})
	for i, k := range keys {
		if err != nil {
			break
		}
		conditions, args := t.alertConditions(filter, []any{t.id, k.domain, k.kind, each})
		groups[i].Alerts, err = db.Collect(ctx, t.store, alertSelect+`AND alerts.domain_id = $2 AND alerts.kind = $3`+conditions+`
			ORDER BY alerts.seq DESC LIMIT $4`, args, scanAlert)
		if len(groups[i].Alerts) > 0 {
			groups[i].Domain = groups[i].Alerts[0].Event.Domain
		}
	}
	// A domain may have been deleted between the queries.
	return slices.DeleteFunc(groups, func(g dmarcd.AlertGroup) bool { return len(g.Alerts) == 0 }), err
}

// AcknowledgeAlert records who acknowledged an alert. A second acknowledgement changes nothing.
func (t *Team) AcknowledgeAlert(ctx context.Context, seq int64, by string, audit ...dmarcd.AuditEntry) error {
	return t.change(ctx, audit, `UPDATE alerts SET open = FALSE,
			acknowledged_by = CASE WHEN acknowledged_at = 0 THEN $3 ELSE acknowledged_by END,
			acknowledged_at = CASE WHEN acknowledged_at = 0 THEN $4 ELSE acknowledged_at END
		WHERE team_id = $1 AND seq = $2`, t.id, seq, by, unix(t.store.now()))
}

// AcknowledgeAlerts records who acknowledged all open alerts that match the filter, and returns their
// number. It writes the audit entry that describe returns for the number, none for 0.
func (t *Team) AcknowledgeAlerts(ctx context.Context, filter dmarcd.AlertFilter, by string, describe func(n int64) dmarcd.AuditEntry) (n int64, err error) {
	filter.Open = true
	err = t.tx(ctx, func(tx tx) error {
		conditions, args := t.alertConditions(filter, []any{t.id, by, unix(t.store.now())})
		if n, err = tx.Exec(ctx, `UPDATE alerts SET open = FALSE, acknowledged_by = $2, acknowledged_at = $3 WHERE alerts.team_id = $1`+conditions, args...); err != nil || n == 0 {
			return err
		}
		tx.note(t.id, "", describe(n))
		return nil
	})
	return n, err
}
