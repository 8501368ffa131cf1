package service

import (
	"context"
	"slices"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/notify/webhook"
)

// OwnDigest is which digest of the team the actor gets by mail.
type OwnDigest struct {
	// Kind is "" for none.
	Kind dmarcd.EventKind
	// Address is that of the actor, "" if it is not a user or if no mail is sent.
	Address string
}

// OwnDigest returns which digest the actor gets.
func (t *Team) OwnDigest(ctx context.Context) (OwnDigest, error) {
	if err := t.may(dmarcd.RightSee); err != nil {
		return OwnDigest{}, err
	}
	if t.actor.entry.User == 0 || t.service.options.Mail == nil {
		return OwnDigest{}, nil
	}
	own := OwnDigest{Address: t.actor.entry.Actor}
	found, err := t.ownDigest(ctx)
	if err == nil && found != nil && found.Enabled() {
		own.Kind = found.Kinds[0]
	}
	return own, err
}

// ownDigest returns the webhook that sends digests alone to the address of the actor, nil if
// there is none.
func (t *Team) ownDigest(ctx context.Context) (*dmarcd.Webhook, error) {
	all, err := t.team.Webhooks(ctx)
	at := slices.IndexFunc(all, func(w dmarcd.Webhook) bool { return w.IsDigest() && w.Address() == t.actor.entry.Actor })
	if at < 0 {
		return nil, err
	}
	return &all[at], err
}

// SetOwnDigest has a digest of the team sent to the address of the actor, who must be a member;
// "" ends it. It is a webhook of the format email, which owners can change like all others.
func (t *Team) SetOwnDigest(ctx context.Context, kind dmarcd.EventKind) error {
	if err := t.may(dmarcd.RightSee); err != nil {
		return err
	}
	members, err := t.team.Members(ctx)
	if err != nil {
		return err
	}
	isMember := slices.ContainsFunc(members, func(m dmarcd.Member) bool { return m.User.ID == t.actor.entry.User })
	address := t.actor.entry.Actor
	wanted := dmarcd.Webhook{URL: "mailto:" + address, Format: dmarcd.FormatEmail, Kinds: []dmarcd.EventKind{kind}}
	switch {
	case kind != "" && !kind.IsDigest():
		return &dmarcd.InvalidError{Field: "digest", Message: "A digest is daily, weekly or monthly."}
	case !isMember:
		return &dmarcd.InvalidError{Field: "digest", Message: "Digests are for members of the team. Sign in as one."}
	}
	if err := t.checkEndpoint(wanted); err != nil {
		return err
	}
	found, err := t.ownDigest(ctx)
	if err != nil {
		return err
	}
	entry := t.actor.to("digest.set", address, string(kind))
	switch {
	case found == nil && kind == "":
		return nil
	case kind == "":
		return t.team.RemoveWebhook(ctx, found.ID, entry)
	case found != nil:
		_, err = t.team.UpdateWebhook(ctx, found.ID, func(w *dmarcd.Webhook) error {
			w.Kinds, w.DisabledAt = wanted.Kinds, time.Time{}
			return nil
		}, entry)
		return err
	}
	seal := func(w dmarcd.Webhook) ([]byte, error) {
		return t.service.options.Secrets.Seal(webhook.NewSecret(), w.SecretContext())
	}
	_, err = t.team.AddWebhook(ctx, wanted, seal, entry)
	return err
}
