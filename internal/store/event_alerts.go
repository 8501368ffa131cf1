package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/phrase"
	"github.com/dmarcd/dmarcd/internal/store/db"
	"github.com/dmarcd/dmarcd/internal/store/shape"
)

// AlertRules returns the alert rules of the team.
func (t *Team) AlertRules(ctx context.Context) (dmarcd.AlertRules, error) {
	return t.alertRules(ctx, t.store)
}

func (t *Team) alertRules(ctx context.Context, from db.Querier) (dmarcd.AlertRules, error) {
	var document string
	err := from.QueryRow(ctx, `SELECT document FROM alert_rules WHERE team_id = $1`, []any{t.id}, &document)
	if errors.Is(err, dmarcd.ErrNotFound) {
		return dmarcd.AlertRules{}, nil
	}
	if err != nil {
		return dmarcd.AlertRules{}, err
	}
	return shape.DecodeAlertRules(document)
}

// SetAlertRules replaces the alert rules. They apply to new events only.
func (t *Team) SetAlertRules(ctx context.Context, rules dmarcd.AlertRules, audit ...dmarcd.AuditEntry) error {
	return t.change(ctx, audit, `INSERT INTO alert_rules (team_id, document) VALUES ($1, $2)
		ON CONFLICT (team_id) DO UPDATE SET document = excluded.document`, t.id, shape.EncodeAlertRules(rules))
}

// alertSubject returns the subject that distinguishes alerts of the same kind and domain.
func alertSubject(e dmarcd.Event) string {
	subject := cmp.Or(e.Subject, e.Finding)
	if subject == "" && e.Webhook != 0 {
		subject = e.Webhook.String()
	}
	return keyText(subject)
}

// decide stores the decision of the rules on new events, and sets it in them. The caller holds the
// row of event_counters, so that a team's events are decided in order.
func (t *Team) decide(ctx context.Context, tx tx, events []newEvent) error {
	rules, err := t.alertRules(ctx, tx)
	if err != nil {
		return err
	}
	now := t.store.now()
	recent := recentAlerts{team: t, tx: tx, same: make(map[alertKey]time.Time), kinds: make(map[dmarcd.EventKind]time.Time), tags: make(map[dmarcd.DomainID][]string)}
	var rows [][]any
	for i := range events {
		e := &events[i]
		if e.test != nil {
			continue
		}
		key := alertKey{e.Kind, e.domain, alertSubject(e.Event)}
		last, err := recent.of(ctx, rules, key)
		if err != nil {
			return err
		}
		e.Decision = rules.Decide(e.Event, now, last)
		if e.State == dmarcd.AlertPassed {
			recent.same[key], recent.kinds[e.Kind] = e.SendAt, e.SendAt
		}
		var day any
		if e.detected {
			day = e.Day
		}
		rows = append(rows, []any{t.id, e.Seq, e.Kind, e.domain, key.subject, day, day, e.Level(), e.State, e.Reason, unix(e.SendAt), e.Kind.NeedsReaction()})
		if resolved := e.Kind.Resolves(); resolved != "" {
			_, err := tx.Exec(ctx, `UPDATE alerts SET open = FALSE WHERE team_id = $1 AND domain_id = $2 AND kind = $3 AND open AND subject = $4`,
				t.id, e.domain, resolved, key.subject)
			if err != nil {
				return err
			}
		}
	}
	_, err = tx.InsertMany(ctx, `INSERT INTO alerts
		(team_id, seq, kind, domain_id, subject, first_day, last_day, level, state, reason, send_at, open) VALUES `, rows, "")
	return err
}

// alertKey identifies alerts for the cool-down.
type alertKey struct {
	kind    dmarcd.EventKind
	domain  dmarcd.DomainID
	subject string
}

// recentAlerts caches when alerts were last sent, and the tags of domains.
type recentAlerts struct {
	team  *Team
	tx    tx
	same  map[alertKey]time.Time
	kinds map[dmarcd.EventKind]time.Time
	tags  map[dmarcd.DomainID][]string
}

// of returns what the rules need to decide on an alert.
func (r *recentAlerts) of(ctx context.Context, rules dmarcd.AlertRules, key alertKey) (recent dmarcd.RecentAlerts, err error) {
	if rules.CoolDown > 0 {
		if _, known := r.same[key]; !known {
			if r.same[key], err = r.last(ctx, ` AND domain_id = $3 AND subject = $4`, key.kind, key.domain, key.subject); err != nil {
				return recent, err
			}
		}
		recent.Same = r.same[key]
	}
	if rules.Group > 0 {
		if _, known := r.kinds[key.kind]; !known {
			if r.kinds[key.kind], err = r.last(ctx, ``, key.kind); err != nil {
				return recent, err
			}
		}
		recent.Kind = r.kinds[key.kind]
	}
	if rules.Tags != nil && key.domain != 0 {
		if _, known := r.tags[key.domain]; !known {
			var text string
			if err := r.tx.QueryRow(ctx, `SELECT tags FROM domains WHERE team_id = $1 AND id = $2`, []any{r.team.id, key.domain}, &text); err != nil {
				return recent, err
			}
			r.tags[key.domain] = strings.Fields(text)
		}
		recent.Tags = r.tags[key.domain]
	}
	return recent, nil
}

func (r *recentAlerts) last(ctx context.Context, condition string, args ...any) (time.Time, error) {
	var at int64
	err := r.tx.QueryRow(ctx, `SELECT COALESCE(MAX(send_at), 0) FROM alerts WHERE team_id = $1 AND kind = $2 AND state = 'passed'`+condition,
		append([]any{r.team.id}, args...), &at)
	return fromUnix(at), err
}

