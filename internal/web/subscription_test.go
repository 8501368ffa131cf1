package web_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/notify/mail"
)

// TestAddressIsConfirmed adds an email webhook. The recipient confirms the address and
// later unsubscribes with one click.
func TestAddressIsConfirmed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	state := func(want string) dmarcd.Webhook {
		t.Helper()
		webhooks := musttest.Get(s.store.Team(s.team).Webhooks(t.Context()))(t)
		last := webhooks[len(webhooks)-1]
		if last.URL != "mailto:ops@example.net" || !strings.HasPrefix(last.DisabledReason, want) || last.Enabled() != (want == "") {
			t.Fatalf("got %+v, want it disabled because %q", last, want)
		}
		return last
	}
	add := func() int {
		return s.post(owner, "/app/settings/notifications/new/email", url.Values{"address": {"Ops@example.net"}, "kinds": {"policy.weakened"}}).Code
	}
	if code := add(); code != http.StatusSeeOther {
		t.Fatalf("got %d", code)
	}
	added := state("The recipient has not confirmed")
	link := s.mail.links["ops@example.net"]
	if link == "" {
		t.Fatal("no confirmation was sent")
	}
	confirm := strings.TrimPrefix(link, "https://dmarc.example")
	if body := s.body(t, "", confirm); !strings.Contains(body, "ops@example.net") || !strings.Contains(body, "Confirm</button>") {
		t.Errorf("got %s", body)
	}
	state("The recipient has not confirmed") // opening the link changes nothing
	if w := s.post(owner, "/app/settings/notifications/"+added.ID.String()+"/test", nil); w.Code != http.StatusUnprocessableEntity {
		t.Errorf("a test before the confirmation: got %d", w.Code)
	}
	if w := s.post(owner, "/app/settings/notifications/"+added.ID.String(), url.Values{"enabled": {"true"}}); w.Code != http.StatusSeeOther {
		t.Errorf("enabled by the owner: got %d", w.Code)
	}
	state("The recipient has not confirmed")
	before := s.audit(t)
	if w := s.post("", confirm, nil); w.Code != http.StatusOK {
		t.Errorf("got %d: %s", w.Code, w.Body)
	}
	state("")

	unsubscribe := musttest.Get(mail.PageLink("https://dmarc.example/api", "unsubscribe", added.ID, added.Secrets[0]))(t)
	unsubscribe = strings.TrimPrefix(unsubscribe, "https://dmarc.example")
	if body := s.body(t, "", unsubscribe); !strings.Contains(body, "Unsubscribe</button>") {
		t.Errorf("got %s", body)
	}
	state("")
	// Mail clients send no browser headers (RFC 8058).
	r := postForm(unsubscribe, url.Values{"List-Unsubscribe": {"One-Click"}})
	r.Header.Del("Sec-Fetch-Site")
	if w := s.send("", r); w.Code != http.StatusOK {
		t.Errorf("got %d: %s", w.Code, w.Body)
	}
	state("The recipient unsubscribed.")
	if w := s.post("", confirm, nil); w.Code != http.StatusOK {
		t.Errorf("an old link to confirm: got %d", w.Code)
	}
	state("The recipient unsubscribed.")
	if made := s.audit(t) - before; made != 2 { // the old link changes nothing
		t.Errorf("got %d audit entries, want 2", made)
	}
	for _, path := range []string{"/app/unsubscribe/whk_1", "/app/unsubscribe/" + added.ID.String() + ".x", strings.Replace(confirm, "confirm", "unsubscribe", 1), "/app/confirm/x"} {
		if w := s.post("", path, nil); w.Code != http.StatusNotFound {
			t.Errorf("%s: got %d, want 404", path, w.Code)
		}
	}
}

