package service

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/auth"
	"github.com/dmarcd/dmarcd/internal/notify/mail"
	"github.com/dmarcd/dmarcd/internal/phrase"
)

const (
	// userLettersAtOnce is how many messages of a kind are mailed to a user; after them, one each
	// userLetterInterval.
	userLettersAtOnce  = 5
	userLetterInterval = time.Hour
	// maxPosted is the number of messages that wait for the relay, letterSenders how many are sent at
	// a time.
	maxPosted     = 1000
	letterSenders = 4
	// postedDelay is how long mail waits: work that begins during the answer would slow it down, which
	// shows whether there is a user.
	postedDelay = time.Second
	// postedGrace is how long mail is still sent when the process stops.
	postedGrace = 5 * time.Second
)

// posting is mail that is sent when it is due.
type posting struct {
	due  time.Time
	send func(ctx context.Context) error
}

// post sends mail later: the time of an answer must not depend on the relay, nor show whether there is a
// user. Messages are lost if the process ends, or if too many wait.
func (s *Service) post(ctx context.Context, send func(ctx context.Context) error) {
	if s.options.Mail == nil {
		return
	}
	select {
	case s.posted <- posting{s.options.Now().Add(postedDelay), send}:
	default:
		s.options.Log.WarnContext(ctx, "mail not sent", "error", "too many messages wait for the relay")
	}
}

// SendPosted sends mail to users until ctx ends, and what waits then.
func (s *Service) SendPosted(ctx context.Context) error {
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(postedGrace, cancel) })()
	var senders sync.WaitGroup
	for range letterSenders {
		senders.Go(func() {
			for next := s.nextPosted(ctx); next.send != nil; next = s.nextPosted(ctx) {
				select {
				case <-time.After(next.due.Sub(s.options.Now())):
				case <-ctx.Done():
				}
				if err := next.send(work); err != nil {
					s.options.Log.WarnContext(ctx, "mail not sent", "error", err)
				}
			}
		})
	}
	senders.Wait()
	return nil
}

// nextPosted waits for mail to send. It returns none if there is none and ctx has ended.
func (s *Service) nextPosted(ctx context.Context) posting {
	select {
	case next := <-s.posted:
		return next
	default:
	}
	select {
	case next := <-s.posted:
		return next
	case <-ctx.Done():
		return posting{}
	}
}

// page returns the link to a page for users.
func (s *Service) page(path string) (string, error) { return auth.Link(s.options.BaseURL, path, "") }

// ForgotPassword mails a link to set another password to the user with an address. The answer is the same, after
// the same work, if there is none. What is not an address is an *dmarcd.InvalidError, too many
// requests are dmarcd.ErrLimit, and dmarcd.ErrNotFound means that there is no relay.
func (s *Service) ForgotPassword(ctx context.Context, email string, client Client) error {
	if s.options.Mail == nil {
		return dmarcd.ErrNotFound
	}
	email, err := dmarcd.ParseEmail(email)
	if err != nil {
		return err
	}
	if err := s.resets.Attempt(client.Address, email); err != nil {
		return err
	}
	s.post(ctx, func(ctx context.Context) error { return s.mailReset(ctx, email, client) })
	return nil
}

