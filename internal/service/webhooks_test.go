package service_test

import (
	"errors"
	"maps"
	"testing"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// joined returns the entries of both maps.
func joined(a, b map[string]use) map[string]use {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// webhookUses are the uses of webhooks.
var webhookUses = map[string]use{
	"SelfTest": {
		needs: change, action: "", wants: dmarcd.ErrNotFound,
		team: func(w *world, t *service.Team) error {
			test, err := t.SelfTest(ctx, "example.com")
			if err == nil && (len(test.Stages) != 1 || test.Passed()) {
				w.Errorf("got %+v", test)
			}
			return err
		},
		fails: func(_ *world, t *service.Team, _ *service.System) error {
			return errorOf(t.SelfTest(ctx, "elsewhere.example"))
		},
	},
	"Webhooks":        reads(func(_ *world, t *service.Team) ([]dmarcd.Webhook, error) { return t.Webhooks(ctx) }),
	"EnabledWebhooks": reads(func(_ *world, t *service.Team) (int, error) { return t.EnabledWebhooks(ctx) }),
	"Deliveries": reads(func(w *world, t *service.Team) ([]dmarcd.WebhookDelivery, error) {
		return t.Deliveries(ctx, w.webhook, 0, 10)
	}),
	"AddWebhook": {
		needs: remove, action: "webhook.add", wants: dmarcd.ErrInvalid,
		team: func(_ *world, t *service.Team) error {
			_, _, err := t.AddWebhook(ctx, dmarcd.Webhook{URL: endpoint, Domains: []string{"Example.COM."}})
			return err
		},
		fails: func(_ *world, t *service.Team, _ *service.System) error {
			_, _, err := t.AddWebhook(ctx, dmarcd.Webhook{URL: "https://127.0.0.1/"})
			return err
		},
	},
	"UpdateWebhook": {
		needs: remove, action: "webhook.update", wants: dmarcd.ErrInvalid,
		team: func(w *world, t *service.Team) error {
			enabled := false
			_, err := t.UpdateWebhook(ctx, w.webhook, service.WebhookChange{Enabled: &enabled})
			return err
		},
		fails: func(w *world, t *service.Team, _ *service.System) error {
			wrong := "ftp://hooks.example/"
			_, err := t.UpdateWebhook(ctx, w.webhook, service.WebhookChange{URL: &wrong})
			return err
		},
	},
	"RotateWebhook": {
		needs: remove, action: "webhook.rotate", wants: dmarcd.ErrNotFound,
		team: func(w *world, t *service.Team) error { _, _, err := t.RotateWebhook(ctx, w.webhook); return err },
		fails: func(_ *world, t *service.Team, _ *service.System) error {
			_, _, err := t.RotateWebhook(ctx, 1)
			return err
		},
	},
	"RemoveWebhook": {
		needs: remove, action: "webhook.remove", wants: dmarcd.ErrNotFound,
		team:  func(w *world, t *service.Team) error { return t.RemoveWebhook(ctx, w.webhook) },
		fails: func(_ *world, t *service.Team, _ *service.System) error { return t.RemoveWebhook(ctx, 1) },
	},
	"TestWebhook": {
		needs: remove, action: "webhook.test", wants: dmarcd.ErrNotFound,
		team:  func(w *world, t *service.Team) error { return finds(t.TestWebhook(ctx, w.webhook)) },
		fails: func(_ *world, t *service.Team, _ *service.System) error { return errorOf(t.TestWebhook(ctx, 1)) },
	},
	"RetryDelivery": {
		needs: remove, action: "webhook.retry", wants: dmarcd.ErrNotFound,
		team: func(w *world, t *service.Team) error {
			return finds(t.RetryDelivery(ctx, w.webhook, w.delivery))
		},
		fails: func(w *world, t *service.Team, _ *service.System) error {
			return errorOf(t.RetryDelivery(ctx, w.webhook, 1))
		},
	},
	"TeamOfWebhook": {needs: operate, system: func(w *world, s *service.System) error { return finds(s.TeamOfWebhook(ctx, w.webhook)) }},
}

// TestNewURLOfAWebhook changes the URL: it is checked like that of a new webhook.
func TestNewURLOfAWebhook(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t))
	team := w.service.Team(w.team.ID, service.CommandLine())
	for url, allowed := range map[string]bool{
		"https://hooks.example/other": true, "https://127.0.0.1/": false, "https://[::1]/": false, "ftp://hooks.example/": false,
	} {
		changed, err := team.UpdateWebhook(t.Context(), w.webhook, service.WebhookChange{URL: &url})
		if errors.Is(err, dmarcd.ErrInvalid) == allowed || allowed && (err != nil || changed.URL != url || string(changed.Secrets[0]) != "x") {
			t.Errorf("%s: got %q and %v, want it allowed: %t", url, changed.URL, err, allowed)
		}
	}
}
