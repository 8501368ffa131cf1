package backend

import (
	"context"
	"encoding/hex"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/web"
)

// Profile implements web.OwnAccount.
func (b *Backend) Profile(ctx context.Context, browser web.Browser) (web.Profile, error) {
	here, err := b.options.Sessions.Resolve(ctx, browser.Session)
	if err != nil {
		return web.Profile{}, err
	}
	profile := web.Profile{Name: here.User.Name, Email: here.User.Email, Password: here.User.Password}
	sessions, err := b.options.Store.Sessions(ctx, here.User.ID)
	now := b.options.Now()
	for _, session := range sessions {
		if !session.Valid(now) {
			continue // nobody has removed it yet
		}
		profile.Sessions = append(profile.Sessions, web.SignedIn{
			ID: sessionID(session), UserAgent: session.UserAgent, Address: session.Address,
			SignedInAt: session.CreatedAt, SeenAt: session.SeenAt, Here: session.Hash == here.Hash,
		})
	}
	return profile, err
}

// sessionID names a session in a page. The hash opens nothing.
func sessionID(session dmarcd.Session) string { return hex.EncodeToString(session.Hash[:]) }

// SetName implements web.OwnAccount.
func (b *Backend) SetName(ctx context.Context, browser web.Browser, name string) error {
	here, err := b.options.Sessions.Resolve(ctx, browser.Session)
	if err != nil {
		return err
	}
	if err := b.options.Store.SetUserName(ctx, here.User.ID, name); err != nil {
		return err
	}
	b.noteOwn(ctx, here, browser, "user.name", "")
	return nil
}

// SetPassword implements web.OwnAccount.
func (b *Backend) SetPassword(ctx context.Context, browser web.Browser, current, next string) error {
	here, err := b.options.Sessions.Resolve(ctx, browser.Session)
	if err != nil {
		return err
	}
	if err := b.options.Passwords.Change(ctx, here, current, next, browser.Address); err != nil {
		return err
	}
	b.noteOwn(ctx, here, browser, "user.password", "")
	return nil
}

// EndSession implements web.OwnAccount.
func (b *Backend) EndSession(ctx context.Context, browser web.Browser, id string) error {
	here, err := b.options.Sessions.Resolve(ctx, browser.Session)
	if err != nil {
		return err
	}
	sessions, err := b.options.Store.Sessions(ctx, here.User.ID)
	if err != nil {
		return err
	}
	for _, session := range sessions {
		if sessionID(session) != id {
			continue
		}
		if err := b.options.Store.EndSession(ctx, session.Hash); err != nil {
			return err
		}
		b.noteOwn(ctx, here, browser, "session.end", "that from "+session.Address)
		return nil
	}
	return dmarcd.ErrNotFound
}

// EndOtherSessions implements web.OwnAccount.
func (b *Backend) EndOtherSessions(ctx context.Context, browser web.Browser) error {
	here, err := b.options.Sessions.Resolve(ctx, browser.Session)
	if err != nil {
		return err
	}
	if err := b.options.Store.EndSessions(ctx, here.User.ID, here.Hash); err != nil {
		return err
	}
	b.noteOwn(ctx, here, browser, "session.end", "all others")
	return nil
}

// noteOwn writes what users change of themselves into the audit log of the
// installation: a user is no team's.
func (b *Backend) noteOwn(ctx context.Context, here dmarcd.Session, browser web.Browser, action, detail string) {
	j := b.journalOf(web.Viewer{ID: here.User.ID.String(), Email: here.User.Email, Address: browser.Address})
	j.write(ctx, b.options.Store, action, here.User.Email, detail)
}
