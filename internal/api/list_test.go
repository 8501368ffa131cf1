package api_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/dns/dnstest"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// TestBrokenListIsNoList checks that a database failure in the middle of a list closes the
// connection; the client never gets a well-formed shorter array.
func TestBrokenListIsNoList(t *testing.T) {
	t.Parallel()
	db := storetest.SQLite(t)
	s := db.Open(t, store.Options{})
	team := newTeam(t, s, "a")
	var names []string
	for i := range 3000 {
		names = append(names, fmt.Sprintf("d%d.example", i))
	}
	musttest.Get(s.Team(team).AddDomains(t.Context(), names, time.Time{}))(t)
	handler := newAPI(t, s, tokenOf(t, s, team), dnstest.New(""))
	w := &breaking{ResponseRecorder: httptest.NewRecorder(), onFlush: func() { _ = s.Close() }}
	r := httptest.NewRequest(http.MethodGet, "http://api.example/api/domains", nil)
	r.Header.Set("Authorization", "Bearer x")
	defer func() {
		if recover() != http.ErrAbortHandler { //nolint:errorlint // thrown unwrapped
			t.Error("the connection was not closed")
		}
		if body := strings.TrimSpace(w.Body.String()); !strings.HasPrefix(body, "[{") || strings.HasSuffix(body, "]") {
			t.Errorf("got a list of %d bytes that ends in %q", len(body), body[max(0, len(body)-20):])
		}
	}()
	handler.ServeHTTP(w, r)
}

// breaking does something at the first flush.
type breaking struct {
	*httptest.ResponseRecorder
	onFlush func()
}

func (b *breaking) FlushError() error {
	b.onFlush()
	return nil
}
