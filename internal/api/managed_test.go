package api_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// TestManagedRecords publishes versions of a record, lists them and stops it.
func TestManagedRecords(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := newPublisher(t, db.Open(t, store.Options{}))
		s.add("example.com")
		const path = "/domains/example.com/records"
		if got := s.sendJSON(http.MethodPut, path+"/dmarc", []byte(`{"base": 0, "record": "v=DMARC1; p=none"}`)); got.status != http.StatusUnprocessableEntity || !strings.Contains(string(got.body), "DMARCD_ZONE") {
			t.Errorf("without a zone: got %d %s, want 422 and the setting", got.status, got.body)
		}
		musttest.Get(s.store.OpenZone(t.Context(), "dns.example.net", ""))(t)
		if got := read[page[wire.ManagedRecord]](t, s.get(path), http.StatusOK); len(got.Items) != 0 {
			t.Errorf("got %+v, want no record", got)
		}
		first := read[wire.ManagedRecord](t, s.sendJSON(http.MethodPut, path+"/dmarc", []byte(`{"base": 0, "record": "v=DMARC1; p=none"}`)), http.StatusOK)
		if first.Version != 1 || first.Name != "_dmarc.example.com" || !strings.HasSuffix(first.Target, ".dns.example.net") || !strings.HasPrefix(first.Author, "token tok_") || first.Reason != nil {
			t.Errorf("got %+v, want the first version of a token", first)
		}
		second := read[wire.ManagedRecord](t, s.sendJSON(http.MethodPut, path+"/dmarc", []byte(`{"base": 1, "record": "v=DMARC1; p=reject", "reason": "ready"}`)), http.StatusOK)
		if second.Version != 2 || second.Target != first.Target || second.Reason == nil || *second.Reason != "ready" || !slices.Equal(second.Difference, []string{"- p=none", "+ p=reject"}) {
			t.Errorf("got %+v, want a second version at the same name", second)
		}
		for _, bad := range []struct {
			name, path, body string
			status           int
			want             string
		}{
			{"an old base", path + "/dmarc", `{"base": 1, "record": "v=DMARC1; p=none"}`, http.StatusConflict, "version_conflict"},
			{"no base", path + "/dmarc", `{"record": "v=DMARC1; p=none"}`, http.StatusUnprocessableEntity, `"field":"base"`},
			{"a base below 0", path + "/dmarc", `{"base": -1, "record": "v=DMARC1; p=none"}`, http.StatusUnprocessableEntity, `"field":"base"`},
			{"no record of the kind", path + "/dmarc", `{"base": 2, "record": "v=TLSRPTv1; rua=mailto:a@example.com"}`, http.StatusUnprocessableEntity, `"field":"record"`},
			{"a number", path + "/dmarc", `{"base": 2, "record": 7}`, http.StatusUnprocessableEntity, `"field":"record"`},
			{"two lines", path + "/dmarc", `{"base": 2, "record": "v=DMARC1; p=none", "reason": "a\nb"}`, http.StatusUnprocessableEntity, `"field":"reason"`},
			{"another member", path + "/dmarc", `{"base": 2, "record": "v=DMARC1; p=none", "ttl": 60}`, http.StatusUnprocessableEntity, "unknown_member"},
			{"an unknown kind", path + "/caa", `{"base": 0, "record": "v=DMARC1; p=none"}`, http.StatusNotFound, "record_not_found"},
			{"another domain", "/domains/other.example/records/dmarc", `{"base": 0, "record": "v=DMARC1; p=none"}`, http.StatusNotFound, "record_not_found"},
		} {
			if got := s.sendJSON(http.MethodPut, bad.path, []byte(bad.body)); got.status != bad.status || !strings.Contains(string(got.body), bad.want) {
				t.Errorf("%s: got %d %s, want %d and %s", bad.name, got.status, got.body, bad.status, bad.want)
			}
		}
		versions := read[page[wire.RecordVersion]](t, s.get(path+"/dmarc/versions?limit=1"), http.StatusOK)
		if len(versions.Items) != 1 || versions.Items[0].Version != 2 || versions.Next == nil {
			t.Fatalf("got %+v, want the last version and a cursor", versions)
		}
		versions = read[page[wire.RecordVersion]](t, s.get(path+"/dmarc/versions?limit=1&after="+*versions.Next), http.StatusOK)
		if len(versions.Items) != 1 || versions.Items[0].Version != 1 || versions.Next != nil {
			t.Errorf("got %+v, want the first version", versions)
		}
		musttest.Do(t, s.team.RequireApproval(t.Context(), true))
		proposed := read[wire.RecordProposal](t, s.sendJSON(http.MethodPut, path+"/dmarc", []byte(`{"base": 2, "record": "v=DMARC1; p=none"}`)), http.StatusAccepted)
		if proposed.Base != 2 || proposed.Record != "v=DMARC1; p=none" {
			t.Errorf("got %+v, want a proposal", proposed)
		}
		if versions := musttest.Get(s.team.RecordVersions(t.Context(), "example.com"))(t); len(versions) != 2 {
			t.Errorf("got %+v, want nothing published", versions)
		}
		if got := s.send(s.request(http.MethodDelete, path+"/dmarc", nil)); got.status != http.StatusNoContent {
			t.Errorf("got %d %s, want 204", got.status, got.body)
		}
		for method, path := range map[string]string{http.MethodDelete: path + "/dmarc", http.MethodGet: path + "/dmarc/versions"} {
			if got := s.send(s.request(method, path, nil)); got.status != http.StatusNotFound || got.header.Get("Dmarcd-Error") != "record_not_found" {
				t.Errorf("%s after the stop: got %d %s, want 404", method, got.status, got.body)
			}
		}
	})
}

// TestOnlyPublishersPublish tries tokens of all other scopes.
func TestOnlyPublishersPublish(t *testing.T) {
	t.Parallel()
	for _, scope := range []dmarcd.Scope{dmarcd.ScopeRead, dmarcd.ScopeWrite, dmarcd.ScopeAdmin} {
		s := newService(t, storetest.SQLite(t).Open(t, store.Options{}), withScope(scope))
		s.add("example.com")
		musttest.Get(s.store.OpenZone(t.Context(), "dns.example.net", ""))(t)
		for _, got := range []answer{
			s.sendJSON(http.MethodPut, "/domains/example.com/records/dmarc", []byte(`{"base": 0, "record": "v=DMARC1; p=none"}`)),
			s.send(s.request(http.MethodDelete, "/domains/example.com/records/dmarc", nil)),
		} {
			if got.status != http.StatusForbidden || !strings.Contains(got.header.Get("WWW-Authenticate"), `scope="publish"`) {
				t.Errorf("%s: got %d with %v, want 403 and the scope", scope, got.status, got.header)
			}
		}
	}
}

func newPublisher(t *testing.T, s *store.Store) *service {
	t.Helper()
	return newService(t, s, withScope(dmarcd.ScopePublish))
}

// withScope gives the token of the service a scope.
func withScope(scope dmarcd.Scope) func(*options) {
	return func(o *options) {
		if one, ok := o.Authenticator.(onlyTeam); ok {
			one.token.Scope = scope
			o.Authenticator = one
		}
	}
}
