package api_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/dmarcd/dmarcd/internal/api"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// sendWithKey sends a POST with an idempotency key.
func (s *service) sendWithKey(key, path, body string) answer {
	s.t.Helper()
	r := s.request(http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", key)
	return s.send(r)
}

func (a answer) wantError(t *testing.T, status int, code string) {
	t.Helper()
	if a.status != status || a.header.Get("Dmarcd-Error") != code {
		t.Errorf("got status %d and the code %q, want %d and %q: %s", a.status, a.header.Get("Dmarcd-Error"), status, code, a.body)
	}
}

// TestRepeatedRequests sends requests again with their keys.
func TestRepeatedRequests(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := newService(t, db.Open(t, store.Options{}))
		first := s.sendWithKey("1", "/domains", `{"domain":"example.com"}`)
		if first.status != http.StatusCreated {
			t.Fatalf("got status %d: %s", first.status, first.body)
		}
		musttest.Do(t, s.team.DeleteDomain(t.Context(), "example.com"))
		again := s.sendWithKey("1", "/domains", `{"domain":"example.com"}`)
		if again.status != http.StatusCreated || !bytes.Equal(again.body, first.body) || again.header.Get("Location") != first.header.Get("Location") || again.header.Get("Content-Type") != "application/json" {
			t.Errorf("got %d %v %s, want the first answer: %s", again.status, again.header, again.body, first.body)
		}
		if domains := musttest.Get(s.team.Domains(t.Context(), "", 10))(t); len(domains) != 0 {
			t.Errorf("got the domains %v, want the request to be handled once", domains)
		}
		s.sendWithKey("1", "/domains", `{"domain":"example.org"}`).wantError(t, 422, "key_reused")
		s.sendWithKey("1", "/domains/bulk", `{"add":["example.com"]}`).wantError(t, 422, "key_reused")
		s.sendWithKey("1", "/alerts/test", "").wantError(t, 422, "key_reused")

		// What fails is handled again, even with another body.
		s.sendWithKey("2", "/domains", `{"domain":"x"}`).wantError(t, 422, "invalid_input")
		s.sendWithKey("2", "/domains", `{"domain":"example.org"}`)
		s.sendWithKey("2", "/domains", `{"domain":"example.com"}`).wantError(t, 422, "key_reused")

		// A large answer is not stored.
		names := make([]string, 1000)
		for i := range names {
			names[i] = fmt.Sprintf(`"n%d.example"`, i)
		}
		bulk := `{"add":[` + strings.Join(names, ",") + `]}`
		if got := s.sendWithKey("3", "/domains/bulk", bulk); got.status != http.StatusOK {
			t.Errorf("got status %d: %s", got.status, got.body)
		}
		s.sendWithKey("3", "/domains/bulk", bulk).wantError(t, 409, "answer_not_stored")

		report := string(aggregateXML("1", "example.org", firstDay, row{"example.org", "none", "pass", 1}))
		uploaded := s.sendWithKey("4", "/reports", report)
		if repeated := s.sendWithKey("4", "/reports", report); uploaded.status != http.StatusCreated || repeated.status != http.StatusCreated {
			t.Errorf("an upload: got status %d and %d, want 201", uploaded.status, repeated.status)
		}
		s.sendWithKey("4", "/reports", report+" ").wantError(t, 422, "key_reused")
		s.sendWithKey("4", "/reports", strings.Repeat("x", maxUpload+1)).wantError(t, 422, "key_reused")

		form, media := form(t, aggregateXML("2", "example.org", firstDay, row{"example.org", "none", "pass", 1}))
		for range 2 {
			r := s.request(http.MethodPost, "/reports", bytes.NewReader(form))
			r.Header.Set("Content-Type", media)
			r.Header.Set("Idempotency-Key", "5")
			if got := s.send(r); got.status != http.StatusCreated {
				t.Errorf("a form: got status %d, want 201: %s", got.status, got.body)
			}
		}
	})
}

// TestIdempotencyKeysAreChecked sends malformed keys, and keys to operations that ignore them.
func TestIdempotencyKeysAreChecked(t *testing.T) {
	t.Parallel()
	s := newService(t, storetest.SQLite(t).Open(t, store.Options{}))
	for _, key := range []string{"", strings.Repeat("x", 256), "schlüssel", "a\tb"} {
		s.sendWithKey(key, "/alerts/test", "").wantError(t, 422, "invalid_input")
	}
	two := s.request(http.MethodPost, "/alerts/test", nil)
	two.Header["Idempotency-Key"] = []string{"1", "2"}
	s.send(two).wantError(t, 422, "invalid_input")
	secrets := map[string]bool{}
	for range 2 {
		created := read[struct{ Secret string }](t, s.sendWithKey("1", "/tokens", `{"scope":"read"}`), http.StatusCreated)
		secrets[created.Secret] = true
	}
	if len(secrets) != 2 {
		t.Errorf("got %d secrets, want two: an answer with a secret is not stored", len(secrets))
	}
}

// TestRepeatedOnTwoReplicas sends the same request to two replicas at once: one handles it.
func TestRepeatedOnTwoReplicas(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := newService(t, db.Open(t, store.Options{}))
		other := *s
		other.store = db.Open(t, store.Options{})
		token := musttest.Get(s.team.Tokens(t.Context()))(t)[1]
		other.api = musttest.Get(api.New(newOptions(t, other.store, onlyTeam{token}).Options))(t)
		var requests sync.WaitGroup
		for i := range 8 {
			requests.Go(func() {
				replica := []*service{s, &other}[i%2]
				if got := replica.sendWithKey("1", "/alerts/test", ""); got.status != http.StatusOK && got.header.Get("Dmarcd-Error") != "key_in_use" {
					t.Errorf("got status %d: %s", got.status, got.body)
				}
			})
		}
		requests.Wait()
		if events := musttest.Get(s.team.Events(t.Context(), store.EventFilter{}, store.Cursor{}, 10))(t); len(events) != 1 {
			t.Errorf("got %d events, want one", len(events))
		}
	})
}
