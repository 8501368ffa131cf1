package backend_test

import (
	"errors"
	"testing"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
	"github.com/dmarcd/dmarcd/internal/web"
)

func TestMailboxErrorsStandAtTheirFields(t *testing.T) {
	t.Parallel()
	s := newService(t, storetest.SQLite(t))
	_, viewer := s.owner(t, "acme", "ann@example.com")
	mailboxes := s.Team(viewer).Mailboxes
	for _, row := range []struct {
		name  string
		wrong func(*web.NewMailbox)
		field string
	}{
		{"no server", func(m *web.NewMailbox) { m.Server = "" }, "server"},
		{"a port that is none", func(m *web.NewMailbox) { m.Server = "imap.example.org:imaps" }, "server"},
		{"port 0", func(m *web.NewMailbox) { m.Server = "imap.example.org:0" }, "server"},
		{"no user", func(m *web.NewMailbox) { m.Username = " " }, "username"},
		{"another encryption", func(m *web.NewMailbox) { m.Security = "rot13" }, "security"},
		{"moved to nowhere", func(m *web.NewMailbox) { m.After = "move" }, "after"},
	} {
		wanted := sampleMailbox()
		row.wrong(&wanted)
		var invalid *dmarcd.InvalidError
		if err := mailboxes.AddMailbox(t.Context(), wanted); !errors.As(err, &invalid) || invalid.Field != row.field {
			t.Errorf("%s: got %#v, want an error at %s", row.name, err, row.field)
		}
	}
	if err := mailboxes.AddMailbox(t.Context(), sampleMailbox()); err != nil {
		t.Fatal(err)
	}
	added, err := mailboxes.Mailboxes(t.Context())
	if err != nil || len(added) != 1 || added[0].Host != "imap.example.org:1993" {
		t.Errorf("got %+v and %v, want the one that is right", added, err)
	}
}