// TestReportForManagersIsConfirmed adds a recipient of the report for managers. The pages of the links
// in the mail name the report, since no events are sent.
func TestReportForManagersIsConfirmed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	if w := s.post(owner, "/app/settings/notifications/new/managers", url.Values{"address": {"boss@example.net"}}); w.Code != http.StatusSeeOther {
		t.Fatalf("got %d: %s", w.Code, w.Body)
	}
	webhooks := musttest.Get(s.store.Team(s.team).Webhooks(t.Context()))(t)
	added := webhooks[len(webhooks)-1]
	unsubscribe := musttest.Get(mail.PageLink("https://dmarc.example/api", "unsubscribe", added.ID, added.Secrets[0]))(t)
	for _, test := range []struct {
		link string
		post bool
		want string
	}{
		{s.mail.links["boss@example.net"], false, "Send the report for managers of the team"},
		{s.mail.links["boss@example.net"], true, "The report for managers of the team"},
		{unsubscribe, false, "Stop sending the report for managers of the team"},
		{unsubscribe, true, "no longer sends the report for managers to it"},
	} {
		path := strings.TrimPrefix(test.link, "https://dmarc.example")
		body := ""
		if test.post {
			body = s.post("", path, nil).Body.String()
		} else {
			body = s.body(t, "", path)
		}
		if !strings.Contains(body, test.want) || strings.Contains(strings.ToLower(body), "events") {
			t.Errorf("%s: got %s want %q and no events", path, body, test.want)
		}
	}
	path := "/app/settings/notifications/" + added.ID.String()
	musttest.Get(s.store.Team(s.team).UpdateWebhook(t.Context(), added.ID, func(w *dmarcd.Webhook) error {
		w.DisabledAt = time.Time{}
		return nil
	}))(t)
	w := s.post(owner, path+"/selection", url.Values{"kinds": {string(dmarcd.DigestManagers), string(dmarcd.PolicyWeakened)}})
	if to := w.Header().Get("Location"); w.Code != http.StatusSeeOther || !strings.HasSuffix(to, "done=channel-asked") {
		t.Errorf("more kinds: got %d to %s, want the address confirmed again", w.Code, to)
	}
}

// TestOwnAddressNeedsNoConfirmation checks that an address is used immediately only if it is the
// user's own, that the page says so, and that an invitation is shown to its recipient alone.
func TestOwnAddressNeedsNoConfirmation(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, test := range []struct {
		address, done string
		asked         bool
	}{{owner, "channel-added", false}, {viewer, "channel-asked", true}} {
		w := s.post(owner, "/app/settings/notifications/new/email", url.Values{"address": {test.address}, "kinds": {"policy.weakened"}})
		if to := w.Header().Get("Location"); w.Code != http.StatusSeeOther || !strings.HasSuffix(to, "done="+test.done) {
			t.Errorf("%s: got %d to %s, want %s", test.address, w.Code, to, test.done)
		}
		webhooks := musttest.Get(s.store.Team(s.team).Webhooks(t.Context()))(t)
		added := webhooks[slices.IndexFunc(webhooks, func(w dmarcd.Webhook) bool { return w.URL == "mailto:"+test.address })]
		if added.Enabled() == test.asked || (s.mail.links[test.address] != "") != test.asked {
			t.Errorf("%s: got %+v and the link %q", test.address, added, s.mail.links[test.address])
		}
		enabled := s.post(owner, "/app/settings/notifications/"+added.ID.String(), url.Values{"enabled": {"true"}})
		if to := enabled.Header().Get("Location"); test.asked && !strings.HasSuffix(to, "done="+test.done) {
			t.Errorf("%s is enabled: got %d to %s, want %s", test.address, enabled.Code, to, test.done)
		}
	}
	w := s.post(owner, "/app/settings/members", url.Values{"email": {"fresh@example.com"}, "role": {"viewer"}})
	if link := s.mail.links["fresh@example.com"]; link == "" || strings.Contains(w.Body.String(), link) || !strings.Contains(w.Body.String(), "Invitation sent") {
		t.Errorf("got the link %q and %s", link, w.Body)
	}
}
