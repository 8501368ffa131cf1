package service_test

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/notify/mail"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// TestFormatsOfWebhooks adds an endpoint of each format.
func TestFormatsOfWebhooks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t))
	team := w.service.Team(w.team.ID, w.asOwner())
	for _, test := range []struct {
		format  dmarcd.WebhookFormat
		url     string
		shown   string // "" is an error at field
		field   string
		secret  bool
		mailing bool
	}{
		{format: "", url: endpoint, shown: endpoint, secret: true},
		{format: dmarcd.FormatJSON, url: endpoint, shown: endpoint, secret: true},
		{format: dmarcd.FormatSlack, url: "https://hooks.slack.example/services/T0/B0/x", shown: "https://hooks.slack.example/..."},
		{format: dmarcd.FormatPagerDuty, url: "https://events.pagerduty.example/v2/enqueue?routing_key=k", shown: "https://events.pagerduty.example/..."},
		{format: dmarcd.FormatPagerDuty, url: "https://events.pagerduty.example/v2/enqueue", field: "url"},
		{format: dmarcd.FormatSlack, url: "https://192.0.2.1/x", field: "url"},
		{format: dmarcd.FormatEmail, url: "mailto:" + w.owner.Email, shown: "mailto:" + w.owner.Email},
		{format: "fax", url: endpoint, field: "format"},
	} {
		added, secret, err := team.AddWebhook(ctx, dmarcd.Webhook{Format: test.format, URL: test.url})
		if test.field != "" {
			if invalid := (*dmarcd.InvalidError)(nil); !errors.As(err, &invalid) || invalid.Field != test.field {
				t.Errorf("%s %s: got %v, want an error at %s", test.format, test.url, err, test.field)
			}
			continue
		}
		if err != nil || added.URL != test.shown || (secret != "") != test.secret || !added.Enabled() {
			t.Errorf("%s %s: got %+v with the secret %q, %v", test.format, test.url, added, secret, err)
		}
		if sealed := string(added.Secrets[0]); test.format.HidesURL() && test.format != "" && sealed != test.url {
			t.Errorf("%s: got the sealed secret %q, want the URL", test.format, sealed)
		}
	}
	none := w.with(w.asOwner(), func(o *service.Options) { o.Mail = nil })
	if _, _, err := none.AddWebhook(ctx, dmarcd.Webhook{Format: dmarcd.FormatEmail, URL: "mailto:" + w.owner.Email}); !errors.Is(err, dmarcd.ErrInvalid) {
		t.Errorf("without a relay: got %v, want %v", err, dmarcd.ErrInvalid)
	}
	for _, domain := range []string{"no name", "elsewhere.example"} {
		if _, _, err := team.AddWebhook(ctx, dmarcd.Webhook{URL: endpoint, Domains: []string{domain}}); !errors.Is(err, dmarcd.ErrInvalid) {
			t.Errorf("the domain %q: got %v, want %v", domain, err, dmarcd.ErrInvalid)
		}
	}
}

