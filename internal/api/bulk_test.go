package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
	"github.com/dmarcd/dmarcd/internal/wire"
)

func TestChangeDomains(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := newService(t, db.Open(t, store.Options{}))
		send := func(body string) answer {
			r := s.request(http.MethodPost, "/domains/bulk", strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			return s.send(r)
		}
		results := func(body string) string {
			t.Helper()
			var words []string
			for _, item := range read[wire.DomainResults](t, send(body), http.StatusOK).Items {
				words = append(words, item.Domain+" "+item.Result)
				if (item.Message != nil) != (item.Result == "invalid") {
					t.Errorf("%s: got the message %v of %s", body, item.Message, item.Result)
				}
			}
			return strings.Join(words, ", ")
		}
		count := func() int {
			t.Helper()
			return len(musttest.Get(s.team.Domains(t.Context(), "", 1000))(t))
		}
		for _, step := range []struct {
			body, want string
			domains    int
		}{
			{`{"add": ["a.example", " B.Example. ", "a b", "a.example", "192.0.2.1"]}`, "a.example added, b.example added, a b invalid, a.example exists, 192.0.2.1 invalid", 2},
			{`{"add": ["b.example", "c.example"], "delete": null}`, "b.example exists, c.example added", 3},
			{`{"delete": ["A.example", "c.example", "c.example", "d.example", "?"]}`, "a.example deleted, c.example deleted, c.example not_found, d.example not_found, ? invalid", 1},
			{`{"delete": ["c.example"]}`, "c.example not_found", 1},
		} {
			if got := results(step.body); got != step.want || count() != step.domains {
				t.Errorf("%s: got %s and %d domains, want %s and %d", step.body, got, count(), step.want, step.domains)
			}
		}
		entries := len(musttest.Get(s.team.Audit(t.Context(), store.AuditFilter{}, store.Cursor{}, 100))(t))
		if entries != 3 {
			t.Errorf("got %d audit entries, want one for each request that changed something", entries)
		}

		many := func(n int) string {
			names := make([]string, n)
			for i := range names {
				names[i] = fmt.Sprintf("d%05d.example", i)
			}
			return string(musttest.Get(json.Marshal(map[string]any{"add": names}))(t))
		}
		for body, status := range map[string]int{
			`{}`: 422, `{"add": null}`: 422, `{"add": []}`: 422, `{"add": "a.example"}`: 422, `{"add": [1]}`: 422, `{"add": ["x.example"], "delete": ["b.example"]}`: 422,
			`{"delete": {}}`: 422, `["x.example"]`: 422, `{"add": [`: 400, many(dmarcd.MaxBulk + 1): 422, `{"add": ["` + strings.Repeat("x", 4<<20) + `"]}`: 413,
		} {
			if got := send(body); got.status != status || count() != 1 {
				t.Errorf("%.40s: got status %d and %d domains, want %d and no change", body, got.status, count(), status)
			}
		}
		musttest.Do(t, s.team.SetQuotas(t.Context(), dmarcd.Quota{dmarcd.QuotaDomains: 3}))
		if got := send(`{"add": ["x.example", "y.example", "z.example"]}`); got.status != http.StatusForbidden || count() != 1 {
			t.Errorf("over the quota: got status %d and %d domains, want 403 and none added", got.status, count())
		}
	})
}

// TestChangeManyDomains adds and deletes as many domains as a request may have.
func TestChangeManyDomains(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		return
	}
	s := newService(t, storetest.SQLite(t).Open(t, store.Options{}))
	names := make([]string, dmarcd.MaxBulk)
	for i := range names {
		names[i] = fmt.Sprintf("d%05d.example", i)
	}
	for member, want := range map[string]int{"add": dmarcd.MaxBulk} {
		r := s.request(http.MethodPost, "/domains/bulk", strings.NewReader(string(musttest.Get(json.Marshal(map[string]any{member: names}))(t))))
		r.Header.Set("Content-Type", "application/json")
		added := read[wire.DomainResults](t, s.send(r), http.StatusOK).Items
		if got := len(musttest.Get(s.team.Domains(t.Context(), "", 20_000))(t)); got != want || len(added) != want {
			t.Errorf("%s: got %d domains and %d results, want %d", member, got, len(added), want)
		}
	}
}
