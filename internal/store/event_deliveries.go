package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store/db"
)

// deliveryTime is how long a delivery is retried.
const deliveryTime = 24 * time.Hour

// deliveriesStored is how long deliveries are stored.
const deliveriesStored = 30 * 24 * time.Hour

// deliver adds a delivery for each webhook that subscribes to one of the events, unless the
// rules suppress it. The caller holds the event counter, so webhooks do not change until the
// commit.
func (t *Team) deliver(ctx context.Context, tx tx, events []newEvent) error {
	webhooks, err := t.webhooks(ctx, tx)
	if err != nil || len(webhooks) == 0 {
		return err
	}
	now := t.store.now()
	var rows [][]any
	for i := range events {
		e := &events[i]
		if e.test != nil {
			rows = append(rows, []any{t.id, e.test.id, e.test.webhook, e.Seq, now.Unix(), unix(e.test.leaseUntil), now.Unix(), unix(e.test.leaseUntil), 1, true})
			continue
		}
		for _, w := range webhooks {
			if e.wantedBy(w) {
				rows = append(rows, []any{t.id, db.NewID(), w.ID, e.Seq, now.Unix(), unix(e.SendAt), unix(e.SendAt.Add(deliveryTime)), 0, 0, false})
			}
		}
	}
	_, err = tx.InsertMany(ctx, `INSERT INTO deliveries
		(team_id, id, webhook_id, seq, created_at, next_at, give_up_at, lease_until, attempts, test) VALUES `, rows, "")
	return err
}

// pending is the stored state of a delivery that is attempted again; Go distinguishes waiting and
// retrying.
const pending dmarcd.DeliveryState = "pending"

// testDelivery is the delivery of a test event to a single webhook, already claimed.
type testDelivery struct {
	id         dmarcd.DeliveryID
	webhook    dmarcd.WebhookID
	leaseUntil time.Time
}

// TestWebhook writes a test event for one webhook, and returns its delivery, claimed for the
// lease.
func (t *Team) TestWebhook(ctx context.Context, id dmarcd.WebhookID, lease time.Duration, audit ...dmarcd.AuditEntry) (dmarcd.ClaimedDelivery, error) {
	test := testDelivery{id: dmarcd.DeliveryID(db.NewID()), webhook: id, leaseUntil: t.store.now().Add(lease)}
	var webhook dmarcd.Webhook
	err := t.changeWebhooks(ctx, audit, id, func(tx tx) (err error) {
		if webhook, err = t.webhook(ctx, tx, id); err != nil {
			return err
		}
		tx.events[t.id] = append(tx.events[t.id], newEvent{
			Event: dmarcd.Event{ID: dmarcd.EventID(db.NewID()), At: t.store.now(), Kind: dmarcd.WebhookTest, EventData: dmarcd.EventData{Webhook: id}},
			test:  &test,
		})
		return nil
	})
	if err != nil {
		return dmarcd.ClaimedDelivery{}, err
	}
	delivery, err := t.Delivery(ctx, id, test.id)
	return dmarcd.ClaimedDelivery{Team: t.id, Webhook: webhook, Delivery: delivery, LeaseUntil: test.leaseUntil}, err
}

const deliverySelect = `SELECT deliveries.id, deliveries.webhook_id, deliveries.state, deliveries.created_at, deliveries.next_at, deliveries.give_up_at,
		deliveries.attempts, deliveries.test, deliveries.attempted_at, deliveries.status, deliveries.took_ms, deliveries.problem,
		events.seq, events.id, events.at, COALESCE(domains.name, ''), events.kind, events.document
	FROM deliveries JOIN events ON events.team_id = deliveries.team_id AND events.seq = deliveries.seq
		LEFT JOIN domains ON domains.team_id = events.team_id AND domains.id = events.domain_id
	WHERE deliveries.team_id = $1 AND (events.domain_id IS NULL OR domains.deleted_at = 0) `

func scanDelivery(scan db.Scanner) (dmarcd.WebhookDelivery, error) {
	var d dmarcd.WebhookDelivery
	var createdAt, nextAt, giveUpAt, attemptedAt, took int64
	event, err := scanEvent(scan.After(
		&d.ID, &d.Webhook, &d.State, &createdAt, &nextAt, &giveUpAt, &d.Attempts, &d.Test, &attemptedAt, &d.Status, &took, &d.Problem))
	d.Event, d.CreatedAt, d.NextAt, d.GiveUpAt = event, fromUnix(createdAt), fromUnix(nextAt), fromUnix(giveUpAt)
	d.At, d.Took = fromUnix(attemptedAt), time.Duration(took)*time.Millisecond
	if d.State == pending {
		d.State = dmarcd.DeliveryWaiting
		if attemptedAt > 0 {
			d.State = dmarcd.DeliveryRetrying
		}
	}
	return d, err
}