func (s *Service) mailReset(ctx context.Context, email string, client Client) error {
	user, err := s.store.UserByEmail(ctx, email)
	if errors.Is(err, dmarcd.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := s.userLetters.take("reset " + email); err != nil {
		return nil //nolint:nilerr // they have enough links
	}
	if !user.Password {
		signIn, err := s.page("/app/sign-in")
		if err != nil {
			return err
		}
		return s.options.Mail.SendOnce(ctx, user.Email, "reset", mail.NoPassword(signIn))
	}
	secret, hash := auth.NewLink()
	link, err := auth.Link(s.options.BaseURL, auth.ResetPath, secret)
	if err != nil {
		return err
	}
	err = s.store.CreateMailedLink(ctx, hash, dmarcd.MailedLink{
		Kind: dmarcd.LinkPassword, User: user.ID, Email: user.Email, ExpiresAt: s.options.Now().Add(dmarcd.MailedLinkLife),
	}, dmarcd.AuditEntry{Actor: "unknown", Action: "user.reset", Target: user.Email, Address: client.Address})
	if err != nil {
		return err
	}
	return s.options.Mail.SendOnce(ctx, user.Email, "reset", mail.PasswordReset(link))
}

// ResettableUser returns the address of the user of a link to set another password. One that is
// unknown, used or expired is dmarcd.ErrNotFound. It does not use it up.
func (s *Service) ResettableUser(ctx context.Context, link string) (email string, err error) {
	hash, err := auth.HashLink(link)
	if err != nil {
		return "", err
	}
	found, err := s.store.MailedLink(ctx, hash, dmarcd.LinkPassword)
	return found.Email, err
}

// ResetPassword uses up a link to set another password, and ends all sessions of its user. It begins none: the
// user signs in, with a second factor if there is one. A link that cannot be used is
// dmarcd.ErrNotFound; after another error it remains usable.
func (s *Service) ResetPassword(ctx context.Context, link, password string, client Client) error {
	email, err := s.ResettableUser(ctx, link) // hashing is expensive: only the holder of a valid link may cause it
	if err != nil {
		return err
	}
	hash, err := auth.HashLink(link)
	if err != nil {
		return err
	}
	passwordHash, err := s.passwords.Passwords.Hash(ctx, link, email, password) // one at a time for each link
	if err != nil {
		return err
	}
	err = s.store.ResetPassword(ctx, hash, passwordHash, dmarcd.AuditEntry{Action: "user.password", Detail: "by a mailed link", Address: client.Address})
	if err != nil {
		return err
	}
	s.notifyPassword(ctx, email, client)
	return nil
}

const accountPath = "/app/account"

// browser describes a client in mail.
func (s *Service) browser(client Client) mail.Browser {
	return mail.Browser{At: s.options.Now(), Address: client.Address, Name: phrase.Browser(client.UserAgent)}
}

// notify mails a user what happened to their account.
func (s *Service) notify(ctx context.Context, email, about string, content func(account string) mail.Content) {
	s.post(ctx, func(ctx context.Context) error {
		account, err := s.page(accountPath)
		if err != nil {
			return err
		}
		return s.options.Mail.SendOnce(ctx, email, about, content(account))
	})
}

// notifyPassword tells a user that their password was changed.
func (s *Service) notifyPassword(ctx context.Context, email string, client Client) {
	by := s.browser(client)
	s.notify(ctx, email, "password", func(account string) mail.Content { return mail.PasswordChanged(by, account) })
}

// notifyFactor tells a user what changed about their second factor.
func (s *Service) notifyFactor(ctx context.Context, email, change string, by mail.Browser) {
	s.notify(ctx, email, "factor", func(account string) mail.Content { return mail.FactorChanged(change, by, account) })
}

// notifyFactor returns the error of a change, and tells the user of one without.
func (a *Account) notifyFactor(ctx context.Context, change string, err error) error {
	if err == nil {
		a.service.notifyFactor(ctx, a.User.Email, change, a.service.browser(a.client))
	}
	return err
}

// noticeSignIn tells a user of a sign-in from a browser that is new to them.
func (s *Service) noticeSignIn(ctx context.Context, user dmarcd.UserID, client Client, means string) {
	hash, err := auth.HashLink(client.Browser)
	if err != nil { // it keeps no cookies
		_, hash = auth.NewLink()
	}
	email, unseen, err := s.store.SeeBrowser(ctx, user, hash)
	if err != nil {
		s.options.Log.WarnContext(ctx, "browser not noted", "error", err) // the next sign-in notes it
		return
	}
	if !unseen || s.userLetters.take("sign-in "+user.String()) != nil {
		return
	}
	by := s.browser(client)
	s.notify(ctx, email, "sign-in", func(account string) mail.Content { return mail.NewSignIn(by, means, account) })
}

// SetEmail mails a link to an address, which the user opens to confirm it: it then becomes theirs. It
// may be the present one. Too much mail is dmarcd.ErrLimit, no relay dmarcd.ErrNotFound.
func (a *Account) SetEmail(ctx context.Context, email string) error {
	s := a.service
	if s.options.Mail == nil {
		return dmarcd.ErrNotFound
	}
	email, err := dmarcd.ParseEmail(email)
	if err != nil {
		return err
	}
	if err := s.letters.take(a.User.ID.String() + " " + email); err != nil {
		return err
	}
	if err := s.teamLetters.take(a.User.ID.String()); err != nil {
		return err
	}
	secret, hash := auth.NewLink()
	link, err := auth.Link(s.options.BaseURL, auth.AddressPath, secret)
	if err != nil {
		return err
	}
	err = a.store.CreateMailedLink(ctx, hash, dmarcd.MailedLink{
		Kind: dmarcd.LinkAddress, User: a.User.ID, Email: email, ExpiresAt: s.options.Now().Add(dmarcd.MailedLinkLife),
	}, a.actor().to("user.address_asked", email, ""))
	if err != nil {
		return err
	}
	s.post(ctx, func(ctx context.Context) error {
		return s.options.Mail.SendOnce(ctx, email, "address", mail.ConfirmAddress(link))
	})
	return nil
}

// ConfirmableAddress returns the address of a link of the user. One that is unknown, used, expired or of another user is
// dmarcd.ErrNotFound.
func (a *Account) ConfirmableAddress(ctx context.Context, link string) (email string, err error) {
	hash, err := auth.HashLink(link)
	if err != nil {
		return "", err
	}
	found, err := a.service.store.MailedLink(ctx, hash, dmarcd.LinkAddress)
	if err == nil && found.User != a.User.ID {
		err = dmarcd.ErrNotFound
	}
	if err != nil {
		return "", err
	}
	return found.Email, nil
}

// ConfirmAddress uses up a link of the user, whose address it becomes. If it changes, the previous one is told, and all
// other sessions end. An address of
// another user is dmarcd.ErrConflict; see ConfirmableAddress.
func (a *Account) ConfirmAddress(ctx context.Context, link string) error {
	email, err := a.ConfirmableAddress(ctx, link)
	if err != nil {
		return err
	}
	hash, err := auth.HashLink(link)
	if err != nil {
		return err
	}
	before, err := a.store.ConfirmAddress(ctx, hash, a.User.ID, a.session.Hash, a.actor().to("user.address", email, ""))
	if err != nil || before == email {
		return err
	}
	s, by := a.service, a.service.browser(a.client)
	s.post(ctx, func(ctx context.Context) error {
		return s.options.Mail.SendOnce(ctx, before, "address", mail.AddressChanged(by, email))
	})
	return nil
}
