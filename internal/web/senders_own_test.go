package web_test

import (
	"html"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/service"
)

// TestOwnSenders adds senders by the form: one with a taken key gets another, and a part of an
// autonomous system becomes a separate sender.
func TestOwnSenders(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	team := s.service.Team(s.team, service.CommandLine())
	for _, form := range []url.Values{
		{"name": {"CRM"}, "networks": {"192.0.2.0/24, 2001:db8::/32"}, "class": {"yours"}},
		{"key": {"AS64496"}, "name": {"Data centre"}},
		{"key": {"AS64496"}, "name": {"Rack 7"}, "networks": {"192.0.2.7"}},
		{"key": {"crm-2"}, "name": {"CRM two"}, "hosts": {"a.example"}},
	} {
		if w := s.post(editor, "/app/senders/own", form); w.Code != http.StatusSeeOther {
			t.Errorf("%v: got %d want it done: %s", form, w.Code, w.Body)
		}
	}
	all := musttest.Get(team.TeamSenders(t.Context()))(t)
	var got []string
	for _, sender := range all {
		got = append(got, sender.Key)
	}
	if want := []string{"AS64496", "crm", "crm-2", "rack-7"}; !slices.Equal(got, want) || all[2].Name != "CRM two" {
		t.Errorf("got %q, %+v want %q", got, all, want)
	}
	w := s.post(editor, "/app/senders/own", url.Values{"name": {"Shop"}, "networks": {"10.0.0.0/1"}})
	if body := w.Body.String(); w.Code != http.StatusUnprocessableEntity || !strings.Contains(body, "is not a network such as") || !strings.Contains(body, `value="Shop"`) {
		t.Errorf("a wide network: got %d %s, want the form with the error", w.Code, body)
	}
	for path, want := range map[string]string{
		"/app/senders/address/192.0.2.17": `value="192.0.2.17"`,
		"/app/senders/own?key=rack-7":     `value="Rack 7"`,
	} {
		if body := s.body(t, editor, path); !strings.Contains(body, want) {
			t.Errorf("%s: got no form with %s", path, want)
		}
		if body := s.body(t, viewer, path); strings.Contains(body, `action="/app/senders/own"`) {
			t.Errorf("%s: a viewer sees the form", path)
		}
	}
}

// TestTeamSendersHaveClasses opens a sender from the senders of all domains.
func TestTeamSendersHaveClasses(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	list := s.body(t, editor, "/app/senders")
	for _, want := range []string{`class="badge good">Yours</span>`, `name="sender" value="-:yours"`, `Automatic: yours</option>`} {
		if !strings.Contains(list, want) {
			t.Errorf("got a list of senders without %s, want it", want)
		}
	}
	_, link, _ := strings.Cut(list, `<a href="/app/senders/sender/`)
	link, _, _ = strings.Cut(link, `"`)
	if page := s.body(t, viewer, "/app/senders/sender/"+html.UnescapeString(link)); !strings.Contains(page, "pass DMARC") || !strings.Contains(page, `<span class="badge `) {
		t.Error("got a sender without class and evidence, want them")
	}
}
