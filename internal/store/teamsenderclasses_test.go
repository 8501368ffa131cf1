package store_test

import (
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

func TestSenderClasses(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := db.Open(t, store.Options{})
		acme := storetest.Team(t, s, "acme")
		team := s.Team(acme.ID)
		if err := team.SetSenderClass(t.Context(), "example.com", "sendgrid", dmarcd.ClassYours); !errors.Is(err, dmarcd.ErrNotFound) {
			t.Errorf("got %v for a domain that is not there, want ErrNotFound", err)
		}
		musttest.Get(team.AddDomain(t.Context(), "example.com", time.Now()))(t)
		for _, step := range []struct {
			sender string
			class  dmarcd.Class
			want   map[string]dmarcd.Class
		}{
			{"sendgrid", dmarcd.ClassYours, map[string]dmarcd.Class{"sendgrid": dmarcd.ClassYours}},
			{"AS64496", dmarcd.ClassSpoofing, map[string]dmarcd.Class{"sendgrid": dmarcd.ClassYours, "AS64496": dmarcd.ClassSpoofing}},
			{"sendgrid", dmarcd.ClassUnknown, map[string]dmarcd.Class{"sendgrid": dmarcd.ClassUnknown, "AS64496": dmarcd.ClassSpoofing}},
			{"sendgrid", "", map[string]dmarcd.Class{"AS64496": dmarcd.ClassSpoofing}},
			{"sendgrid", "", map[string]dmarcd.Class{"AS64496": dmarcd.ClassSpoofing}},
		} {
			musttest.Do(t, team.SetSenderClass(t.Context(), "example.com", step.sender, step.class))
			got, err := team.SenderClasses(t.Context(), "example.com")
			if err != nil || !maps.Equal(got, step.want) {
				t.Errorf("after %s %q: got %v, %v, want %v", step.sender, step.class, got, err, step.want)
			}
		}
	})
}

// TestSenderClassesAreLimited sets the classes of as many senders as a team may.
func TestSenderClassesAreLimited(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		return
	}
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := db.Open(t, store.Options{})
		team := newTeam(t, s, "acme")
		addDomain(t, team, "example.com")
		addDomain(t, team, "example.org")
		const digit = `(VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9))`
		musttest.Get(db.SQL(t).ExecContext(t.Context(), `INSERT INTO sender_classes (team_id, domain_id, sender, class)
			SELECT domains.team_id, domains.id, 's' || a.column1 || b.column1 || c.column1 || d.column1 || e.column1, 'yours'
			FROM domains, `+digit+` a, `+digit+` b, `+digit+` c, `+digit+` d, `+digit+` e WHERE domains.name = 'example.com'`))(t)
		var invalid *dmarcd.InvalidError
		if err := team.SetSenderClass(t.Context(), "example.org", "sendgrid", dmarcd.ClassYours); !errors.As(err, &invalid) {
			t.Errorf("got %v, want an InvalidError", err)
		}
		musttest.Do(t, team.SetSenderClass(t.Context(), "example.com", "s00007", ""))
		musttest.Do(t, team.SetSenderClass(t.Context(), "example.org", "sendgrid", dmarcd.ClassYours))
	})
}
