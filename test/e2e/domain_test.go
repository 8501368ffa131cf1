package e2e_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var timestampPattern = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\+00:00$`)

// domain is a Domain record as a client sees it.
type domain struct {
	Domain    string  `json:"domain"`
	Active    bool    `json:"active"`
	Record    string  `json:"dmarc_record"`
	Policy    string  `json:"dmarc_policy"`
	Purpose   *string `json:"domain_usage_purpose"`
	CreatedAt string  `json:"created_at"`
	UpdatedAt string  `json:"updated_at"`
}

// findings returns the fields that a check sets.
func (d domain) findings() findings {
	return findings{active: d.Active, record: d.Record, policy: d.Policy}
}

type findings struct {
	active         bool
	record, policy string
}

func (f findings) String() string {
	return fmt.Sprintf("active %t, record %q, policy %q", f.active, f.record, f.policy)
}

// readDomain parses a Domain object, which must have exactly its seven fields.
func readDomain(t testing.TB, body []byte) domain {
	t.Helper()
	var members map[string]any
	if err := json.Unmarshal(body, &members); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	want := []string{"active", "created_at", "dmarc_policy", "dmarc_record", "domain", "domain_usage_purpose", "updated_at"}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(members))); diff != "" {
		t.Errorf("fields of a domain (-want +got):\n%s", diff)
	}
	var d domain
	if err := json.Unmarshal(body, &d); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	for _, text := range []string{d.CreatedAt, d.UpdatedAt} {
		if !timestampPattern.MatchString(text) {
			t.Errorf("got the time %q want one such as 2026-11-15T09:30:00+00:00", text)
		}
		if at, err := time.Parse(time.RFC3339, text); err != nil || time.Since(at).Abs() > time.Hour {
			t.Errorf("got the time %q want one of the last minutes", text)
		}
	}
	if d.UpdatedAt < d.CreatedAt {
		t.Errorf("updated at %s, before it was created at %s", d.UpdatedAt, d.CreatedAt)
	}
	return d
}

// readDomains parses an array of Domain objects.
func readDomains(t testing.TB, body []byte) []domain {
	t.Helper()
	var items []json.RawMessage
	if err := json.Unmarshal(body, &items); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	domains := []domain{}
	for _, item := range items {
		domains = append(domains, readDomain(t, item))
	}
	return domains
}

// names returns the names of domains, in order.
func names(domains []domain) []string {
	list := []string{}
	for _, d := range domains {
		list = append(list, d.Domain)
	}
	return list
}

// get requests a path with the token of the team default.
func (s *server) get(path string) answer {
	s.in.t.Helper()
	return s.send(request{method: http.MethodGet, path: path, token: s.in.token})
}

func adding(token, name string) request {
	body, _ := json.Marshal(map[string]string{"domain": name}) // never fails for strings
	return request{method: http.MethodPost, path: "/domains", token: token, body: string(body), header: jsonType()}
}

// add adds a new domain.
func (s *server) add(name string) domain {
	s.in.t.Helper()
	a := s.send(adding(s.in.token, name))
	if a.status != http.StatusCreated {
		s.in.t.Fatalf("add %s: got status %d want 201: %s", name, a.status, a.body)
	}
	return readDomain(s.in.t, a.body)
}

// read reads an existing domain.
func (s *server) read(name string) domain {
	s.in.t.Helper()
	a := s.get("/domains/" + url.PathEscape(name))
	if a.status != http.StatusOK {
		s.in.t.Fatalf("read %s: got status %d want 200: %s", name, a.status, a.body)
	}
	return readDomain(s.in.t, a.body)
}

func verifying(token, name string) request {
	return request{method: http.MethodPost, path: "/domains/" + url.PathEscape(name) + "/verify", token: token}
}

// verify verifies an existing domain, and checks that the result is "conclusive" or
// "inconclusive".
func (s *server) verify(name, check string) domain {
	s.in.t.Helper()
	a := s.send(verifying(s.in.token, name))
	if a.status != http.StatusOK {
		s.in.t.Fatalf("verify %s: got status %d want 200: %s", name, a.status, a.body)
	}
	if got := a.header.Get("Dmarcd-Check"); got != check {
		s.in.t.Errorf("verify %s: Dmarcd-Check: got %q want %q", name, got, check)
	}
	return readDomain(s.in.t, a.body)
}

// remove deletes an existing domain.
func (s *server) remove(name string) {
	s.in.t.Helper()
	a := s.send(request{method: http.MethodDelete, path: "/domains/" + url.PathEscape(name), token: s.in.token})
	if a.status != http.StatusNoContent {
		s.in.t.Fatalf("delete %s: got status %d want 204: %s", name, a.status, a.body)
	}
}

// list returns the names of all domains of the team default.
func (s *server) list() []string {
	s.in.t.Helper()
	a := s.get("/domains")
	a.wantStatus(s.in.t, http.StatusOK)
	return names(readDomains(s.in.t, a.body))
}

// endpoint is one of the seven endpoints.
type endpoint struct {
	method, path string
	writes       bool
}

// endpoints returns the seven endpoints for an escaped domain name.
func endpoints(name string) []endpoint {
	return []endpoint{
		{http.MethodPost, "/domains", true},
		{http.MethodGet, "/domains", false},
		{http.MethodGet, "/domains/" + name, false},
		{http.MethodDelete, "/domains/" + name, true},
		{http.MethodPost, "/domains/" + name + "/verify", true},
		{http.MethodGet, "/reports/" + name, false},
		{http.MethodGet, "/reports", false},
	}
}

// request returns the request with a token, and with a body if it needs one.
func (e endpoint) request(token string) request {
	r := request{method: e.method, path: e.path, token: token}
	if e.method == http.MethodPost && !strings.HasSuffix(e.path, "/verify") {
		r.body, r.header = `{"domain":"new.example"}`, jsonType()
	}
	return r
}

func (e endpoint) String() string { return e.method + " " + e.path }