// Deliveries returns up to limit deliveries to a webhook, newest first, before that event
// number; 0 starts at the newest.
func (t *Team) Deliveries(ctx context.Context, webhook dmarcd.WebhookID, before int64, limit int) ([]dmarcd.WebhookDelivery, error) {
	before = cmp.Or(before, math.MaxInt64)
	return db.Collect(ctx, t.store, deliverySelect+`AND deliveries.webhook_id = $2 AND deliveries.seq < $3 ORDER BY deliveries.seq DESC LIMIT $4`,
		[]any{t.id, webhook, before, limit}, scanDelivery)
}

// LatestDeliveries returns the newest delivery to each webhook that has one.
func (t *Team) LatestDeliveries(ctx context.Context) (map[dmarcd.WebhookID]dmarcd.WebhookDelivery, error) {
	found, err := db.Collect(ctx, t.store, deliverySelect+`AND deliveries.seq IN (
			SELECT (SELECT MAX(newest.seq) FROM deliveries newest WHERE newest.team_id = $1 AND newest.webhook_id = webhooks.id)
			FROM webhooks WHERE webhooks.team_id = $1)
		ORDER BY deliveries.seq`, []any{t.id}, scanDelivery)
	latest := make(map[dmarcd.WebhookID]dmarcd.WebhookDelivery, len(found))
	for _, d := range found {
		latest[d.Webhook] = d
	}
	return latest, err
}

// Delivery returns a delivery to a webhook, or ErrNotFound.
func (t *Team) Delivery(ctx context.Context, webhook dmarcd.WebhookID, id dmarcd.DeliveryID) (dmarcd.WebhookDelivery, error) {
	return scanDelivery(db.Row(ctx, t.store, deliverySelect+`AND deliveries.webhook_id = $2 AND deliveries.id = $3`, t.id, webhook, id))
}

// RetryDelivery makes a delivery due now, in any state, with the full retry period.
func (t *Team) RetryDelivery(ctx context.Context, webhook dmarcd.WebhookID, id dmarcd.DeliveryID, audit ...dmarcd.AuditEntry) error {
	now := t.store.now()
	return t.change(ctx, audit, `UPDATE deliveries SET state = 'pending', attempts = 0, next_at = $4, give_up_at = $5, test = FALSE
		WHERE team_id = $1 AND webhook_id = $2 AND id = $3`, t.id, webhook, id, unix(now), unix(now.Add(deliveryTime)))
}

// deliveryClaim claims deliveries to the webhook $5. Those of deleted domains are left to the purge.
var deliveryClaim = rowClaim{
	table: "deliveries", due: "next_at", where: "state = 'pending'", then: ", seq",
	set: "attempts = attempts + 1, lease_until = $3, next_at = $3",
	claimed: ` AND webhook_id = $5 AND NOT EXISTS (SELECT 1 FROM events JOIN domains ON domains.team_id = $1 AND domains.id = events.domain_id
		WHERE events.team_id = $1 AND events.seq = deliveries.seq AND domains.deleted_at > 0)`,
	columns: "id",
}

// DeliveryTeams returns the teams with due deliveries, in any order.
func (s *Store) DeliveryTeams(ctx context.Context) ([]dmarcd.TeamID, error) {
	return s.dueTeams(ctx, deliveryClaim)
}

// QueuedDeliveries returns the number of pending deliveries.
func (s *Store) QueuedDeliveries(ctx context.Context) (n int64, err error) {
	err = s.own().longQueryRow(ctx, `SELECT count(*) FROM deliveries WHERE state = 'pending'`, nil, &n)
	return n, err
}

