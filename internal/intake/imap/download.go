package imap

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/tempfile"
)

// groups splits messages into groups of at most limit bytes by their announced sizes, or of
// one message.
func groups(messages []Message, limit int64) [][]Message {
	var all [][]Message
	var bytes int64
	for i, m := range messages {
		if i == 0 || bytes+m.Size > limit {
			all = append(all, nil)
			bytes = 0
		}
		bytes += m.Size
		all[len(all)-1] = append(all[len(all)-1], m)
	}
	return all
}

// announce fetches the metadata of messages. It returns them in the order of uids, including
// those that the server omits.
func (s *session) announce(ctx context.Context, uids []imap.UID) ([]Message, error) {
	announced := make(map[imap.UID]Message, len(uids))
	err := s.fetch(ctx, commandTimeout, answerBytes, func() error {
		options := &imap.FetchOptions{UID: true, RFC822Size: true}
		found, err := s.client.Fetch(imap.UIDSetNum(uids...), options).Collect()
		for _, m := range found {
			announced[m.UID] = Message{Size: max(0, m.RFC822Size)}
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("query message sizes: %w", readable(err))
	}
	messages := make([]Message, len(uids))
	for i, uid := range uids {
		messages[i] = announced[uid]
		messages[i].UID = uint32(uid)
	}
	return messages, nil
}

// download fetches the bodies of messages, retries those that the server omits once, and
// returns the messages that still exist, in order. After an error it returns those before the
// first missing one. The caller discards their bodies.
func (r *Reader) download(ctx context.Context, s *session, messages []Message) ([]Message, error) {
	fetched := make(map[uint32]Message, len(messages))
	err := r.rejectLarge(ctx, s, messages, fetched)
	for try := 0; err == nil && try < 2 && len(fetched) < len(messages); try++ {
		err = r.fetchBodies(ctx, s, messages, fetched)
	}
	if err == nil {
		err = s.explainMissing(ctx, messages, fetched)
	}
	var complete []Message
	for i, m := range messages {
		found, ok := fetched[m.UID]
		if !ok && err != nil {
			for _, m := range messages[i:] {
				tempfile.Discard(fetched[m.UID].Body)
			}
			break
		}
		if ok {
			complete = append(complete, found)
		}
	}
	return complete, err
}

// rejectLarge rejects messages that are too large. It fetches only their headers, so that
// users can identify them.
func (r *Reader) rejectLarge(ctx context.Context, s *session, messages []Message, fetched map[uint32]Message) error {
	for _, m := range messages {
		if m.Size <= r.MaxBytes {
			continue
		}
		m.Rejection = r.tooLarge(m.Size)
		section := &imap.FetchItemBodySection{Specifier: imap.PartSpecifierHeader, Peek: true}
		err := r.fetch(ctx, s, []uint32{m.UID}, section, headerBytes, func(uid uint32, header *os.File) {
			if uid != m.UID || m.Body != nil {
				tempfile.Discard(header) // not requested, or sent again
				return
			}
			m.Body = header
		})
		if err != nil {
			tempfile.Discard(m.Body)
			return err
		}
		fetched[m.UID] = m
	}
	return nil
}

func (r *Reader) tooLarge(size int64) string {
	return fmt.Sprintf("The message has %d bytes; %d are taken.", size, r.MaxBytes)
}

// fetchBodies adds the messages that are missing in fetched.
func (r *Reader) fetchBodies(ctx context.Context, s *session, messages []Message, fetched map[uint32]Message) error {
	wanted := map[uint32]Message{}
	var uids []uint32
	for _, m := range messages {
		if _, ok := fetched[m.UID]; !ok {
			wanted[m.UID] = m
			uids = append(uids, m.UID)
		}
	}
	section := &imap.FetchItemBodySection{Peek: true} // do not set the Seen flag
	return r.fetch(ctx, s, uids, section, r.MaxBytes, func(uid uint32, body *os.File) {
		m, ok := wanted[uid]
		if !ok {
			tempfile.Discard(body)
			return
		}
		delete(wanted, uid)
		m.Body = body
		if body == nil {
			m.Rejection = r.tooLarge(max(m.Size, r.MaxBytes+1))
		}
		fetched[uid] = m
	})
}

// fetch requests a section of each message and calls take for each one, with nil if it exceeds
// limit.
func (r *Reader) fetch(ctx context.Context, s *session, uids []uint32, section *imap.FetchItemBodySection,
	limit int64, take func(uid uint32, body *os.File),
) error {
	var set imap.UIDSet
	for _, uid := range uids {
		set.AddNum(imap.UID(uid))
	}
	// The announced sizes of a group add up to limit, but may be wrong. Cut off a server that
	// sends much more.
	allowed := 2*limit + answerBytes + int64(len(uids))*headerBytes
	err := s.fetch(ctx, bodyTimeout, allowed, func() error {
		command := s.client.Fetch(set, &imap.FetchOptions{UID: true, BodySection: []*imap.FetchItemBodySection{section}})
		for m := command.Next(); m != nil; m = command.Next() {
			if err := r.takeBody(m, limit, take); err != nil {
				s.abandon(command)
				return err
			}
		}
		return command.Close()
	})
	if err != nil {
		return fmt.Errorf("download messages: %w", readable(err))
	}
	return nil
}

// abandon closes the connection in the middle of a response and waits for the library's
// reader.
func (s *session) abandon(command *imapclient.FetchCommand) {
	_ = s.raw.Close() // else the library would read the rest
	if s.guard.failure() != nil {
		// The library's reader is stopping. Reading the rest of the message would race with
		// it.
		<-s.client.Closed()
	}
	_ = command.Close() // the error is known
}

func (r *Reader) takeBody(m *imapclient.FetchMessageData, limit int64, take func(uid uint32, body *os.File)) error {
	var uid uint32
	for item := m.Next(); item != nil; item = m.Next() {
		switch item := item.(type) {
		case imapclient.FetchItemDataUID:
			uid = uint32(item.UID)
		case imapclient.FetchItemDataBodySection:
			if item.Literal == nil || uid == 0 {
				continue // NIL: the server has no body; retried, then explained
			}
			body, err := save(r.Folder, item.Literal, limit)
			if err != nil {
				return err
			}
			take(uid, body)
			if body == nil {
				return nil // keep reading: it may be small enough to skip
			}
			uid = 0 // ignore a second body of the same message
		}
	}
	return nil
}

// explainMissing checks whether messages that are missing after a retry were deleted. The
// others are rejected.
func (s *session) explainMissing(ctx context.Context, messages []Message, fetched map[uint32]Message) error {
	for _, m := range messages {
		if _, ok := fetched[m.UID]; ok {
			continue
		}
		there, err := s.search(ctx, span{imap.UID(m.UID), imap.UID(m.UID)})
		if err != nil {
			return err
		}
		if len(there) > 0 {
			m.Rejection = "The mail server lists the message, and does not deliver it."
			fetched[m.UID] = m
		}
	}
	return nil
}

// save writes a message to a temporary file and rewinds it. It returns nil for a message of
// more than limit bytes.
func save(folder string, literal imap.LiteralReader, limit int64) (_ *os.File, err error) {
	if literal.Size() > limit {
		return nil, nil
	}
	file, err := tempfile.Create(folder)
	if err != nil {
		return nil, fmt.Errorf("create a file for a message: %w", err)
	}
	defer func() {
		if err != nil {
			tempfile.Discard(file)
		}
	}()
	// A broken connection looks like the end of the message; only the size shows it.
	n, err := io.Copy(file, literal)
	if err == nil && n != literal.Size() {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, fmt.Errorf("download a message: %w", err)
	}
	if _, err = file.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("download a message: %w", err)
	}
	return file, nil
}

func discardAll(messages []Message) {
	for _, m := range messages {
		tempfile.Discard(m.Body)
	}
}

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
