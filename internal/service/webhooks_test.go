package service_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/musttest"
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
	"LatestDeliveries": reads(func(_ *world, t *service.Team) (map[dmarcd.WebhookID]dmarcd.WebhookDelivery, error) {
		return t.LatestDeliveries(ctx)
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

// TestURLsOfWebhooksAreMasked reads URLs that contain keys as each kind of actor, and writes
// them back as they were shown: keys are for those who may change them, and survive that.
func TestURLsOfWebhooksAreMasked(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		w := newWorld(t, db)
		const key, masked = "https://hooks.example:8443/Zk3y/in?key=Zk3y", "https://hooks.example:8443/..."
		owner := w.service.Team(w.team.ID, w.asOwner())
		viewer := w.session(w.member)
		editor, operator := viewer, viewer
		editor.Role, operator.User.Operator = dmarcd.RoleEditor, true
		for _, format := range []dmarcd.WebhookFormat{dmarcd.FormatStandard, dmarcd.FormatJSON, dmarcd.FormatSlack} {
			added, _, err := owner.AddWebhook(ctx, dmarcd.Webhook{Format: format, URL: key})
			w.must(err)
			for name, actor := range map[string]service.Actor{
				"owner": w.asOwner(), "command line": service.CommandLine(), "writing token": service.Token(w.token, dmarcd.ScopeWrite, ""),
				"editor": service.User(editor, ""), "viewer": service.User(viewer, ""),
				"operator who is a viewer": service.User(operator, ""), "reading token": service.Token(w.token, dmarcd.ScopeRead, ""),
			} {
				want := masked
				if (name == "owner" || name == "command line" || name == "writing token") && format.Signed() {
					want = key
				}
				webhooks := musttest.Get(w.service.Team(w.team.ID, actor).Webhooks(ctx))(t)
				at := slices.IndexFunc(webhooks, func(w dmarcd.Webhook) bool { return w.ID == added.ID })
				if got := webhooks[at].URL; got != want {
					t.Errorf("%s, %s: got %s, want %s", format, name, got, want)
				}
			}
			before := musttest.Get(w.store.Team(w.team.ID).Webhook(ctx, added.ID))(t)
			shown, other := masked, "https://other.example/..."
			musttest.Get(owner.UpdateWebhook(ctx, added.ID, service.WebhookChange{URL: &shown}))(t)
			after := musttest.Get(w.store.Team(w.team.ID).Webhook(ctx, added.ID))(t)
			if after.URL != before.URL || string(after.Secrets[0]) != string(before.Secrets[0]) {
				t.Errorf("%s: the masked URL changed %s to %s", format, before.URL, after.URL)
			}
			if _, err := owner.UpdateWebhook(ctx, added.ID, service.WebhookChange{URL: &other}); !errors.Is(err, dmarcd.ErrInvalid) {
				t.Errorf("%s: another masked URL: got %v, want %v", format, err, dmarcd.ErrInvalid)
			}
			if _, _, err := owner.AddWebhook(ctx, dmarcd.Webhook{Format: format, URL: masked}); !errors.Is(err, dmarcd.ErrInvalid) {
				t.Errorf("%s: a new masked URL: got %v, want %v", format, err, dmarcd.ErrInvalid)
			}
		}
		if entries := fmt.Sprint(w.entries()); strings.Contains(entries, "Zk3y") || !strings.Contains(entries, masked) {
			t.Errorf("got the audit entries %s, want %s without the key", entries, masked)
		}
	})
}
