package imap_test

import (
	"testing"

	goimap "github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"

	"github.com/dmarcd/dmarcd/internal/musttest"
)

// other is another client of the mailbox.
type other struct {
	t      *testing.T
	client *imapclient.Client
}

func connectOther(t *testing.T, s *server) *other {
	t.Helper()
	conn := musttest.Get(s.dial(t.Context(), "", ""))(t)
	client := imapclient.New(conn, nil)
	t.Cleanup(func() { _ = client.Close() }) // the server may have stopped
	musttest.Do(t, client.Login(user, password).Wait())
	musttest.Get(client.Select("INBOX", nil).Wait())(t)
	return &other{t: t, client: client}
}

func (o *other) expunge(uid goimap.UID) {
	flag := &goimap.StoreFlags{Op: goimap.StoreFlagsAdd, Silent: true, Flags: []goimap.Flag{goimap.FlagDeleted}}
	if err := o.client.Store(goimap.UIDSetNum(uid), flag, nil).Close(); err != nil {
		o.t.Error(err)
	}
	if err := o.client.UIDExpunge(goimap.UIDSetNum(uid)).Close(); err != nil {
		o.t.Error(err)
	}
}