// TestAlert writes an event for all channels that are on, except those of digests alone, and returns its
// alert.
func (t *Team) TestAlert(ctx context.Context, audit ...dmarcd.AuditEntry) (dmarcd.Alert, error) {
	id := dmarcd.EventID(db.NewID())
	err := t.audited(ctx, audit, id.String(), func(tx tx) error {
		tx.events[t.id] = append(tx.events[t.id], newEvent{Event: dmarcd.Event{ID: id, At: t.store.now(), Kind: dmarcd.AlertTest}})
		return nil
	})
	if err != nil {
		return dmarcd.Alert{}, err
	}
	alerts, err := t.Alerts(ctx, dmarcd.AlertFilter{Kind: dmarcd.AlertTest}, 0, 10)
	at := slices.IndexFunc(alerts, func(a dmarcd.Alert) bool { return a.Event.ID == id })
	if err != nil || at < 0 {
		return dmarcd.Alert{}, cmp.Or(err, dmarcd.ErrNotFound)
	}
	return alerts[at], nil
}

// Incidents returns the incidents whose last day is since or later.
func (t *Team) Incidents(ctx context.Context, since dmarcd.Day) ([]dmarcd.Incident, error) {
	return db.Collect(ctx, t.store, `SELECT seq, kind, domain_id, subject, first_day, last_day FROM alerts
		WHERE team_id = $1 AND last_day >= $2 ORDER BY seq`, []any{t.id, since}, func(scan db.Scanner) (i dmarcd.Incident, err error) {
		return i, scan(&i.Seq, &i.Kind, &i.Domain, &i.Subject, &i.First, &i.Last)
	})
}

// SaveDetections writes events for new incidents, and extends the last day of known ones.
func (t *Team) SaveDetections(ctx context.Context, fresh []dmarcd.Detection, extended []dmarcd.Incident) error {
	if len(fresh) == 0 && len(extended) == 0 {
		return nil
	}
	return t.tx(ctx, func(tx tx) error { return t.saveDetections(ctx, tx, fresh, extended) })
}

func (t *Team) saveDetections(ctx context.Context, tx tx, fresh []dmarcd.Detection, extended []dmarcd.Incident) error {
	for _, i := range extended {
		if _, err := tx.Exec(ctx, `UPDATE alerts SET last_day = $3 WHERE team_id = $1 AND seq = $2 AND last_day < $3`, t.id, i.Seq, i.Last); err != nil {
			return err
		}
	}
	for _, d := range fresh {
		e := d.Event()
		e.ID, e.At = dmarcd.EventID(db.NewID()), t.store.now()
		tx.events[t.id] = append(tx.events[t.id], newEvent{Event: e, domain: d.Domain, detected: true})
	}
	return nil
}

// SendAlertGroups sends waiting alerts, those of each kind as one event. Errors of one
// team do not affect others, see eachTeam.
func (s *Store) SendAlertGroups(ctx context.Context) (more bool, err error) {
	return s.eachTeam(ctx, "alert groups", func(t *Team) (bool, error) { return false, t.sendAlertGroups(ctx) },
		`SELECT DISTINCT team_id + 0 FROM alerts WHERE state = 'waiting' AND send_at <= $1`, unix(s.now()))
}

func (t *Team) sendAlertGroups(ctx context.Context) error {
	return t.tx(ctx, func(tx tx) error {
		due, err := db.Collect(ctx, tx, alertSelect+`AND alerts.state = 'waiting' AND alerts.send_at <= $2 ORDER BY alerts.seq LIMIT $3`,
			[]any{t.id, unix(t.store.now()), maxGroup}, scanAlert)
		if err != nil {
			return err
		}
		groups := make(map[dmarcd.EventKind][]dmarcd.Event)
		for _, a := range due {
			groups[a.Event.Kind] = append(groups[a.Event.Kind], a.Event)
			_, err := tx.Exec(ctx, `UPDATE alerts SET state = 'grouped' WHERE team_id = $1 AND seq = $2 AND state = 'waiting'`, t.id, a.Event.Seq)
			if err != nil {
				return err
			}
		}
		for _, kind := range dmarcd.EventKinds() {
			if of := groups[kind]; len(of) > 0 {
				tx.events[t.id] = append(tx.events[t.id], newEvent{Event: groupEvent(kind, of, t.store.now()), standsFor: of})
			}
		}
		return nil
	})
}

// maxGroup is the number of alerts grouped in one transaction, maxGroupLines the number
// of them listed in the event.
const maxGroup, maxGroupLines = 500, 10

// groupEvent returns the event that replaces others of a kind.
func groupEvent(kind dmarcd.EventKind, of []dmarcd.Event, at time.Time) dmarcd.Event {
	var lines []string
	level := dmarcd.LevelInfo
	for i, e := range of {
		if i < maxGroupLines {
			lines = append(lines, phrase.Event(e))
		}
		if l := e.Level(); l == dmarcd.LevelError || l == dmarcd.LevelWarning && level == dmarcd.LevelInfo {
			level = l
		}
	}
	if len(of) > maxGroupLines {
		lines = append(lines, fmt.Sprintf("And %d more.", len(of)-maxGroupLines))
	}
	return dmarcd.Event{ID: dmarcd.EventID(db.NewID()), At: at, Kind: dmarcd.AlertsGrouped, EventData: dmarcd.EventData{
		Level: level, Subject: string(kind), Reason: strings.Join(lines, " "), Measured: dmarcd.Measured{Messages: int64(len(of))},
	}}
}
