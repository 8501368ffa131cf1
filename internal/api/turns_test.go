package api_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/internal/fair"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// takeTurns takes slots for long reads as a team until ctx ends, and reports whether it got all.
func takeTurns(ctx context.Context, team *store.Team, turns int64) (end func(), all bool) {
	var ends []func()
	for range turns {
		ends = append(ends, team.ReadTurn(ctx))
	}
	return func() {
		for _, end := range ends {
			end()
		}
	}, ctx.Err() == nil
}

// onWrite is a client that does something whenever it gets data.
type onWrite struct {
	*httptest.ResponseRecorder
	do func()
}

func (w onWrite) Write(p []byte) (int, error) {
	w.do()
	return w.ResponseRecorder.Write(p)
}

// TestLongAnswersTakeTurns checks that requests for many rows wait for a slot before they read, and
// hold none while they write to the client.
func TestLongAnswersTakeTurns(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		var searches atomic.Int64 // of names
		opened := db.Open(t, store.Options{Statement: func(query string) {
			if strings.Contains(query, "replace(domains.name,") {
				searches.Add(1)
			}
		}})
		s := newService(t, opened, later(opened))
		names := make([]string, 150)
		for i := range names {
			names[i] = fmt.Sprintf("d%03d.example", i)
		}
		s.add(names...)
		id := s.stored(aggregateXML("a", names[0], firstDay, row{names[0], "none", "pass", 1}, row{names[0], "none", "fail", 2}))
		other := opened.Team(newTeam(t, opened, "other"))
		// request reports whether the answer is whole.
		request := func(ctx context.Context, path string, written func()) (whole bool) {
			defer func() {
				if p := recover(); p != nil && p != any(http.ErrAbortHandler) {
					panic(p)
				}
			}()
			r := s.request(http.MethodGet, path, nil).WithContext(ctx)
			r.Header.Set("Authorization", "Bearer x")
			w := onWrite{httptest.NewRecorder(), written}
			s.api.ServeHTTP(w, r)
			return w.Code == http.StatusOK && w.Body.Len() > 0
		}
		for _, path := range []string{
			"/insights/records", "/search?q=receiver", "/domains", "/domains?limit=1000", "/insights/reports?limit=1000",
			"/insights/reports/" + id, "/insights/reports/" + id + "/records?limit=1000", "/events?limit=1000",
		} {
			end, all := takeTurns(t.Context(), other, 2*fair.HalfCores()) // the spare ones, too
			if !all {
				t.Fatal("got too few turns")
			}
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			if request(ctx, path, func() {}) {
				t.Errorf("%s: got an answer without a turn", path)
			}
			cancel()
			end()
			if n := searches.Load(); n > 0 {
				t.Errorf("%s: got %d searches without a turn", path, n)
			}
			whole := request(t.Context(), path, func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				end, all := takeTurns(ctx, other, fair.HalfCores())
				defer end()
				if !all {
					t.Errorf("%s: got a turn that is held while the client is written to", path)
				}
			})
			if !whole {
				t.Errorf("%s: got no answer", path)
			}
			searches.Store(0)
		}
	})
}