// TestChangesOfWebhooks changes one thing after the other.
func TestChangesOfWebhooks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t))
	team := w.service.Team(w.team.ID, w.asOwner())
	slack, _, err := team.AddWebhook(ctx, dmarcd.Webhook{Format: dmarcd.FormatSlack, URL: "https://one.example/x"})
	w.must(err)
	letter, _, err := team.AddWebhook(ctx, dmarcd.Webhook{Format: dmarcd.FormatEmail, URL: "mailto:" + w.owner.Email})
	w.must(err)
	yes, no := true, false
	kinds, domains, other, address := []dmarcd.EventKind{dmarcd.PolicyWeakened}, []string{"Example.COM."}, "https://two.example/y", "mailto:ann@example.com"
	forbidden := "https://127.0.0.1/y"
	for _, test := range []struct {
		name   string
		id     dmarcd.WebhookID
		change service.WebhookChange
		ok     func(w dmarcd.Webhook) bool // nil is an *dmarcd.InvalidError
	}{
		{"kinds", slack.ID, service.WebhookChange{Kinds: &kinds}, func(w dmarcd.Webhook) bool { return slices.Equal(w.Kinds, kinds) && w.Domains == nil && w.Enabled() }},
		{"domains", slack.ID, service.WebhookChange{Domains: &domains}, func(w dmarcd.Webhook) bool { return len(w.Domains) == 1 && w.Domains[0] == ours && len(w.Kinds) == 1 }},
		{"a domain of others", slack.ID, service.WebhookChange{Domains: &[]string{"elsewhere.example"}}, nil},
		{"disabled", slack.ID, service.WebhookChange{Enabled: &no}, func(w dmarcd.Webhook) bool { return !w.Enabled() && w.DisabledReason == "A user turned it off." }},
		{"disabled again", slack.ID, service.WebhookChange{Enabled: &no}, func(w dmarcd.Webhook) bool { return !w.Enabled() }},
		{"URL", slack.ID, service.WebhookChange{URL: &other}, func(w dmarcd.Webhook) bool {
			return w.URL == "https://two.example/..." && len(w.Secrets) == 1 && string(w.Secrets[0]) == other && !w.Enabled()
		}},
		{"forbidden URL", slack.ID, service.WebhookChange{URL: &forbidden}, nil},
		{"enabled", slack.ID, service.WebhookChange{Enabled: &yes}, func(w dmarcd.Webhook) bool { return w.Enabled() }},
		{"address", letter.ID, service.WebhookChange{URL: &address}, nil},
		{"own address disabled", letter.ID, service.WebhookChange{Enabled: &no}, func(w dmarcd.Webhook) bool { return !w.Enabled() }},
		{"own address enabled", letter.ID, service.WebhookChange{Enabled: &yes}, func(w dmarcd.Webhook) bool { return w.Enabled() }},
	} {
		got, err := team.UpdateWebhook(ctx, test.id, test.change)
		if test.ok == nil && !errors.Is(err, dmarcd.ErrInvalid) || test.ok != nil && (err != nil || !test.ok(got)) {
			t.Errorf("%s: got %+v, %v", test.name, got, err)
		}
	}
	if _, err := team.UpdateWebhook(ctx, w.webhook, service.WebhookChange{Enabled: &no}); err != nil {
		t.Error(err)
	}
	if _, err := team.TestWebhook(ctx, w.webhook); err != nil {
		t.Errorf("a test of a disabled webhook that is no address: %v", err)
	}
	before := musttest.Get(w.store.Team(w.team.ID).Webhook(ctx, w.webhook))(t)
	rotated, secret, err := team.RotateWebhook(ctx, w.webhook)
	if err != nil || secret == "" || len(rotated.Secrets) != 2 || string(rotated.Secrets[1]) != string(before.Secrets[0]) {
		t.Errorf("rotated: got %+v with the secret %q, %v", rotated, secret, err)
	}
	if _, _, err := team.RotateWebhook(ctx, slack.ID); !errors.Is(err, dmarcd.ErrInvalid) {
		t.Errorf("rotated Slack: got %v, want %v", err, dmarcd.ErrInvalid)
	}
	if _, err := team.Deliveries(ctx, 1, 0, 10); !errors.Is(err, dmarcd.ErrNotFound) {
		t.Errorf("deliveries of no webhook: got %v, want %v", err, dmarcd.ErrNotFound)
	}
}

