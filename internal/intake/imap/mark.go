package imap

import (
	"context"
	"fmt"

	"github.com/emersion/go-imap/v2"

	"github.com/dmarcd/dmarcd"
)

// mark applies the configured action to messages that were read.
func (s *session) mark(ctx context.Context, m dmarcd.Mailbox, uids imap.UIDSet) error {
	var err error
	switch m.After {
	case dmarcd.AfterFlag:
		err = s.flag(ctx, uids, imap.FlagSeen)
	case dmarcd.AfterMove:
		err = s.move(ctx, uids, m.MoveTo)
		if rejected(err) {
			// The folder may not exist yet; if it does, this fails.
			_ = s.command(ctx, func() error { return s.client.Create(m.MoveTo, nil).Wait() })
			err = s.move(ctx, uids, m.MoveTo)
		}
	case dmarcd.AfterDelete:
		err = s.expunge(ctx, uids)
	case dmarcd.AfterKeep:
	}
	if err != nil {
		return fmt.Errorf("%s processed messages: %w", m.After, readable(err))
	}
	return nil
}

func (s *session) flag(ctx context.Context, uids imap.UIDSet, flag imap.Flag) error {
	return s.command(ctx, func() error {
		change := &imap.StoreFlags{Op: imap.StoreFlagsAdd, Silent: true, Flags: []imap.Flag{flag}}
		return s.client.Store(uids, change, nil).Close()
	})
}

// move uses MOVE (RFC 6851), or copies and then deletes. The library would not wait for the
// copy.
func (s *session) move(ctx context.Context, uids imap.UIDSet, folder string) error {
	if s.caps.Has(imap.CapMove) {
		return s.command(ctx, func() error {
			_, err := s.client.Move(uids, folder).Wait()
			return err
		})
	}
	err := s.command(ctx, func() error {
		_, err := s.client.Copy(uids, folder).Wait()
		return err
	})
	if err != nil {
		return err
	}
	return s.expunge(ctx, uids)
}

// expunge deletes messages. Without UIDPLUS (RFC 4315) it only sets the Deleted flag: EXPUNGE
// would also delete messages that other clients have flagged.
func (s *session) expunge(ctx context.Context, uids imap.UIDSet) error {
	if err := s.flag(ctx, uids, imap.FlagDeleted); err != nil {
		return err
	}
	if !s.caps.Has(imap.CapUIDPlus) {
		return nil
	}
	return s.command(ctx, func() error { return s.client.UIDExpunge(uids).Close() })
}
