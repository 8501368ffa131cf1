package api_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/publish"
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
		if first.Version != 1 || first.Name != "_dmarc.example.com" || first.Target == nil || !strings.HasSuffix(*first.Target, ".dns.example.net") || !strings.HasPrefix(first.Author, "token tok_") || first.Reason != nil {
			t.Errorf("got %+v, want the first version of a token", first)
		}
		second := read[wire.ManagedRecord](t, s.sendJSON(http.MethodPut, path+"/dmarc", []byte(`{"base": 1, "record": "v=DMARC1; p=reject", "reason": "ready"}`)), http.StatusOK)
		if second.Version != 2 || *second.Target != *first.Target || second.Reason == nil || *second.Reason != "ready" || !slices.Equal(second.Difference, []string{"- p=none", "+ p=reject"}) {
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
		listed := read[page[wire.RecordProposal]](t, s.get("/domains/example.com/proposals"), http.StatusOK)
		if proposed.Base != 2 || proposed.Record != "v=DMARC1; p=none" || !slices.Equal(proposed.Difference, []string{"- p=reject", "+ p=none"}) ||
			len(listed.Items) != 1 || !cmp.Equal(listed.Items[0], proposed) {
			t.Errorf("got %+v and the list %+v, want a proposal", proposed, listed)
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

// knownKey is a DNS server that takes every change with the key "secret".
type knownKey struct{}

func (knownKey) Try(_ context.Context, t publish.Target, _ string) error {
	if t.Key != "secret" {
		return &publish.Error{Stage: publish.StageKey, Message: "Another key."}
	}
	return nil
}

func (knownKey) Publish(context.Context, publish.Target, publish.Change) error { return nil }

func (knownKey) Published(context.Context, publish.Target, publish.Change) (bool, error) {
	return true, nil
}

// TestRecordTarget publishes a record at the server of its domain, and shows its key nowhere.
func TestRecordTarget(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := newPublisher(t, db.Open(t, store.Options{}))
		s.add("example.com")
		const path = "/domains/example.com/target"
		for _, bad := range []struct {
			name, path, body string
			status           int
			want             string
		}{
			{"no key", path, `{"kind": "rfc2136", "server": "ns1.example.com"}`, http.StatusUnprocessableEntity, `"field":"key"`},
			{"another kind", path, `{"kind": "axfr", "server": "ns1.example.com", "key": "secret"}`, http.StatusUnprocessableEntity, `"field":"kind"`},
			{"no server", path, `{"kind": "rfc2136", "server": "a b", "key": "secret"}`, http.StatusUnprocessableEntity, `"field":"server"`},
			{"another zone", path, `{"kind": "rfc2136", "server": "ns1.example.com", "key": "secret", "zone": "other.example"}`, http.StatusUnprocessableEntity, `"field":"zone"`},
			{"another key", path, `{"kind": "rfc2136", "server": "ns1.example.com", "key": "guessed"}`, http.StatusUnprocessableEntity, `"field":"key"`},
			{"another member", path, `{"kind": "rfc2136", "server": "ns1.example.com", "key": "secret", "port": 53}`, http.StatusUnprocessableEntity, "unknown_member"},
			{"another domain", "/domains/other.example/target", `{"kind": "rfc2136", "server": "ns1.example.com", "key": "secret"}`, http.StatusNotFound, "domain_not_found"},
		} {
			got := s.sendJSON(http.MethodPut, bad.path, []byte(bad.body))
			if got.status != bad.status || !strings.Contains(string(got.body), bad.want) || strings.Contains(string(got.body), "guessed") {
				t.Errorf("%s: got %d %s, want %d and %s", bad.name, got.status, got.body, bad.status, bad.want)
			}
		}
		set := s.sendJSON(http.MethodPut, "/domains/EXAMPLE.com./target", []byte(`{"kind": "rfc2136", "server": "ns1.example.com", "zone": null, "key": "secret"}`))
		shown := s.get(path)
		for _, got := range []answer{set, shown} {
			target := read[wire.RecordTarget](t, got, http.StatusOK)
			target.CreatedAt = ""
			if want := (wire.RecordTarget{Domain: "example.com", Kind: "rfc2136", Server: "ns1.example.com:53", Zone: "example.com"}); target != want || strings.Contains(string(got.body), "secret") {
				t.Errorf("got %s, want %+v without the key", got.body, want)
			}
		}
		published := s.sendJSON(http.MethodPut, "/domains/example.com/records/dmarc", []byte(`{"base": 0, "record": "v=DMARC1; p=none"}`))
		if record := read[wire.ManagedRecord](t, published, http.StatusOK); record.Target != nil || record.State != "managed" || record.Version != 1 {
			t.Errorf("got %s, want it published without a name in the zone", published.body)
		}
		if got := s.send(s.request(http.MethodDelete, path, nil)); got.status != http.StatusNoContent {
			t.Errorf("got %d %s, want 204", got.status, got.body)
		}
		for _, method := range []string{http.MethodGet, http.MethodDelete} {
			if got := s.send(s.request(method, path, nil)); got.status != http.StatusNotFound || got.header.Get("Dmarcd-Error") != "target_not_found" {
				t.Errorf("%s without one: got %d %s, want 404", method, got.status, got.body)
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
			s.sendJSON(http.MethodPut, "/domains/example.com/target", []byte(`{"kind": "rfc2136", "server": "ns1.example.com", "key": "secret"}`)),
			s.send(s.request(http.MethodDelete, "/domains/example.com/target", nil)),
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