// TestAddressesAreConfirmed has an outsider confirm an address, and unsubscribe.
func TestAddressesAreConfirmed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t))
	sent := &letters{}
	w.options.Mail = sent
	s := service.New(w.store, w.options)
	team := s.Team(w.team.ID, w.asOwner())
	const address = "eve@outside.example"
	added, _, err := team.AddWebhook(ctx, dmarcd.Webhook{Format: dmarcd.FormatEmail, URL: "mailto:" + address})
	if err != nil || added.Enabled() || len(sent.sent) != 1 || sent.sent[0].to != address || sent.sent[0].team != "acme" {
		t.Fatalf("got %+v, %v and the letters %+v, want a disabled webhook and one letter", added, err, sent.sent)
	}
	if _, err := team.TestWebhook(ctx, added.ID); !errors.Is(err, dmarcd.ErrInvalid) {
		t.Errorf("a test: got %v, want %v", err, dmarcd.ErrInvalid)
	}
	confirm := path.Base(sent.sent[0].link)
	stored := musttest.Get(w.store.Team(w.team.ID).Webhook(ctx, added.ID))(t)
	link := musttest.Get(mail.PageLink(w.options.BaseURL, "unsubscribe", added.ID, stored.Secrets[0]))(t)
	leave := path.Base(link)

	for _, step := range []struct {
		name    string
		make    func() error
		wants   error
		enabled bool
		action  string // of a new audit entry, "" for none
	}{
		{"the wrong page", func() error { return s.Confirm(ctx, leave, "192.0.2.9") }, dmarcd.ErrNotFound, false, ""},
		{"no token", func() error { return s.Confirm(ctx, "x", "192.0.2.9") }, dmarcd.ErrNotFound, false, ""},
		{"another token", func() error { return s.Confirm(ctx, confirm+"x", "192.0.2.9") }, dmarcd.ErrNotFound, false, ""},
		{"confirmed", func() error { return s.Confirm(ctx, confirm, "192.0.2.9") }, nil, true, "webhook.confirm"},
		{"confirmed twice", func() error { return s.Confirm(ctx, confirm, "192.0.2.9") }, nil, true, ""},
		{"unsubscribed by the wrong page", func() error { return s.Unsubscribe(ctx, confirm, "192.0.2.9") }, dmarcd.ErrNotFound, true, ""},
		{"unsubscribed", func() error { return s.Unsubscribe(ctx, leave, "192.0.2.9") }, nil, false, "webhook.unsubscribe"},
		{"unsubscribed twice", func() error { return s.Unsubscribe(ctx, leave, "192.0.2.9") }, nil, false, ""},
		{"confirmed again", func() error { return s.Confirm(ctx, confirm, "192.0.2.9") }, nil, false, ""},
		{"enabled", func() error {
			yes := true
			_, err := team.UpdateWebhook(ctx, added.ID, service.WebhookChange{Enabled: &yes})
			return err
		}, nil, false, "webhook.update"},
		{"confirmed after that", func() error { return s.Confirm(ctx, confirm, "192.0.2.9") }, nil, true, "webhook.confirm"},
	} {
		before := len(w.entries())
		if err := step.make(); !errors.Is(err, step.wants) {
			t.Errorf("%s: got %v, want %v", step.name, err, step.wants)
		}
		want := service.Subscription{Address: address, Team: "acme", Enabled: step.enabled}
		for page, read := range map[string]func(context.Context, string) (service.Subscription, error){confirm: s.ConfirmableSubscription, leave: s.Subscription} {
			if got, err := read(ctx, page); err != nil || got != want {
				t.Errorf("%s: got %+v, %v; want %+v", step.name, got, err, want)
			}
		}
		got := w.entries()
		if added := len(got) - before; added > 1 || (added == 1) != (step.action != "") || added == 1 && got[0].Action != step.action {
			t.Errorf("%s: got %d audit entries, the newest %+v, want %q", step.name, added, got[0], step.action)
		}
	}
	if len(sent.sent) != 2 || sent.sent[1].link != sent.sent[0].link {
		t.Errorf("got the letters %+v, want the link again", sent.sent)
	}
	if _, err := team.TestWebhook(ctx, added.ID); err != nil {
		t.Errorf("a test: %v", err)
	}
	if err := s.Unsubscribe(ctx, w.webhook.String()+".x", ""); !errors.Is(err, dmarcd.ErrNotFound) {
		t.Errorf("a webhook that is no address: got %v, want %v", err, dmarcd.ErrNotFound)
	}
	local, _, err := s.Team(w.team.ID, service.CommandLine()).AddWebhook(ctx, dmarcd.Webhook{Format: dmarcd.FormatEmail, URL: "mailto:other@outside.example"})
	if err != nil || !local.Enabled() {
		t.Errorf("the command line: got %+v, %v; want an enabled webhook", local, err)
	}
	sent.err = errors.New("connection refused")
	if _, _, err := team.AddWebhook(ctx, dmarcd.Webhook{Format: dmarcd.FormatEmail, URL: "mailto:third@outside.example"}); err != nil || !strings.Contains(w.log.String(), "connection refused") {
		t.Errorf("a relay that is down: got %v and the log %s", err, w.log.String())
	}
}

// TestTestsThatReachNothingTakeAsLong delivers test events to an endpoint that answers, and
// to one that does not: to users the time must not tell why.
func TestTestsThatReachNothingTakeAsLong(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t))
	for _, test := range []struct {
		name   string
		actor  service.Actor
		status int
		want   time.Duration
	}{
		{"an answer", w.asOwner(), 500, 0},
		{"no answer", w.asOwner(), 0, 15 * time.Second},
		{"no answer, on the command line", service.CommandLine(), 0, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			team := w.with(test.actor, func(o *service.Options) {
				o.Stopping = make(chan struct{})
				o.Deliveries = deliveries(func(ctx context.Context, c dmarcd.ClaimedDelivery) (dmarcd.DeliveryResult, error) {
					result := dmarcd.DeliveryResult{At: time.Now(), Status: test.status, Problem: "no"}
					return result, w.store.Team(c.Team).SaveDelivery(ctx, c, result, time.Time{}, "", time.Hour)
				})
			})
			began := time.Now()
			if _, err := team.TestWebhook(t.Context(), w.webhook); err != nil || time.Since(began) != test.want {
				t.Errorf("%s: got an answer after %v, %v; want %v", test.name, time.Since(began), err, test.want)
			}
		})
	}
}

