package e2e_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
)

// exampleRecord is the DMARC record of example.com in exampleZone.
const exampleRecord = "v=DMARC1; p=reject; rua=mailto:dmarc@example.com;"

const exampleZone = `
	example.com. A 192.0.2.1
	_dmarc.example.com. TXT "v=DMARC1; p=reject; rua=mailto:dmarc@example.com;"
`

const zeros = `{"total":0,"compliant":0,"non_compliant":0}`

// wantBody compares the body, ignoring surrounding white space.
func (a answer) wantBody(t *testing.T, want string) {
	t.Helper()
	if got := strings.TrimSpace(a.text()); got != want {
		t.Errorf("got the body %s want %s", got, want)
	}
}

func sevenEndpointsEndToEnd(t *testing.T, s *server) {
	in := s.in

	empty := s.get("/domains")
	empty.wantStatus(t, http.StatusOK)
	empty.wantBody(t, `[]`)

	created := s.send(adding(in.token, "example.com"))
	created.wantStatus(t, http.StatusCreated)
	if got, want := created.header.Get("Location"), s.baseURL+"/domains/example.com"; got != want {
		t.Errorf("Location: got %q want %q", got, want)
	}
	d := readDomain(t, created.body)
	if got, want := d.findings(), (findings{true, exampleRecord, "reject"}); got != want || d.Domain != "example.com" || d.Purpose != nil {
		t.Errorf("got %v want %v for example.com without a purpose: %s", got, want, created.body)
	}

	again := s.send(adding(in.token, "example.com"))
	again.wantStatus(t, http.StatusConflict)

	one := s.get("/domains/example.com")
	one.wantStatus(t, http.StatusOK)
	if !bytes.Equal(one.body, created.body) {
		t.Errorf("got %s want what the creation answered, %s", one.body, created.body)
	}
	all := s.get("/domains")
	all.wantBody(t, "["+strings.TrimSpace(one.text())+"]")

	verified := s.send(verifying(in.token, "example.com"))
	verified.wantStatus(t, http.StatusOK)
	if !bytes.Equal(verified.body, created.body) {
		t.Errorf("got %s want what the creation answered, %s", verified.body, created.body)
	}
	if got := verified.header.Get("Dmarcd-Check"); got != "conclusive" {
		t.Errorf("Dmarcd-Check: got %q want conclusive", got)
	}

	for _, path := range []string{"/reports", "/reports/example.com"} {
		summary := s.get(path)
		summary.wantStatus(t, http.StatusOK)
		summary.wantBody(t, zeros)
	}

	deletion := request{method: http.MethodDelete, path: "/domains/example.com", token: in.token}
	deleted := s.send(deletion)
	deleted.wantStatus(t, http.StatusNoContent)
	if len(deleted.body) != 0 {
		t.Errorf("got the body %q want none", deleted.body)
	}
	s.send(deletion).wantStatus(t, http.StatusNotFound)
	s.get("/domains/example.com").wantStatus(t, http.StatusNotFound)
	s.get("/reports/example.com").wantStatus(t, http.StatusNotFound)
	s.send(verifying(in.token, "example.com")).wantStatus(t, http.StatusNotFound)
	s.get("/domains").wantBody(t, `[]`)

	s.send(adding(in.token, "example.com")).wantStatus(t, http.StatusCreated)
}

func verifyDoesNotReadTheBody(t *testing.T, s *server) {
	in := s.in
	s.add("example.com")
	rows := []struct {
		name   string
		body   string
		header map[string]string
	}{
		{name: "no JSON", body: "{", header: jsonType()},
		{name: "another media type", body: "hello", header: map[string]string{"Content-Type": "text/plain"}},
		{name: "a content encoding", body: "hello", header: map[string]string{"Content-Encoding": "gzip"}},
		{name: "over 64 KiB", body: strings.Repeat(" ", 65<<10), header: jsonType()},
	}
	for _, row := range rows {
		r := verifying(in.token, "example.com")
		r.body, r.header = row.body, row.header
		if got := s.send(r); got.status != http.StatusOK {
			t.Errorf("%s: got status %d want 200: %s", row.name, got.status, got.body)
		}
	}
}

func purposeIsShown(t *testing.T, s *server) {
	in := s.in
	s.add("example.com")
	for _, word := range []string{"business", "personal", "education", "nonprofit"} {
		in.do("domain", "purpose", "--team", "default", "example.com", word)
		if got := s.read("example.com").Purpose; got == nil || *got != word {
			t.Errorf("%s: got %s want it", word, s.get("/domains/example.com").body)
		}
	}
	in.do("domain", "purpose", "--team", "default", "example.com", "none")
	if got := s.read("example.com").Purpose; got != nil {
		t.Errorf("none: got %q want null", *got)
	}
}

func documentationNeedsNoToken(t *testing.T, s *server) {
	document := s.send(request{method: http.MethodGet, path: "/openapi.json"})
	document.wantStatus(t, http.StatusOK)
	if !strings.Contains(document.text(), s.baseURL) {
		t.Errorf("the document does not name its server %s", s.baseURL)
	}
	page := s.send(request{method: http.MethodGet, path: "/docs"})
	page.wantStatus(t, http.StatusOK)
	if got := page.header.Get("Content-Type"); !strings.HasPrefix(got, "text/html") {
		t.Errorf("Content-Type of /docs: got %q want text/html", got)
	}
	for path, tag := range map[string]string{"/openapi.json": document.header.Get("ETag"), "/docs": page.header.Get("ETag")} {
		s.send(request{method: http.MethodGet, path: path, header: map[string]string{"If-None-Match": tag}}).wantStatus(t, http.StatusNotModified)
	}
}

func healthOutsideThePrefix(t *testing.T, s *server) {
	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		s.outside(path).wantStatus(t, http.StatusOK)
	}
	if got := s.outside("/metrics").text(); !strings.Contains(got, "# TYPE ") {
		t.Errorf("/metrics: got %q want the Prometheus text form", got)
	}
}
