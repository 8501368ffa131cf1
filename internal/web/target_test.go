package web_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/internal/publish"
)

// nameServer takes every change, except for servers whose name says that it refuses the key.
type nameServer struct{}

func (nameServer) Try(_ context.Context, t publish.Target, _ string) error {
	if strings.HasPrefix(t.Server, "refuses.") {
		return &publish.Error{Stage: publish.StageKey, Message: "The server refuses the signature."}
	}
	return nil
}

func (nameServer) Publish(context.Context, publish.Target, publish.Change) error { return nil }

func (nameServer) Published(context.Context, publish.Target, publish.Change) (bool, error) {
	return true, nil
}

func TestTargetPage(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	const path = "/app/domains/example.com/target"
	form := url.Values{"kind": {"powerdns"}, "server": {"https://dns.example.com:8081/"}, "key": {"sesame"}}
	if w := s.post(editor, path, form); w.Code != http.StatusSeeOther {
		t.Fatalf("got %d %s", w.Code, w.Body)
	}
	unusable := url.Values{"kind": {"rfc2136"}, "server": {"refuses.example"}, "key": {"key:secret"}}
	if w := s.post(editor, path, unusable); w.Code != http.StatusUnprocessableEntity || !strings.Contains(w.Body.String(), `id="error-key"`) || strings.Contains(w.Body.String(), "key:secret") {
		t.Errorf("a refused key: got %d %s", w.Code, w.Body)
	}
	body := s.body(t, editor, path)
	if !strings.Contains(body, "<code>https://dns.example.com:8081</code>") || strings.Contains(body, "sesame") || !strings.Contains(body, "Replace it") {
		t.Errorf("got %s, want the server without its key", body)
	}
	if body := s.body(t, viewer, path); strings.Contains(body, `name="key"`) || strings.Contains(body, "target/remove") {
		t.Errorf("got %s, want no form for a viewer", body)
	}
	records := "/app/domains/example.com/records/tls_rpt"
	if w := s.post(editor, records, url.Values{"base": {"0"}, "record": {"v=TLSRPTv1; rua=mailto:a@b.example"}, "reviewed": {"yes"}}); w.Code != http.StatusSeeOther {
		t.Fatalf("got %d %s", w.Code, w.Body)
	}
	if body := s.body(t, editor, records); strings.Contains(body, "<code>CNAME</code>") || !strings.Contains(body, "The record stays at the DNS server") {
		t.Errorf("got %s, want no CNAME record", body)
	}
	if w := s.post(editor, path+"/remove", nil); w.Code != http.StatusSeeOther {
		t.Fatalf("got %d %s", w.Code, w.Body)
	}
	if body := s.body(t, editor, path); !strings.Contains(body, "Add a server") {
		t.Errorf("got %s, want none", body)
	}
}