// TestNoDigestWithoutMail asks for digests where none can be sent.
func TestNoDigestWithoutMail(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t))
	user := w.as(w.member)
	for _, test := range []struct {
		name    string
		actor   service.Actor
		mail    service.Mailer
		address string
	}{
		{"a user", user, mailer{}, w.member.Email},
		{"a user, no relay", user, nil, ""},
		{"a token", service.Token(w.token, dmarcd.ScopeRead, ""), mailer{}, ""},
	} {
		got, err := w.with(test.actor, func(o *service.Options) { o.Mail = test.mail }).OwnDigest(ctx)
		if err != nil || got != (service.OwnDigest{Address: test.address}) {
			t.Errorf("%s: got %+v, %v; want the address %q", test.name, got, err, test.address)
		}
	}
	if err := w.with(user, func(o *service.Options) { o.Mail = nil }).SetOwnDigest(ctx, dmarcd.DigestDaily); !errors.Is(err, dmarcd.ErrInvalid) {
		t.Errorf("got %v, want %v", err, dmarcd.ErrInvalid)
	}
	// A webhook with other events is not the digest of its address, and a disabled one is none.
	own := w.service.Team(w.team.ID, user)
	all, _, err := w.service.Team(w.team.ID, w.asOwner()).AddWebhook(ctx, dmarcd.Webhook{
		Format: dmarcd.FormatEmail, URL: "mailto:" + w.member.Email, Kinds: []dmarcd.EventKind{dmarcd.DigestDaily, dmarcd.PolicyWeakened},
	})
	w.must(err)
	if got, err := own.OwnDigest(ctx); err != nil || got.Kind != "" {
		t.Errorf("a webhook with other events: got %+v, %v; want none", got, err)
	}
	w.must(w.store.Team(w.team.ID).RemoveWebhook(ctx, all.ID))
	w.must(own.SetOwnDigest(ctx, dmarcd.DigestWeekly))
	webhooks := musttest.Get(own.Webhooks(ctx))(t)
	at := slices.IndexFunc(webhooks, func(w dmarcd.Webhook) bool { return w.Format == dmarcd.FormatEmail })
	no := false
	musttest.Get(w.service.Team(w.team.ID, w.asOwner()).UpdateWebhook(ctx, webhooks[at].ID, service.WebhookChange{Enabled: &no}))(t)
	if got, err := own.OwnDigest(ctx); err != nil || got.Kind != "" {
		t.Errorf("a disabled webhook: got %+v, %v; want none", got, err)
	}
	w.must(own.SetOwnDigest(ctx, dmarcd.DigestWeekly))
	if got, err := own.OwnDigest(ctx); err != nil || got.Kind != dmarcd.DigestWeekly {
		t.Errorf("chosen again: got %+v, %v; want the weekly one", got, err)
	}
}

// TestAlertRulesAreNormalized sets rules with names as users write them.
func TestAlertRulesAreNormalized(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t))
	team := w.service.Team(w.team.ID, w.asOwner())
	w.must(team.SetAlertRules(ctx, dmarcd.AlertRules{
		Domains: []string{"Example.COM."}, Tags: []string{" EU "}, Mutes: []dmarcd.Mute{{Kind: dmarcd.PolicyWeakened}, {Domain: "Example.NET"}},
	}))
	got := musttest.Get(team.AlertRules(ctx))(t)
	if got.Domains[0] != ours || got.Tags[0] != "eu" || len(got.Mutes) != 2 || got.Mutes[0].Domain != "" || got.Mutes[1].Domain != "example.net" {
		t.Errorf("got %+v, want the names in their canonical form", got)
	}
	for name, rules := range map[string]dmarcd.AlertRules{
		"a domain": {Domains: []string{"a b"}}, "a tag": {Tags: []string{"a b"}}, "a mute": {Mutes: []dmarcd.Mute{{Domain: "a b"}}}, "a level": {MinLevel: "loud"},
	} {
		if err := team.SetAlertRules(ctx, rules); !errors.Is(err, dmarcd.ErrInvalid) {
			t.Errorf("%s: got %v, want %v", name, err, dmarcd.ErrInvalid)
		}
	}
}
