package service_test

import (
	"crypto/rand"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/service"
)

// alertUses are the uses of alerts.
var alertUses = map[string]use{
	"OwnDigest": reads(func(_ *world, t *service.Team) (service.OwnDigest, error) { return t.OwnDigest(ctx) }),
	"SetOwnDigest": {
		needs: see, action: "digest.set", wants: dmarcd.ErrInvalid,
		team: func(_ *world, t *service.Team) error { return t.SetOwnDigest(ctx, dmarcd.DigestWeekly) },
		fails: func(_ *world, t *service.Team, _ *service.System) error {
			return t.SetOwnDigest(ctx, dmarcd.PolicyWeakened)
		},
	},
	"Alerts": reads(func(_ *world, t *service.Team) ([]dmarcd.Alert, error) {
		return t.Alerts(ctx, dmarcd.AlertFilter{}, 0, 10)
	}),
	"AlertRules": asks(func(_ *world, t *service.Team) (dmarcd.AlertRules, error) { return t.AlertRules(ctx) }),
	"SetAlertRules": {
		needs: remove, action: "alert.rules", wants: dmarcd.ErrInvalid,
		team: func(_ *world, t *service.Team) error {
			return t.SetAlertRules(ctx, dmarcd.AlertRules{Domains: []string{"Example.COM."}, Mutes: []dmarcd.Mute{{Domain: "Example.NET"}}})
		},
		fails: func(_ *world, t *service.Team, _ *service.System) error {
			return t.SetAlertRules(ctx, dmarcd.AlertRules{Quiet: &dmarcd.QuietHours{From: 60, To: 120, Zone: "Mars/Olympus"}})
		},
	},
	"TestAlert": {
		needs: remove, action: "alert.test",
		team: func(_ *world, t *service.Team) error { return finds(t.TestAlert(ctx)) },
	},
	"AlertGroups": asks(func(_ *world, t *service.Team) ([]dmarcd.AlertGroup, error) {
		return t.AlertGroups(ctx, dmarcd.AlertFilter{}, 0, 10, 5)
	}),
	"OpenAlerts": asks(func(_ *world, t *service.Team) (int, error) { return t.OpenAlerts(ctx, dmarcd.AlertFilter{}, 10) }),
	"AcknowledgeAlerts": {
		needs: change, action: "alert.acknowledge",
		prepare: func(w *world) {
			found := dmarcd.Detection{Kind: dmarcd.VolumeSpike, Day: 1, Subject: rand.Text()}
			w.must(w.store.Team(w.team.ID).SaveDetections(ctx, []dmarcd.Detection{found}, nil))
		},
		team: func(_ *world, t *service.Team) error { return finds(t.AcknowledgeAlerts(ctx, dmarcd.AlertFilter{})) },
	},
	"AcknowledgeAlert": {
		needs: change, action: "alert.acknowledge", wants: dmarcd.ErrNotFound,
		team: func(w *world, t *service.Team) error { return finds(t.AcknowledgeAlert(ctx, w.alert)) },
		fails: func(_ *world, t *service.Team, _ *service.System) error {
			return errorOf(t.AcknowledgeAlert(ctx, 1<<40))
		},
	},
}
