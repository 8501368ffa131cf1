package service

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/notify/mail"
	"github.com/dmarcd/dmarcd/internal/store"
)

// Why an endpoint of the format email is disabled.
const (
	unconfirmed  = "The recipient has not confirmed the address yet, with the link in our message. Turn the channel on to send the link again."
	unsubscribed = "The recipient unsubscribed."
)

// AwaitsConfirmation reports whether nothing is sent to an email address because its recipient has
// not confirmed it.
func AwaitsConfirmation(w dmarcd.Webhook) bool {
	return !w.Enabled() && w.DisabledReason == unconfirmed
}

// SendsMail reports whether the installation can send email.
func (s *Service) SendsMail() bool { return s.options.Mail != nil }

// mayMailTo reports whether the actor may have mail sent to an address that its recipient has not
// confirmed for it: the actor's own, if it is verified, and any by the command line. Other members may not want it, or may
// have unsubscribed.
func (t *Team) mayMailTo(address string) bool {
	return t.actor.local || t.actor.verified && t.actor.entry.User != 0 && t.actor.entry.Actor == address
}

// askConfirmation sends the link with which a recipient confirms their address, after
// throttleMail. A relay that is down is in the log: enabling the webhook sends the link again.
func (t *Team) askConfirmation(ctx context.Context, w dmarcd.Webhook) error {
	options := t.service.options
	secret, err := options.Secrets.Open(w.Secrets[0], w.SecretContext())
	if err != nil {
		return err
	}
	link, err := mail.PageLink(options.BaseURL, confirmPage, w.ID, secret)
	if err != nil {
		return err
	}
	team, err := t.service.store.TeamByID(ctx, t.team.ID())
	if err != nil {
		return err
	}
	if err := options.Mail.SendConfirmation(ctx, team.Name, w, link); err != nil {
		options.Log.WarnContext(ctx, "confirmation not sent", "error", err, "team", t.team.ID(), "webhook", w.ID)
	}
	return nil
}

// throttleMail returns a *ThrottledError after too much mail of a team, or of it to an address.
// Mail of other teams does not count: it would show that they know the address.
func (s *Service) throttleMail(team dmarcd.TeamID, address string) error {
	if err := s.letters.take(team.String() + " " + address); err != nil {
		return err
	}
	return s.teamLetters.take(team.String())
}

// mayMail returns an *dmarcd.InvalidError for the address of a recipient who does not want
// mail.
func (t *Team) mayMail(ctx context.Context, id dmarcd.WebhookID) error {
	w, err := t.team.Webhook(ctx, id)
	if err == nil && w.Format == dmarcd.FormatEmail && !w.Enabled() {
		return &dmarcd.InvalidError{Field: "enabled", Message: "The channel is off: " + w.DisabledReason}
	}
	return err
}

// The pages about an address that work without signing in.
const (
	confirmPage     = "confirm"
	unsubscribePage = "unsubscribe"
)

// Subscription is an address that events of a team are sent to, or only its report for managers.
type Subscription struct {
	Address, Team        string
	Enabled, ForManagers bool
}

// ConfirmableSubscription returns the subscription of the token in a confirmation link, or
// dmarcd.ErrNotFound.
func (s *Service) ConfirmableSubscription(ctx context.Context, token string) (Subscription, error) {
	_, found, err := s.subscription(ctx, token, confirmPage)
	return found, err
}

// Subscription returns the subscription of the token in an unsubscribe link, or dmarcd.ErrNotFound.
func (s *Service) Subscription(ctx context.Context, token string) (Subscription, error) {
	_, found, err := s.subscription(ctx, token, unsubscribePage)
	return found, err
}

// Confirm enables the subscription of a token, or returns dmarcd.ErrNotFound.
func (s *Service) Confirm(ctx context.Context, token, address string) error {
	return s.changeSubscription(ctx, token, confirmPage, address, func(w *dmarcd.Webhook) error {
		if !AwaitsConfirmation(*w) {
			return errUnchanged
		}
		w.DisabledAt = time.Time{}
		return nil
	})
}

