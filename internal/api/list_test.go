package api_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dns/dnstest"
	"github.com/dmarcd/dmarcd/internal/dnscheck"
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

// TestCursorOfAnotherList checks that a cursor belongs to a path, to what the path names, and to a
// team, however the name of a domain is written.
func TestCursorOfAnotherList(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := db.Open(t, store.Options{})
		first, second := newService(t, s), newServiceOf(t, s, newTeam(t, s, "second"))
		records := make(map[*service]string, 2)
		var another string
		for _, of := range []*service{first, second} {
			of.add("example.com", "example.org")
			of.stored(aggregateXML("1", "example.com", firstDay, row{"example.com", "none", "pass", 1}))
			another = of.stored(aggregateXML("2", "example.com", firstDay, row{"example.com", "none", "pass", 1}))
			records[of] = of.stored(aggregateXML("3", "example.com", firstDay, row{"example.com", "none", "pass", 1}, row{"example.com", "none", "fail", 2}))
		}
		next := func(path string) string {
			cursor := read[page[struct{}]](t, first.get(path+"?limit=1"), http.StatusOK).Next
			if cursor == nil {
				t.Fatalf("%s has no second page", path)
			}
			return "?after=" + *cursor
		}
		ofReports := next("/insights/reports")
		ofRecords := next("/insights/reports/" + records[first] + "/records")
		ofDomains := next("/insights/domains")
		for _, tt := range []struct {
			name   string
			list   *service
			path   string
			status int
		}{
			{"the same list", first, "/insights/reports" + ofReports, http.StatusOK},
			{"the same records", first, "/insights/reports/" + records[first] + "/records" + ofRecords, http.StatusOK},
			{"the same domains", first, "/insights/domains" + ofDomains, http.StatusOK},
			{"the list of another team", second, "/insights/reports" + ofReports, http.StatusUnprocessableEntity},
			{"the domains of another team", second, "/insights/domains" + ofDomains, http.StatusUnprocessableEntity},
			{"the records of another report", second, "/insights/reports/" + another + "/records" + ofRecords, http.StatusUnprocessableEntity},
			{"another list", first, "/insights/rejected" + ofReports, http.StatusUnprocessableEntity},
		} {
			got := tt.list.get(tt.path)
			if got.status != tt.status || tt.status != http.StatusOK && !strings.Contains(string(got.body), "no cursor of this list") {
				t.Errorf("%s: got %d: %s", tt.name, got.status, got.body)
			}
		}
	})
}

// TestCursorOfADomain checks that the cursor of a list of a domain is one of that domain only.
func TestCursorOfADomain(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := newService(t, db.Open(t, store.Options{}))
		s.add("example.com", "example.org")
		for _, policy := range []string{"none", "reject"} {
			zone := dnstest.New(`_dmarc.example.com TXT "v=DMARC1; p=` + policy + `"`)
			check := newChecker(zone).Examine(t.Context(), dnscheck.Request{Domain: "example.com"})
			musttest.Get(s.team.SaveCheck(t.Context(), "example.com", check, dmarcd.Plan{Next: time.Now().Add(time.Hour)}))(t)
		}
		cursor := read[page[struct{}]](t, s.get("/domains/example.com/checks?limit=1"), http.StatusOK).Next
		if cursor == nil {
			t.Fatal("the list of checks has no second page")
		}
		for path, status := range map[string]int{
			"/domains/example.com/checks":  http.StatusOK,
			"/domains/EXAMPLE.com./checks": http.StatusOK,
			"/domains/example.org/checks":  http.StatusUnprocessableEntity,
		} {
			if got := s.get(path + "?after=" + *cursor); got.status != status {
				t.Errorf("%s: got %d, want %d: %s", path, got.status, status, got.body)
			}
		}
	})
}
