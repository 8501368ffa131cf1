package web_test

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

// TestSendersByClass shows senders by class, for a domain and for the team, and says once what is true
// of all that spoof.
func TestSendersByClass(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.plant(t, "planted.example", "none", yourMail, asked, spoofMail, planted{"203.0.113.77", 30, "", false, "none"})
	for _, path := range []string{"/app/domains/planted.example/senders", "/app/senders?domain=planted.example"} {
		body := html.UnescapeString(s.body(t, viewer, path))
		if n := strings.Count(body, insight.NeverYours) + strings.Count(body, "None of them ever authenticates"); n != 1 {
			t.Errorf("%s: got the evidence of spoofing %d times, want it once", path, n)
		}
		for _, want := range []string{`id="class-yours"`, `id="class-spoofing"`, ` pass DMARC`} {
			if !strings.Contains(body, want) {
				t.Errorf("%s: got no %q, want it", path, want)
			}
		}
		if strings.Contains(body, `name="class:`) {
			t.Errorf("%s: a viewer gets the form", path)
		}
		one := s.body(t, viewer, path+map[bool]string{true: "&", false: "?"}[strings.Contains(path, "?")]+"class=spoofing")
		if strings.Contains(one, `id="class-yours"`) || !strings.Contains(one, `id="class-spoofing" open`) {
			t.Errorf("%s: got other classes with the filter, want one", path)
		}
	}
}

// TestSetClasses sets classes where they are shown, for one sender and for many, for a domain and for
// all; what cannot be saved changes nothing and stays in the form.
func TestSetClasses(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	team := s.plant(t, "planted.example", "none", yourMail, asked, spoofMail)
	const list, ask, spoof = "/app/domains/planted.example/senders", "-:as:esp.example", "-:others"
	class := func(key string) dmarcd.Class {
		t.Helper()
		mail := musttest.Get(team.Mail(t.Context(), "planted.example", dmarcd.Days{}))(t)
		defer mail.Close()
		found := musttest.Get(mail.List(t.Context(), insight.Query{Group: insight.GroupSender, Limit: 100, Assess: true}))(t)
		for _, row := range found.Rows {
			if row.Key == key {
				return row.Assessment.Class
			}
		}
		return ""
	}
	for _, step := range []struct {
		name, path string
		form       url.Values
		want       map[string]dmarcd.Class
		open       string
	}{
		{"one", list, url.Values{"do": {"each"}, "class:" + ask: {"yours"}, "class:" + spoof: {""}}, map[string]dmarcd.Class{ask: dmarcd.ClassYours, spoof: dmarcd.ClassSpoofing}, "yours"},
		{"many", list, url.Values{"do": {"checked"}, "sender": {ask, spoof}, "class": {"forwarder"}}, map[string]dmarcd.Class{ask: dmarcd.ClassForwarder, spoof: dmarcd.ClassForwarder}, "forwarder"},
		{"automatic again", list, url.Values{"do": {"each"}, "class:" + ask: {"automatic"}, "class:" + spoof: {"automatic"}}, map[string]dmarcd.Class{ask: dmarcd.ClassUnknown, spoof: dmarcd.ClassSpoofing}, ""},
		{"for all domains", "/app/senders", url.Values{"do": {"each"}, "class:" + ask: {"spoofing"}}, map[string]dmarcd.Class{ask: dmarcd.ClassSpoofing}, "spoofing"},
	} {
		w := s.post(editor, step.path, step.form)
		location := w.Header().Get("Location")
		if w.Code != http.StatusSeeOther || !strings.HasPrefix(location, step.path+"?") || step.open != "" && !strings.Contains(location, "open="+step.open) {
			t.Fatalf("%s: got %d to %q, want the list: %s", step.name, w.Code, location, w.Body)
		}
		for key, want := range step.want {
			if got := class(key); got != want {
				t.Errorf("%s: got the class %q of %s, want %q", step.name, got, key, want)
			}
		}
		if body := s.text(t, editor, location); !strings.Contains(body, "counted under the new class") {
			t.Errorf("%s: got no word of it", step.name)
		}
	}
	if body := html.UnescapeString(s.body(t, editor, list)); !regexp.MustCompile(`name="class:` + ask + `"[^>]*><option value="automatic">Automatic</option>(<option value="\w+">\w+</option>)*<option value="" selected>Spoofing</option>`).MatchString(body) {
		t.Error("got no choice with the class that the team set, want it selected")
	}
	entries := s.audit(t)
	for _, bad := range []struct {
		name, path string
		form       url.Values
		want       []string
	}{
		{"nothing changed", list, url.Values{"do": {"each"}, "class:" + ask: {""}}, []string{"Nothing was changed"}},
		{"none checked", list, url.Values{"do": {"checked"}, "class": {"yours"}}, []string{"No sender is selected", `<option value="yours" selected>`}},
		{"no class", list, url.Values{"do": {"checked"}, "sender": {spoof}}, []string{"Choose a class.", `name="sender" value="` + spoof + `" checked`}},
		{"one of two is none", list, url.Values{"do": {"each"}, "class:" + ask: {"yours"}, "class:10.0.0.0/4": {"yours"}}, []string{"The key of a sender", `<option value="yours" selected>`}},
		{"for all domains", "/app/senders", url.Values{"do": {"checked"}, "sender": {"no key"}, "class": {"yours"}}, []string{"The key of a sender"}},
		{"a network", list + "?group=sender&row=" + spoof, url.Values{"sender": {"10.0.0.0/4"}, "class": {"forwarder"}}, []string{`value="10.0.0.0/4"`, `<option value="forwarder" selected>`, `id="error-sender"`}},
	} {
		w := s.post(editor, bad.path, bad.form)
		for _, want := range bad.want {
			if body := html.UnescapeString(w.Body.String()); w.Code != http.StatusUnprocessableEntity || !strings.Contains(body, want) {
				t.Errorf("%s: got %d without %q, want it", bad.name, w.Code, want)
			}
		}
	}
	if got := s.audit(t); got != entries {
		t.Errorf("got %d audit entries after what cannot be saved, want %d", got, entries)
	}
	if w := s.post(viewer, list, url.Values{"sender": {spoof}, "class": {"yours"}}); w.Code != http.StatusForbidden {
		t.Errorf("a viewer: got %d, want 403", w.Code)
	}
}