// ClaimDeliveries leases up to limit due deliveries and returns them: they are due again after
// lease unless SaveDelivery is called. At most perWebhook deliveries to one webhook are leased at a
// time, by all processes together. Due deliveries to a disabled webhook fail.
func (t *Team) ClaimDeliveries(ctx context.Context, lease time.Duration, perWebhook, limit int) ([]dmarcd.ClaimedDelivery, error) {
	now := t.store.now()
	until := now.Add(lease)
	var claimed []dmarcd.ClaimedDelivery
	err := t.retryTx(ctx, func(tx tx) error {
		claimed = nil
		due, err := db.Collect(ctx, tx, `SELECT DISTINCT webhook_id FROM deliveries WHERE team_id = $1 AND state = 'pending' AND next_at <= $2
			ORDER BY webhook_id`, []any{t.id, unix(now)}, db.Value[dmarcd.WebhookID])
		if err != nil {
			return err
		}
		webhooks := make([]claimable, len(due)) // locked in order of id
		for i, id := range due {
			if webhooks[i], err = t.claimWebhook(ctx, tx, id); err != nil {
				return err
			}
		}
		// Fewest leased first: a webhook that hangs leaves the slots to others.
		slices.SortStableFunc(webhooks, func(a, b claimable) int { return cmp.Compare(a.leased, b.leased) })
		for _, w := range webhooks {
			ids, err := t.claimFrom(ctx, tx, w.Webhook, now, until, min(perWebhook-w.leased, limit-len(claimed)))
			if err != nil {
				return err
			}
			for _, id := range ids {
				claimed = append(claimed, dmarcd.ClaimedDelivery{
					Team: t.id, Webhook: w.Webhook, Delivery: dmarcd.WebhookDelivery{ID: id, Webhook: w.ID}, LeaseUntil: until,
				})
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("claim deliveries: %w", err)
	}
	present := claimed[:0]
	for _, c := range claimed {
		c.Delivery, err = t.Delivery(ctx, c.Webhook.ID, c.Delivery.ID)
		switch {
		case errors.Is(err, dmarcd.ErrNotFound): // the webhook or the domain was removed meanwhile
		case err != nil:
			return nil, fmt.Errorf("read delivery: %w", err)
		default:
			present = append(present, c)
		}
	}
	return present, nil
}

// claimable is a webhook with the number of its leased deliveries.
type claimable struct {
	dmarcd.Webhook

	leased int
}

// claimWebhook returns a webhook, and makes other claims of its deliveries wait. It locks by
// UPDATE and not by FOR UPDATE, so that events that reference the webhook can be written
// meanwhile.
func (t *Team) claimWebhook(ctx context.Context, tx tx, id dmarcd.WebhookID) (w claimable, err error) {
	now := t.store.now()
	w.Webhook, err = scanWebhook(now)(db.Row(ctx, tx, `UPDATE webhooks SET claimed_at = $3 WHERE team_id = $1 AND id = $2 RETURNING `+webhookColumns,
		t.id, id, unix(now)))
	if err != nil {
		return w, err
	}
	return w, tx.QueryRow(ctx, `SELECT count(*) FROM deliveries WHERE team_id = $1 AND webhook_id = $2 AND state = 'pending' AND lease_until > $3`,
		[]any{t.id, id, unix(now)}, &w.leased)
}

func (t *Team) claimFrom(ctx context.Context, tx tx, webhook dmarcd.Webhook, now, until time.Time, limit int) ([]dmarcd.DeliveryID, error) {
	if !webhook.Enabled() {
		_, err := tx.Exec(ctx, `UPDATE deliveries SET state = 'not_sent', problem = 'The channel is off.'
			WHERE team_id = $1 AND id IN (SELECT id FROM deliveries WHERE team_id = $1 AND webhook_id = $2 AND state = 'pending' AND next_at <= $3
				LIMIT $4)`, t.id, webhook.ID, unix(now), logRows)
		return nil, err
	}
	if limit <= 0 {
		return nil, nil
	}
	return claimRows(ctx, tx, deliveryClaim, until, map[dmarcd.TeamID]int{t.id: limit}, db.Value[dmarcd.DeliveryID], int64(webhook.ID))
}

// SaveDelivery saves the result of an attempt: delivered, retrying at next, or not sent if next is zero.
// It disables the webhook, with an event, if disable gives a reason or the webhook has failed for
// longer than disableAfter. ErrConflict means that the lease expired and another process has the
// delivery.
func (t *Team) SaveDelivery(ctx context.Context, c dmarcd.ClaimedDelivery, result dmarcd.DeliveryResult, next time.Time, disable string, disableAfter time.Duration) error {
	state := pending
	switch {
	case result.Problem == "":
		state = dmarcd.DeliveryDelivered
	case next.IsZero():
		state = dmarcd.DeliveryNotSent
	}
	return t.tx(ctx, func(tx tx) error {
		if !c.Delivery.Test { // first, since claims lock webhooks before deliveries, too
			err := t.saveHealth(ctx, tx, c.Webhook.ID, result, disable, disableAfter)
			if err != nil && !errors.Is(err, dmarcd.ErrNotFound) { // without the webhook there is no delivery either
				return err
			}
		}
		err := tx.ExecOr(ctx, errDeliveryTaken, `UPDATE deliveries SET state = $4, next_at = $5, lease_until = 0, attempted_at = $6, status = $7, took_ms = $8, problem = $9
			WHERE team_id = $1 AND id = $2 AND state = 'pending' AND lease_until = $3`,
			t.id, c.Delivery.ID, unix(c.LeaseUntil), state, unix(next), unix(result.At), result.Status, result.Took.Milliseconds(), result.Problem)
		if err == nil && state == dmarcd.DeliveryDelivered {
			_, err = tx.Exec(ctx, `UPDATE alerts SET delivered_at = $3 WHERE team_id = $1 AND seq = $2 AND delivered_at = 0`,
				t.id, c.Delivery.Event.Seq, unix(t.store.now()))
		}
		return err
	})
}

var errDeliveryTaken = fmt.Errorf("%w: another process has the delivery", dmarcd.ErrConflict)

// saveHealth records success or failure of a webhook, and disables it after long failure.
func (t *Team) saveHealth(ctx context.Context, tx tx, id dmarcd.WebhookID, result dmarcd.DeliveryResult, disable string, disableAfter time.Duration) error {
	now := t.store.now()
	if result.Problem == "" {
		_, err := tx.Exec(ctx, `UPDATE webhooks SET failing_since = 0 WHERE team_id = $1 AND id = $2 AND failing_since > 0`, t.id, id)
		return err
	}
	var failingSince, disabledAt int64
	err := tx.QueryRow(ctx, `UPDATE webhooks SET failing_since = CASE WHEN failing_since = 0 THEN $3 ELSE failing_since END
		WHERE team_id = $1 AND id = $2 RETURNING failing_since, disabled_at`, []any{t.id, id, unix(now)}, &failingSince, &disabledAt)
	if err != nil || disabledAt > 0 {
		return err
	}
	if disable == "" && now.Sub(fromUnix(failingSince)) >= disableAfter {
		disable = fmt.Sprintf("All deliveries failed for %d days. The last failure: %s", int(disableAfter/(24*time.Hour)), result.Problem)
	}
	if disable == "" {
		return nil
	}
	if _, err := tx.Exec(ctx, `UPDATE webhooks SET disabled_at = $3, disabled_reason = $4, notify_at = $3 WHERE team_id = $1 AND id = $2`, t.id, id, unix(now), disable); err != nil {
		return err
	}
	t.addEvents(tx, 0, now, dmarcd.Event{Kind: dmarcd.WebhookDisabled, EventData: dmarcd.EventData{Webhook: id, Reason: disable}})
	return nil
}

// expireDeliveries removes old deliveries in any state.
func (t *Team) expireDeliveries(ctx context.Context, tx tx, before time.Time) (bool, error) {
	removed, err := tx.Exec(ctx, `DELETE FROM deliveries WHERE team_id = $1 AND id IN
		(SELECT id FROM deliveries WHERE team_id = $1 AND created_at < $2 AND state <> 'pending' ORDER BY created_at LIMIT $3)`, t.id, unix(before), purgeRows)
	return removed >= purgeRows, err
}

// EachNotice calls notify with each disabled webhook whose owners have not been notified yet. After
// an error of notify the team waits, see eachTeam.
func (s *Store) EachNotice(ctx context.Context, notify func(*Team, dmarcd.Webhook) error) error {
	_, err := s.eachTeam(ctx, "notices of disabled webhooks", func(t *Team) (bool, error) { return false, t.eachNotice(ctx, notify) },
		`SELECT DISTINCT team_id + 0 FROM webhooks WHERE notify_at > 0`)
	return err
}

func (t *Team) eachNotice(ctx context.Context, notify func(*Team, dmarcd.Webhook) error) error {
	webhooks, err := db.Collect(ctx, t.store, `SELECT `+webhookColumns+` FROM webhooks WHERE team_id = $1 AND notify_at > 0`,
		[]any{t.id}, scanWebhook(t.store.now()))
	if err != nil {
		return err
	}
	for _, w := range webhooks {
		if err := notify(t, w); err != nil {
			return err
		}
		if _, err := t.exec(ctx, `UPDATE webhooks SET notify_at = 0 WHERE team_id = $1 AND id = $2`, t.id, w.ID); err != nil {
			return err
		}
	}
	return nil
}

// DigestTeams returns the teams with an enabled webhook for this kind of digest that was added
// before the digest was due, whose digest up to the day last is not written yet.
func (s *Store) DigestTeams(ctx context.Context, kind dmarcd.EventKind, last dmarcd.Day, due time.Time) ([]dmarcd.TeamID, error) {
	return s.teamIDs(ctx, `SELECT DISTINCT webhooks.team_id + 0 FROM webhooks
		WHERE webhooks.disabled_at = 0 AND webhooks.created_at < $3 AND REPLACE(webhooks.kinds, $1, '') <> webhooks.kinds
			AND NOT EXISTS (SELECT 1 FROM alerts WHERE alerts.team_id = webhooks.team_id AND alerts.domain_id = 0 AND alerts.kind = $1
				AND alerts.subject = '' AND alerts.first_day = $2)`, kind, last, unix(due))
}
