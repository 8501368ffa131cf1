package store_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store"
)

// alertAttacks are the attacks on alerts. The victim has none detected: what an attack
// changes of its events is seen in its state.
var alertAttacks = map[string]func(ctx context.Context, other *store.Team, v victim) error{
	"AlertRules": func(ctx context.Context, other *store.Team, _ victim) error {
		rules, err := other.AlertRules(ctx)
		return wantNone(len(rules.Mutes), err)
	},
	"SetAlertRules": func(ctx context.Context, other *store.Team, v victim) error {
		return other.SetAlertRules(ctx, dmarcd.AlertRules{Mutes: []dmarcd.Mute{{Domain: v.domain.Name}}})
	},
	"Alerts": func(ctx context.Context, other *store.Team, _ victim) error {
		alerts, err := other.Alerts(ctx, dmarcd.AlertFilter{}, 0, 100)
		return wantNone(len(alerts), err)
	},
	"Alert": func(ctx context.Context, other *store.Team, _ victim) error {
		_, err := other.Alert(ctx, 1)
		return wantNotFound(err)
	},
	"AcknowledgeAlert": func(ctx context.Context, other *store.Team, _ victim) error {
		return wantNotFound(other.AcknowledgeAlert(ctx, 1, "other"))
	},
	"TestAlert": func(ctx context.Context, other *store.Team, _ victim) error {
		_, err := other.TestAlert(ctx)
		return err
	},
	"Incidents": func(ctx context.Context, other *store.Team, _ victim) error {
		incidents, err := other.Incidents(ctx, 0)
		return wantNone(len(incidents), err)
	},
	"SaveDetections": func(ctx context.Context, other *store.Team, v victim) error {
		err := other.SaveDetections(ctx, []dmarcd.Detection{{Kind: dmarcd.VolumeSpike, Domain: v.domain.ID, Day: 1}}, []dmarcd.Incident{{Seq: 1, Last: 9}})
		if err != nil {
			return err
		}
		events, err := other.Events(ctx, store.EventFilter{}, 0, 10)
		return wantNone(len(events), err)
	},
	"SaveScan": func(ctx context.Context, other *store.Team, v victim) error {
		err := other.SaveScan(ctx, dmarcd.AlertScan{}, 0, []dmarcd.Detection{{Kind: dmarcd.VolumeSpike, Domain: v.domain.ID, Day: 1}}, nil)
		if !errors.Is(err, dmarcd.ErrConflict) {
			return fmt.Errorf("got %w, want ErrConflict", err)
		}
		return nil
	},
	"ScannedMail": func(ctx context.Context, other *store.Team, _ victim) error {
		mail, err := other.ScannedMail(ctx, dmarcd.AlertScan{Full: true}, 100)
		return wantNone(len(mail), err)
	},
	"RejectedByDay": func(ctx context.Context, other *store.Team, _ victim) error {
		counts, err := other.RejectedByDay(ctx, 0)
		return wantNone(len(counts), err)
	},
}
