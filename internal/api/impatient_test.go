package api_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/dns/dnstest"
	"github.com/dmarcd/dmarcd/internal/api"
	"github.com/dmarcd/dmarcd/internal/musttest"
	usecase "github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// hangUp disconnects the client at the first query, and then times out like a real resolver.
type hangUp struct {
	zone  *dnstest.Zone
	leave context.CancelFunc
}

func (h hangUp) Resolve(ctx context.Context, q dns.Question) dns.Answer {
	h.leave()
	if ctx.Err() != nil {
		return dns.Answer{Outcome: dns.Inconclusive, Reason: "given up"}
	}
	return h.zone.Resolve(ctx, q)
}

// TestImpatientClient checks that the results of a DNS check are saved if the client disconnects.
func TestImpatientClient(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := db.Open(t, store.Options{})
		team := newTeam(t, s, "a")
		musttest.Get(s.Team(team).AddDomain(t.Context(), "example.com", time.Now().Add(time.Hour)))(t)
		ctx, leave := context.WithCancel(t.Context())
		resolver := hangUp{dnstest.New(`_dmarc.example.com TXT "v=DMARC1; p=reject"`), leave}
		handler, err := api.New(api.Options{
			Service: useCases(s, usecase.Options{Checker: newChecker(resolver)}), Authenticator: tokenOf(t, s, team),
			BaseURL: "http://api.example/api", Now: time.Now, Log: slog.New(slog.DiscardHandler),
		})
		musttest.Do(t, err)
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "http://api.example/api/domains/example.com/verify", nil)
		r.Header.Set("Authorization", "Bearer x")
		handler.ServeHTTP(httptest.NewRecorder(), r)
		got := musttest.Get(s.Team(team).Domain(t.Context(), "example.com"))(t)
		if got.Policy != "reject" || got.KnownAt.IsZero() {
			t.Errorf("got policy %q known at %v, want what the DNS says", got.Policy, got.KnownAt)
		}
	})
}
