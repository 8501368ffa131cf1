package service_test

import (
	"errors"
	"testing"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// TestOwnDigest has members choose their digests: each has at most one, and no one changes that
// of another.
func TestOwnDigest(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t))
	member := w.service.Team(w.team.ID, w.as(w.member))
	owner := w.service.Team(w.team.ID, w.as(w.owner))
	before := musttest.Get(owner.Webhooks(ctx))(t)
	for _, step := range []struct {
		team            *service.Team
		kind            dmarcd.EventKind
		members, owners dmarcd.EventKind // afterwards
		webhooks        int
	}{
		{member, "", "", "", 0},
		{member, dmarcd.DigestWeekly, dmarcd.DigestWeekly, "", 1},
		{owner, dmarcd.DigestDaily, dmarcd.DigestWeekly, dmarcd.DigestDaily, 2},
		{member, dmarcd.DigestMonthly, dmarcd.DigestMonthly, dmarcd.DigestDaily, 2},
		{owner, "", dmarcd.DigestMonthly, "", 1},
		{member, "", "", "", 0},
	} {
		w.must(step.team.SetOwnDigest(ctx, step.kind))
		for team, want := range map[*service.Team]dmarcd.EventKind{member: step.members, owner: step.owners} {
			if got, err := team.OwnDigest(ctx); err != nil || got.Kind != want {
				t.Errorf("after %q: got %+v, %v want %q", step.kind, got, err, want)
			}
		}
		if after, err := owner.Webhooks(ctx); err != nil || len(after) != len(before)+step.webhooks {
			t.Errorf("after %q: got %d webhooks more, %v want %d", step.kind, len(after)-len(before), err, step.webhooks)
		}
	}
	// Tokens ask members, by a webhook; the members can change it.
	added, _, err := w.service.Team(w.team.ID, service.Token(w.token, dmarcd.ScopeWrite, "")).AddWebhook(ctx,
		dmarcd.Webhook{URL: "mailto:" + w.member.Email, Format: dmarcd.FormatEmail, Kinds: []dmarcd.EventKind{dmarcd.DigestWeekly}})
	w.must(err)
	if got, err := member.OwnDigest(ctx); err != nil || got.Kind != "" || added.Enabled() {
		t.Errorf("by a token: got %+v, %v of the webhook %+v", got, err, added)
	}
	w.must(member.SetOwnDigest(ctx, ""))
	if after, err := owner.Webhooks(ctx); err != nil || len(after) != len(before) {
		t.Errorf("after the choice of the member: got %d webhooks, %v want %d", len(after), err, len(before))
	}
	for name, actor := range map[string]service.Actor{
		"command line": service.CommandLine(), "token": service.Token(w.token, dmarcd.ScopeWrite, ""),
		"no member": w.as(w.operator),
	} {
		if err := w.service.Team(w.team.ID, actor).SetOwnDigest(ctx, dmarcd.DigestDaily); err == nil {
			t.Errorf("%s: got a digest, want an error", name)
		}
	}
}

// TestOwnDigestsAreBesideTheLimit fills a team with webhooks. A member can still choose a digest,
// which counts for no webhook of others.
func TestOwnDigestsAreBesideTheLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t))
	member := w.service.Team(w.team.ID, w.as(w.member))
	owner := w.service.Team(w.team.ID, w.as(w.owner))
	w.must(owner.SetOwnDigest(ctx, dmarcd.DigestDaily))
	before := musttest.Get(owner.Webhooks(ctx))(t)
	add := func() error {
		_, _, err := owner.AddWebhook(ctx, dmarcd.Webhook{URL: "https://hooks.example/", Format: dmarcd.FormatStandard})
		return err
	}
	for range dmarcd.MaxWebhooks - (len(before) - 1) {
		w.must(add())
	}
	full := new(dmarcd.InvalidError)
	if err := add(); !errors.As(err, &full) {
		t.Errorf("one too many: got %v, want an invalid webhook", err)
	}
	w.must(member.SetOwnDigest(ctx, dmarcd.DigestWeekly))
	// A second one for the same address counts.
	_, _, err := owner.AddWebhook(ctx, dmarcd.Webhook{URL: "mailto:" + w.member.Email, Format: dmarcd.FormatEmail, Kinds: []dmarcd.EventKind{dmarcd.DigestDaily}})
	if !errors.As(err, &full) {
		t.Errorf("a second digest: got %v, want an invalid webhook", err)
	}
	if all, err := owner.Webhooks(ctx); err != nil || len(all) != dmarcd.MaxWebhooks+2 {
		t.Errorf("got %d webhooks, %v want %d", len(all), err, dmarcd.MaxWebhooks+2)
	}
}