// TestReportNamesItsSenders links from the records of a report to their senders, and never shows a
// result that passes beside one that fails without the reason.
func TestReportNamesItsSenders(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.plant(t, "planted.example", "none", yourMail, asked, spoofMail)
	link := regexp.MustCompile(`href="(/app/reports/rep_[^"]+)"`).FindStringSubmatch(s.body(t, viewer, "/app/domains/planted.example/reports"))
	if link == nil {
		t.Fatal("got no report")
	}
	path, _, _ := strings.Cut(html.UnescapeString(link[1]), "?")
	body := html.UnescapeString(s.body(t, viewer, path))
	for _, want := range []string{
		`href="/app/senders/sender/-:yours?`, `href="/app/senders/sender/-:as:esp.example?`, `>SPF aligned</th>`, `>DKIM aligned</th>`,
		`data-title="DMARC"><span class="badge bad">fails</span></td><td data-title="SPF aligned"><span class="badge bad">fail</span></td><td data-title="DKIM aligned"><span class="badge warning">not aligned</span>`,
		"DKIM pass for esp.example, selector s1, not aligned with planted.example", "DKIM pass for planted.example, selector s1, aligned", `>not signed</span>`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("got no %q, want it", want)
		}
	}
	sender := regexp.MustCompile(`href="(/app/senders/sender/-:as:esp.example\?[^"]*)"`).FindStringSubmatch(body)
	if sender == nil || !strings.Contains(s.body(t, viewer, sender[1]), "198.51.100.7") {
		t.Error("got no page of the sender behind the link, want it")
	}
}