// Unsubscribe ends the deliveries to the address that a token is about, or returns
// dmarcd.ErrNotFound.
func (s *Service) Unsubscribe(ctx context.Context, token, address string) error {
	return s.changeSubscription(ctx, token, unsubscribePage, address, func(w *dmarcd.Webhook) error {
		if !w.Enabled() && w.DisabledReason == unsubscribed {
			return errUnchanged
		}
		w.DisabledAt, w.DisabledReason = s.options.Now(), unsubscribed
		return nil
	})
}

// errUnchanged means that a link has been used before: it leaves no entry in the audit log.
var errUnchanged = errors.New("unchanged")

func (s *Service) changeSubscription(ctx context.Context, token, page, address string, change func(*dmarcd.Webhook) error) error {
	t, found, err := s.subscription(ctx, token, page)
	if err != nil {
		return err
	}
	id, err := mail.ParseToken(token)
	if err != nil {
		return err
	}
	entry := dmarcd.AuditEntry{Actor: "recipient " + found.Address, Address: address, Action: "webhook." + page, Target: id.String()}
	if _, err = t.UpdateWebhook(ctx, id, change, entry); errors.Is(err, errUnchanged) {
		return nil
	}
	return err
}

// subscription returns the team and the address that a token for a page is about.
func (s *Service) subscription(ctx context.Context, token, page string) (*store.Team, Subscription, error) {
	id, err := mail.ParseToken(token)
	if err != nil {
		return nil, Subscription{}, dmarcd.ErrNotFound
	}
	team, err := s.store.TeamOfWebhook(ctx, id)
	if err != nil {
		return nil, Subscription{}, err
	}
	t := s.store.Team(team)
	w, err := t.Webhook(ctx, id)
	if err != nil {
		return nil, Subscription{}, err
	}
	secret, err := s.options.Secrets.Open(w.Secrets[0], w.SecretContext())
	if err != nil {
		return nil, Subscription{}, err
	}
	if w.Format != dmarcd.FormatEmail || !mail.CheckToken(token, page, id, secret) {
		return nil, Subscription{}, dmarcd.ErrNotFound
	}
	named, err := s.store.TeamByID(ctx, team)
	return t, Subscription{Address: w.Address(), Team: named.Name, Enabled: w.Enabled(), ForManagers: w.IsForManagers()}, err
}

// NotifyOwners notifies the owners of teams by mail of webhooks that were disabled because
// they failed. It is a chore, and reports false: it does all that is due.
func (s *Service) NotifyOwners(ctx context.Context) (more bool, err error) {
	if s.options.Mail == nil {
		return false, nil
	}
	return false, s.store.EachNotice(ctx, func(of *store.Team, w dmarcd.Webhook) error { return s.notifyOwners(ctx, of, w) })
}

// notifyOwners notifies the owners of a webhook. It fails only if no owner could be notified:
// a repetition would notify the others again.
func (s *Service) notifyOwners(ctx context.Context, of *store.Team, w dmarcd.Webhook) error {
	team, err := s.store.TeamByID(ctx, of.ID())
	if err != nil {
		return err
	}
	members, err := of.Members(ctx)
	if err != nil {
		return err
	}
	base, err := url.Parse(s.options.BaseURL)
	if err != nil {
		return err
	}
	link := url.URL{Scheme: base.Scheme, Host: base.Host, Path: "/app/settings/notifications"}
	var failed []error
	notified := false
	for _, m := range members {
		if m.Role != dmarcd.RoleOwner {
			continue
		}
		if err := s.options.Mail.SendDisabled(ctx, m.User.Email, team.Name, w, link.String()); err != nil {
			failed = append(failed, fmt.Errorf("notify %s of team %s: %w", m.User.ID, team.ID, err))
			continue
		}
		notified = true
	}
	err = errors.Join(failed...)
	if err != nil && notified {
		s.options.Log.WarnContext(ctx, "owner not notified", "error", err, "team", team.ID, "webhook", w.ID)
		return nil
	}
	return err
}
