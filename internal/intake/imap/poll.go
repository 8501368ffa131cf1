package imap

import (
	"context"
	"fmt"
	"slices"

	"github.com/emersion/go-imap/v2"

	"github.com/dmarcd/dmarcd"
)

// poll reads the new messages of the folder.
func (w *work) poll(ctx context.Context, s *session) error {
	folder, err := s.open(ctx, w.Mailbox.Folder)
	if err != nil {
		return err
	}
	if w.renumbered(folder) {
		w.Log.Warn("mailbox UIDs changed, reading it from the beginning", "mailbox", w.Mailbox.ID, "team", w.Mailbox.Team)
	}
	if err := w.settle(ctx, s); err != nil {
		return err
	}
	end, err := s.end(ctx, folder)
	if err != nil {
		return err
	}
	for imap.UID(w.state.LastUID)+1 < end {
		in := nextSpan(imap.UID(w.state.LastUID), end, folder.NumMessages)
		uids, err := s.search(ctx, in)
		if err != nil {
			return err
		}
		for part := range slices.Chunk(uids, chunk) {
			if err := w.read(ctx, s, part); err != nil {
				return err
			}
		}
		if len(uids) == 0 && in.last+1 < end {
			w.state.LastUID = uint32(in.last) // saved with the next message: gaps may be wide
			continue
		}
		if err := w.advance(ctx, uint32(in.last)); err != nil {
			return err
		}
	}
	return nil
}

// renumbered records the UIDVALIDITY of the folder and reports whether known UIDs are void:
// the messages have other UIDs, or UIDs are reused, as after a restored backup.
func (w *work) renumbered(folder *imap.SelectData) bool {
	same := folder.UIDValidity == w.state.UIDValidity
	if same && (folder.UIDNext == 0 || uint64(folder.UIDNext) > uint64(w.state.LastUID)) {
		return false
	}
	before := w.state
	w.state = State{UIDValidity: folder.UIDValidity}
	w.owed = nil
	return before != State{}
}

func (w *work) read(ctx context.Context, s *session, uids []imap.UID) error {
	announced, err := s.announce(ctx, uids)
	if err != nil {
		return err
	}
	for _, group := range groups(announced, w.MaxBytes) {
		if err := w.bring(ctx, s, group); err != nil {
			return err
		}
		// Messages at the end of the group that were deleted count as read too.
		if err := w.advance(ctx, group[len(group)-1].UID); err != nil {
			return err
		}
		if err := w.settle(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// bring downloads a group of messages and passes on those that arrived.
func (w *work) bring(ctx context.Context, s *session, group []Message) error {
	messages, broken := w.download(ctx, s, group)
	defer discardAll(messages)
	if err := w.accept(ctx, messages); err != nil {
		return err
	}
	return broken
}

// accept passes messages on, and counts them as read once they are stored.
func (w *work) accept(ctx context.Context, messages []Message) error {
	if len(messages) == 0 {
		return nil
	}
	if err := w.Accept(ctx, messages); err != nil {
		return fmt.Errorf("store reports of messages: %w", err)
	}
	w.progress = true
	for _, m := range messages {
		// Rejected messages are not stored here: leave them unmarked.
		if m.Rejection == "" && w.Mailbox.After != dmarcd.AfterKeep {
			w.owed.AddNum(imap.UID(m.UID))
		} else if m.Rejection != "" {
			w.Log.Warn("message rejected", "mailbox", w.Mailbox.ID, "team", w.Mailbox.Team, "uid", m.UID, "reason", m.Rejection)
		}
	}
	return w.advance(ctx, messages[len(messages)-1].UID)
}

// advance saves that all messages up to uid were read.
func (w *work) advance(ctx context.Context, uid uint32) error {
	if uid <= w.state.LastUID {
		return nil
	}
	next := State{UIDValidity: w.state.UIDValidity, LastUID: uid}
	if err := w.SaveState(ctx, next); err != nil {
		return fmt.Errorf("save mailbox position: %w", err)
	}
	w.state = next
	return nil
}

// settle marks the accepted messages, including those of earlier connections. A message that
// the server does not mark is not retried.
func (w *work) settle(ctx context.Context, s *session) error {
	if len(w.owed) == 0 {
		return nil
	}
	err := s.mark(ctx, w.Mailbox, w.owed)
	if err != nil && !rejected(err) {
		return err
	}
	if err != nil {
		w.Log.Warn("could not mark messages as processed", "mailbox", w.Mailbox.ID, "team", w.Mailbox.Team, "error", err)
	}
	w.owed, w.unmarked = nil, err
	return nil
}
