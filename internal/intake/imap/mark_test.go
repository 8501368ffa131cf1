package imap_test

import (
	"strings"
	"testing"
	"time"

	goimap "github.com/emersion/go-imap/v2"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

func TestReaderMarksWhatWasRead(t *testing.T) {
	// folder is the final state of INBOX or Read. INBOX starts with two unread messages and
	// one that another client has read and flagged as deleted.
	type folder struct{ all, unseen, deleted uint32 }
	plain := goimap.CapSet{goimap.CapIMAP4rev1: {}}
	uidplus := goimap.CapSet{goimap.CapIMAP4rev1: {}, goimap.CapUIDPlus: {}}
	for _, row := range []struct {
		name        string
		after       dmarcd.AfterReading
		caps        goimap.CapSet
		create      bool
		refuse      func() error
		inbox, read folder
		says        string
	}{
		{name: "kept", after: dmarcd.AfterKeep, caps: allCaps(), create: true, inbox: folder{3, 3, 1}},
		{name: "flagged", after: dmarcd.AfterFlag, caps: allCaps(), create: true, inbox: folder{3, 1, 1}},
		{name: "deleted", after: dmarcd.AfterDelete, caps: allCaps(), create: true, inbox: folder{1, 1, 1}},
		{name: "deleted without UIDPLUS: no other messages are expunged", after: dmarcd.AfterDelete, caps: plain, create: true, inbox: folder{3, 3, 3}},
		{name: "moved", after: dmarcd.AfterMove, caps: allCaps(), create: true, inbox: folder{1, 1, 1}, read: folder{2, 2, 0}},
		{name: "moved to a folder that was missing", after: dmarcd.AfterMove, caps: allCaps(), inbox: folder{1, 1, 1}, read: folder{2, 2, 0}},
		{name: "moved without MOVE", after: dmarcd.AfterMove, caps: uidplus, create: true, inbox: folder{1, 1, 1}, read: folder{2, 2, 0}},
		{name: "moved without MOVE and UIDPLUS", after: dmarcd.AfterMove, caps: plain, inbox: folder{3, 3, 3}, read: folder{2, 2, 0}},
		{
			name: "not allowed to move", after: dmarcd.AfterMove, caps: allCaps(), create: true, refuse: noPermission,
			inbox: folder{3, 3, 1}, says: "move processed messages: NO [NOPERM] not allowed",
		},
		{
			name: "not allowed to copy: nothing is deleted", after: dmarcd.AfterMove, caps: uidplus, create: true, refuse: noPermission,
			inbox: folder{3, 3, 1}, says: "move processed messages: NO [NOPERM] not allowed",
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				s := serve(t, row.caps, nil)
				if row.create {
					s.create("Read")
				}
				s.deliver("INBOX", mail(1), goimap.FlagDeleted)
				s.deliver("INBOX", mail(2))
				s.deliver("INBOX", mail(3))
				d := newTestReader(t, s)
				d.reader.Mailbox.After, d.reader.Mailbox.MoveTo = row.after, "Read"
				s.set(faults{copied: row.refuse})
				validity := uidValidity(t, s)
				d.reader.Mailbox.UIDValidity, d.reader.Mailbox.LastUID = validity, 1
				d.run(func() { after(time.Second) })
				d.want(2, 3)
				for name, want := range map[string]folder{"INBOX": row.inbox, "Read": row.read} {
					var got folder
					got.all, got.unseen, got.deleted = s.count(name)
					if got != want {
						t.Errorf("%s: got %+v, want %+v", name, got, want)
					}
				}
				if got := d.lastStatus(); got != row.says {
					t.Errorf("got the status %q, want %q", got, row.says)
				}
				if d.state.LastUID != 3 {
					t.Errorf("got the state %+v, want one up to 3: what is kept is read", d.state)
				}
				if row.says != "" && !strings.Contains(d.log.String(), "could not mark") {
					t.Error("the log does not tell it")
				}
			})
		})
	}
}

func uidValidity(t *testing.T, s *server) uint32 {
	t.Helper()
	data := musttest.Get(s.user.Status("INBOX", &goimap.StatusOptions{UIDValidity: true}))(t)
	return data.UIDValidity
}
