package imap

import (
	"context"
	"fmt"
	"slices"

	"github.com/emersion/go-imap/v2"

	"github.com/dmarcd/dmarcd"
)

// look reads what is new in the folder.
func (w *work) look(ctx context.Context, s *session) error {
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
			w.state.LastUID = uint32(in.last) // saved with what follows: gaps may be wide
			continue
		}
		if err := w.advance(ctx, uint32(in.last)); err != nil {
			return err
		}
	}
	return nil
}

// renumbered notes the numbering of the folder, and reports whether what is known
// of its messages is void: they have other UIDs, or ones that were given before
// are given anew, as after a restored backup.
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

// read brings in messages of the folder.
func (w *work) read(ctx context.Context, s *session, uids []imap.UID) error {
	announced, err := s.announce(ctx, uids)
	if err != nil {
		return err
	}
	for _, group := range groups(announced, w.MaxBytes) {
		if err := w.bring(ctx, s, group); err != nil {
			return err
		}
		// Those at the end of the group that are gone count as read too.
		if err := w.advance(ctx, group[len(group)-1].UID); err != nil {
			return err
		}
		if err := w.settle(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// bring downloads a group of messages and hands over those that arrived.
func (w *work) bring(ctx context.Context, s *session, group []Message) error {
	messages, broken := w.download(ctx, s, group)
	defer discardAll(messages)
	if err := w.accept(ctx, messages); err != nil {
		return err
	}
	return broken
}

// accept hands messages over, and counts them as read when they are kept.
func (w *work) accept(ctx context.Context, messages []Message) error {
	if len(messages) == 0 {
		return nil
	}
	if err := w.Accept(ctx, messages); err != nil {
		return fmt.Errorf("store reports of messages: %w", err)
	}
	w.progress = true
	for _, m := range messages {
		// What was refused is not with us: it stays as it lies.
		if m.Refusal == "" && w.Mailbox.After != dmarcd.AfterKeep {
			w.owed.AddNum(imap.UID(m.UID))
		} else if m.Refusal != "" {
			w.Log.Warn("message rejected", "mailbox", w.Mailbox.ID, "team", w.Mailbox.Team, "uid", m.UID, "reason", m.Refusal)
		}
	}
	return w.advance(ctx, messages[len(messages)-1].UID)
}

// advance keeps that all messages up to one were read.
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

// settle marks what is owed, of former connections too. What the server refuses
// to mark is not tried again.
func (w *work) settle(ctx context.Context, s *session) error {
	if len(w.owed) == 0 {
		return nil
	}
	err := s.mark(ctx, w.Mailbox, w.owed)
	if err != nil && !refused(err) {
		return err
	}
	if err != nil {
		w.Log.Warn("could not mark messages as processed", "mailbox", w.Mailbox.ID, "team", w.Mailbox.Team, "error", err)
	}
	w.owed, w.unmarked = nil, err
	return nil
}
