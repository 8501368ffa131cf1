package service

import (
	"context"

	"github.com/dmarcd/dmarcd"
)

// Alerts returns up to limit alerts, newest first, of events with numbers below before; 0
// begins with the newest.
func (t *Team) Alerts(ctx context.Context, filter dmarcd.AlertFilter, before int64, limit int) ([]dmarcd.Alert, error) {
	return see(t, func() ([]dmarcd.Alert, error) { return t.team.Alerts(ctx, filter, before, limit) })
}

// AcknowledgeAlert records that the actor took note of an alert, and returns it.
func (t *Team) AcknowledgeAlert(ctx context.Context, seq int64) (dmarcd.Alert, error) {
	if err := t.may(dmarcd.RightChange); err != nil {
		return dmarcd.Alert{}, err
	}
	alert, err := t.team.Alert(ctx, seq)
	if err != nil {
		return dmarcd.Alert{}, err
	}
	entry := t.actor.to("alert.acknowledge", alert.Event.ID.String(), string(alert.Event.Kind))
	if err := t.team.AcknowledgeAlert(ctx, seq, t.actor.entry.Actor, entry); err != nil {
		return dmarcd.Alert{}, err
	}
	return t.team.Alert(ctx, seq)
}

// TestAlert sends a test event to all enabled webhooks except those of digests, and returns its
// alert. It is a *ThrottledError after many tests.
func (t *Team) TestAlert(ctx context.Context) (dmarcd.Alert, error) {
	if err := t.mayConnect(); err != nil {
		return dmarcd.Alert{}, err
	}
	if err := t.mayTest(t.team.ID().String()); err != nil {
		return dmarcd.Alert{}, err
	}
	return t.team.TestAlert(ctx, t.actor.to("alert.test", "", ""))
}

// AlertRules returns the rules that decide which events are sent.
func (t *Team) AlertRules(ctx context.Context) (dmarcd.AlertRules, error) {
	return see(t, func() (dmarcd.AlertRules, error) { return t.team.AlertRules(ctx) })
}

// SetAlertRules replaces the rules. Rules that cannot be right are an *dmarcd.InvalidError.
func (t *Team) SetAlertRules(ctx context.Context, rules dmarcd.AlertRules) error {
	if err := t.mayConnect(); err != nil {
		return err
	}
	var err error
	for i, name := range rules.Domains {
		if rules.Domains[i], err = dmarcd.ParseName(name); err != nil {
			return err
		}
	}
	for i, tag := range rules.Tags {
		if rules.Tags[i], err = dmarcd.ParseTag(tag); err != nil {
			return err
		}
	}
	for i, m := range rules.Mutes {
		if m.Domain == "" {
			continue
		}
		if rules.Mutes[i].Domain, err = dmarcd.ParseName(m.Domain); err != nil {
			return err
		}
	}
	if err := rules.Validate(); err != nil {
		return err
	}
	return t.team.SetAlertRules(ctx, rules, t.actor.to("alert.rules", "", ""))
}
