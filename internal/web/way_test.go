package web_test

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dns/dnstest"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/service"
)

// planted is mail of one address on every day.
type planted struct {
	address string
	count   int
	// signer passes DKIM; "" for none.
	signer string
	// forwarded is what receivers say about it.
	forwarded   bool
	disposition string
}

// plant adds a domain with a policy and 20 days of mail.
func (s *site) plant(t *testing.T, domain, policy string, mail ...planted) *service.Team {
	t.Helper()
	team := s.service.Team(s.team, service.CommandLine())
	added := musttest.Get(team.AddDomain(t.Context(), domain))(t)
	s.zone.zone = dnstest.New(fmt.Sprintf(`_dmarc.%[1]s TXT "v=DMARC1; p=%[2]s; rua=mailto:%[3]s"
%[1]s TXT "v=spf1 ip4:192.0.2.17 -all"
%[1]s MX 10 mx.%[1]s
mx.%[1]s A 192.0.2.25`, domain, policy, added.ReportAddress("reports.example")))
	_, _, err := team.Verify(t.Context(), domain)
	musttest.Do(t, err)
	musttest.Do(t, team.Examine(t.Context(), domain))
	for ago := range 20 {
		var records []string
		for _, m := range mail {
			result, signed, reason := "fail", "", ""
			if m.signer != "" {
				signed = "<dkim><domain>" + m.signer + "</domain><selector>s1</selector><result>pass</result></dkim>"
			}
			if m.signer == domain {
				result = "pass"
			}
			if m.forwarded {
				reason = "<reason><type>forwarded</type></reason>"
			}
			records = append(records, fmt.Sprintf(`<record><row><source_ip>%s</source_ip><count>%d</count><policy_evaluated><disposition>%s</disposition><dkim>%s</dkim><spf>fail</spf>%s</policy_evaluated></row>
<identifiers><header_from>%s</header_from></identifiers><auth_results>%s<spf><domain>elsewhere.example</domain><result>none</result></spf></auth_results></record>`,
				m.address, m.count, m.disposition, result, reason, domain, signed))
		}
		report := aggregateXML("bigmail.example", fmt.Sprintf("%s-%d", domain, ago), now.AddDate(0, 0, -1-ago).Truncate(24*time.Hour), records...)
		s.upload(t, team, "r.xml", strings.ReplaceAll(report, "<domain>"+sampleDomain+"<", "<domain>"+domain+"<"))
	}
	return team
}

// text returns the text of a page, without elements.
func (s *site) text(t *testing.T, user, path string) string {
	t.Helper()
	body := s.body(t, user, path)
	_, body, _ = strings.Cut(body, "<main")
	body = regexp.MustCompile(`<[^>]*>`).ReplaceAllString(body, " ")
	return strings.Join(strings.Fields(html.UnescapeString(body)), " ")
}

var (
	asked     = planted{"198.51.100.7", 50, "esp.example", false, "none"}
	yourMail  = planted{"192.0.2.17", 100, "planted.example", false, "none"}
	spoofMail = planted{"203.0.113.9", 40, "", false, "none"}
)

// TestAnswerAQuestion shows a question with its evidence, and what follows from each answer.
func TestAnswerAQuestion(t *testing.T) {
	t.Parallel()
	const path = "/app/domains/planted.example"
	for answer, row := range map[string]struct{ done, after string }{
		"yours":     {"the sender is yours", "→ Now: Fix "},
		"not_yours": {"the sender is not yours", "→ Now: Publish p=quarantine"},
	} {
		s := newSite(t)
		team := s.plant(t, "planted.example", "none", yourMail, asked, spoofMail)
		advice := musttest.Get(team.Advice(t.Context(), "planted.example"))(t)
		next := advice.Next()
		if next == nil || next.Question == nil {
			t.Fatalf("got %+v, want a question", next)
		}
		for _, user := range []string{viewer, editor} {
			text := s.text(t, user, path)
			for _, want := range []string{"✓ Done: Publish a DMARC record", "→ Now: Does your company use esp.example?", "1,000 messages in 20 days from 1 address", "○ Later: Publish p=quarantine", "steps done"} {
				if !strings.Contains(text, want) {
					t.Errorf("%s: got no %q in %s", user, want, text)
				}
			}
			if got := strings.Contains(text, "Yes, ours No, not ours"); got != (user == editor) {
				t.Errorf("%s: got buttons: %v, want them for editors alone", user, got)
			}
		}
		action := path + "/questions/" + url.PathEscape(next.Question.Key)
		if body := s.body(t, editor, path); !strings.Contains(html.UnescapeString(body), `action="`+action+`"`) {
			t.Errorf("got no form to %s", action)
		}
		w := s.post(editor, action+"?days=90", url.Values{"answer": {answer}})
		if got, want := w.Header().Get("Location"), path+"?days=90&done=answered-"+answer; got != want {
			t.Fatalf("%s: got to %q, want %q: %s", answer, got, want, w.Body)
		}
		text := s.text(t, editor, path+"?done=answered-"+answer)
		if !strings.Contains(text, row.done) || !strings.Contains(text, row.after) {
			t.Errorf("%s: got no %q or %q in %s", answer, row.done, row.after, text)
		}
		if w := s.post(editor, action, url.Values{"answer": {answer}}); w.Code != http.StatusUnprocessableEntity {
			t.Errorf("%s again: got %d, want 422", answer, w.Code)
		}
	}
}

// TestEnforcedIsNotDone checks that every page has the same conclusion and the same options about
// blocked forwarded mail until a user accepts it.
func TestEnforcedIsNotDone(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	forwarded := planted{"198.51.100.20", 10, "", true, "reject"}
	team := s.plant(t, "planted.example", "reject", yourMail, forwarded)
	const path, conclusion = "/app/domains/planted.example", "Enforced. In 30 days, receivers blocked 200 messages from forwarders and mailing lists."
	pages := []string{path, path + "/print", "/app/"}
	for _, page := range pages {
		text := s.text(t, editor, page)
		if page != "/app/" && !strings.Contains(text, conclusion) || !strings.Contains(text, "Decide about forwarded mail") {
			t.Errorf("%s: got no %q with its decision in %s", page, conclusion, text)
		}
	}
	if text := s.text(t, editor, "/app/activity"); !strings.Contains(text, "1 question") || !strings.Contains(text, "Question Decide about forwarded mail") || !strings.Contains(text, "Accept 200 messages") {
		t.Errorf("got no decision among what needs you: %s", text)
	}
	if text := s.text(t, editor, path); !strings.Contains(text, "Accept 200 messages") || !strings.Contains(text, "rewrite the From address") || strings.Contains(text, "Nothing to do") {
		t.Errorf("got no ways out, or nothing to do: %s", text)
	}
	if text := s.text(t, viewer, path); strings.Contains(text, "Accept 200 messages") || !strings.Contains(text, "rewrite the From address") {
		t.Errorf("a viewer: got a button, or no ways out: %s", text)
	}
	if w := s.post(editor, path+"/forwarding", url.Values{"accepted": {"200"}}); w.Header().Get("Location") != path+"?done=forwarding-accepted" {
		t.Fatalf("got %d %s", w.Code, w.Body)
	}
	musttest.Do(t, team.DeleteDomain(t.Context(), sampleDomain)) // which has things to do
	for _, page := range pages {
		text := s.text(t, editor, page)
		if !strings.Contains(text, conclusion) || !strings.Contains(text, "Nothing to do.") {
			t.Errorf("%s, accepted: got no %q with nothing to do in %s", page, conclusion, text)
		}
	}
}

// TestQuestionsDoNotWait lists a question that waits behind another step, and none that only matters later.
func TestQuestionsDoNotWait(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.plant(t, "planted.example", "none", yourMail, asked, planted{"198.51.100.20", 10, "", true, "none"}, planted{"192.0.2.17", 2, "", false, "none"})
	if text := s.text(t, editor, "/app/domains/planted.example"); !strings.Contains(text, "→ Now: Fix ") || !strings.Contains(text, "○ Later: Decide about forwarded mail") {
		t.Fatalf("got the way %s, want a sender to fix first", text)
	}
	text := s.text(t, editor, "/app/activity?kind=question")
	for _, want := range []string{"1 question needs you", "Does your company use esp.example?", "1,000 messages in 20 days from 1 address", "Yes, ours No, not ours"} {
		if !strings.Contains(text, want) {
			t.Errorf("got no %q in %s", want, text)
		}
	}
	if text := s.text(t, viewer, "/app/activity"); !strings.Contains(text, "Does your company use esp.example?") || strings.Contains(text, "Yes, ours") {
		t.Errorf("a viewer: got %s, want the question without buttons", text)
	}
}

// TestSpoofingIsNotRed shows in which colours the flow of mail and the mail of a sender are drawn: what
// fails is red only if it is yours.
func TestSpoofingIsNotRed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.plant(t, "planted.example", "none", yourMail, asked, spoofMail, planted{"198.51.100.20", 10, "", true, "none"}, planted{"192.0.2.17", 2, "", false, "none"})
	body := s.body(t, viewer, "/app/domains/planted.example/senders")
	for _, want := range []string{
		`<td data-tone="spoofed">spoofed, fails DMARC`, `<td data-tone="forwarded">forwarded, fails DMARC`, `<td data-tone="warning">unknown, fails DMARC`,
		`<td data-tone="bad">yours, fails DMARC`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("got no %s in %s", want, body)
		}
	}
	link := regexp.MustCompile(`href="(/app/senders/sender/[^"]*)"`).FindStringSubmatch(s.body(t, viewer, "/app/domains/planted.example/senders?class=spoofing"))
	if link == nil {
		t.Fatal("got no sender that spoofs")
	}
	if body := s.body(t, viewer, html.UnescapeString(link[1])); strings.Contains(body, `data-tone="bad"`) || !strings.Contains(body, `data-tone="spoofed"`) {
		t.Errorf("%s: got mail in red, or none in the colour of spoofing", link[1])
	}
}

// TestPolicyPage checks the four separate figures, and that a harmful record is hidden.
func TestPolicyPage(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.plant(t, "planted.example", "none; t=y", yourMail, asked, spoofMail, planted{"198.51.100.20", 10, "", true, "none"}, planted{"192.0.2.17", 2, "", false, "none"})
	const path = "/app/domains/planted.example/policy?p=reject"
	text := s.text(t, viewer, path)
	for _, want := range []string{
		"Legitimate 40 of 2,040 affected", "Forwarded 200 of 200 affected", "Unknown 1,000 of 1,000 affected", "Spoofed 800 of 800 affected",
		"The record has t=y (test mode)", "Not yet: p=reject affects 40 of 2,040 legitimate messages", "Show the record anyway", "Spam folder",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("got no %q in %s", want, text)
		}
	}
	if body := s.body(t, viewer, path); !regexp.MustCompile(`(?s)<details>.*v=DMARC1; p=reject.*</details>`).MatchString(body) {
		t.Error("got the record in the open, want it in details")
	}
	if text := s.text(t, viewer, "/app/domains/planted.example/policy?p=none"); strings.Contains(text, "Show the record anyway") {
		t.Errorf("p=none: got the record hidden, want it shown: %s", text)
	}
	for _, page := range []string{path, "/app/domains/planted.example", "/app/tools/dmarc?p=quarantine"} {
		for _, word := range []string{"uarantined", "stopped", " lost", "as reported,", "did,"} {
			if text := s.text(t, viewer, page); strings.Contains(text, word) {
				t.Errorf("%s: got %q, want one set of words", page, word)
			}
		}
	}
}

// TestFirstRecord checks that guide, summary, builder and advice propose the same record for a
// new domain, with and without a report domain, before and after its first full check.
func TestFirstRecord(t *testing.T) {
	t.Parallel()
	for _, reportDomain := range []string{"reports.example", ""} {
		s := newSite(t, func(o *service.Options) { o.ReportDomain = reportDomain })
		s.zone.zone = dnstest.New("new.example MX 10 mx.new.example\nmx.new.example A 192.0.2.1")
		team := s.service.Team(s.team, service.CommandLine())
		musttest.Get(team.AddDomain(t.Context(), "new.example"))(t)
		for _, when := range []string{"added", "examined"} {
			want := musttest.Get(team.ProposedRecord(t.Context(), "new.example"))(t)
			if !strings.Contains(want, "rua=mailto:") {
				t.Errorf("%q, %s: got %q, want a record that asks for reports", reportDomain, when, want)
			}
			for _, path := range []string{"/app/domains/new.example", "/app/domains/new.example/setup", "/app/tools/dmarc?domain=new.example"} {
				if body := html.UnescapeString(s.body(t, owner, path)); !strings.Contains(body, `<code data-copy>`+want+`</code>`) {
					t.Errorf("%q, %s: %s: got no %q", reportDomain, when, path, want)
				}
			}
			musttest.Do(t, team.Examine(t.Context(), "new.example"))
		}
	}
}

// TestMissingDomain checks that a non-existent domain is reported first.
func TestMissingDomain(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.zone.zone = dnstest.New("example TXT \"x\"")
	team := s.service.Team(s.team, service.CommandLine())
	musttest.Get(team.AddDomain(t.Context(), "missing.example"))(t)
	musttest.Do(t, team.Examine(t.Context(), "missing.example"))
	for _, path := range []string{"", "/setup"} {
		if text := s.text(t, owner, "/app/domains/missing.example"+path); !strings.Contains(text, "Settings missing.example does not exist in the DNS.") {
			t.Errorf("%q: got another conclusion: %s", path, text)
		}
	}
}

// TestGuideNamesThePublisher checks that the guide separates the operator's records from the
// customer's.
func TestGuideNamesThePublisher(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	text := s.text(t, viewer, "/app/domains/example.com/setup")
	own, operated, found := strings.Cut(text, "Published by the operator of this service")
	if !found || strings.Contains(own, "_report._dmarc") || !strings.Contains(operated, "example.com._report._dmarc.reports.example") {
		t.Errorf("got the records of the operator among others: %s", text)
	}
}

// TestParkedMark sets and removes the mark.
func TestParkedMark(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	const path = "/app/domains/example.com"
	for _, row := range []struct{ value, done, message string }{{"yes", "parked", "marked as not used for mail"}, {"no", "not-parked", "This domain is used for mail."}} {
		if w := s.post(editor, path+"/parked", url.Values{"parked": {row.value}}); w.Header().Get("Location") != path+"/settings?done="+row.done {
			t.Fatalf("%s: got %d %s", row.value, w.Code, w.Body)
		}
		if text := s.text(t, viewer, path+"/settings"); !strings.Contains(text, row.message) || strings.Contains(text, "Purpose") {
			t.Errorf("%s: got %s", row.value, text)
		}
	}
}

// TestClassifyParts sets classes of parts, addresses and networks from the pages of senders.
func TestClassifyParts(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	team := s.plant(t, "planted.example", "none", yourMail, asked, spoofMail)
	class := func(key string) dmarcd.Class {
		found := musttest.Get(team.Simulate(t.Context(), "planted.example", dmarcd.Days{}, service.PolicyChange{}))(t)
		for _, sender := range found.Senders {
			if sender.Key == key {
				return sender.Class
			}
		}
		return ""
	}
	const query = "?domain=planted.example"
	for _, row := range []struct{ page, message, key, class string }{
		{"/app/senders/sender/-:as:esp.example", "Class of this sender", "-:as:esp.example", "forwarder"},
		{"/app/senders/address/203.0.113.9", "Class of this address", "203.0.113.9", "yours"},
	} {
		body := html.UnescapeString(s.body(t, editor, row.page+query))
		action := regexp.MustCompile(`action="(/app/domains/planted\.example/senders\?[^"]*)"`).FindStringSubmatch(body)
		if action == nil || !strings.Contains(body, row.message) {
			t.Fatalf("%s: got no %q with a form", row.page, row.message)
		}
		w := s.post(editor, action[1], url.Values{"sender": {row.key}, "class": {row.class}})
		location := w.Header().Get("Location")
		if !strings.HasPrefix(location, row.page+"?") || !strings.Contains(s.text(t, editor, location), "counted under the new class") {
			t.Errorf("%s: got %d to %q, want the same page: %s", row.page, w.Code, location, w.Body)
		}
		if got := class(row.key); string(got) != row.class {
			t.Errorf("%s: got the class %q, want %q", row.key, got, row.class)
		}
		if body := s.body(t, viewer, row.page+query); strings.Contains(body, row.message) {
			t.Errorf("%s: a viewer gets buttons", row.page)
		}
	}
	// The part of the network is gone with its only address.
	w := s.post(editor, "/app/domains/planted.example/senders?group=sender&row=-:as:esp.example", url.Values{"sender": {"198.51.100.0/24"}, "class": {"spoofing"}})
	if w = s.get(editor, w.Header().Get("Location")); !strings.HasPrefix(w.Header().Get("Location"), "/app/domains/planted.example/senders?done=class-set") {
		t.Errorf("got %d to %q, want the list of senders", w.Code, w.Header().Get("Location"))
	}
	if got := class("198.51.100.0/24"); got != dmarcd.ClassSpoofing {
		t.Errorf("a network: got the class %q, want spoofing", got)
	}
	link := regexp.MustCompile(`href="(/app/senders/sender/198\.51\.100\.0[^"]*)"`).FindStringSubmatch(html.UnescapeString(s.body(t, editor, "/app/domains/planted.example/senders")))
	if link == nil {
		t.Fatal("got no link to the network")
	}
	s.body(t, editor, link[1])
	if w := s.post(editor, "/app/domains/planted.example/senders", url.Values{"sender": {"10.0.0.0/4"}, "class": {"spoofing"}}); w.Code != http.StatusUnprocessableEntity {
		t.Errorf("a wide network: got %d, want 422", w.Code)
	}
}

// TestChallengeOfADomain shows how to prove that the team controls a domain, until it does.
func TestChallengeOfADomain(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(o *service.Options) { o.DomainProof = true })
	s.zone.zone = dnstest.New("")
	team := s.service.Team(s.team, service.CommandLine())
	domain := musttest.Get(team.AddDomain(t.Context(), "new.example"))(t)
	body := s.body(t, owner, "/app/domains/new.example/setup")
	for _, want := range []string{"Prove that you control the domain", "_dmarcd-challenge.new.example", domain.ChallengeText(), "not seen yet"} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	s.zone.zone = dnstest.New(`_dmarc.new.example TXT "v=DMARC1; p=none; rua=mailto:` + domain.ReportAddress("reports.example") + `"`)
	if checked, _, err := team.Verify(t.Context(), "new.example"); err != nil || !checked.Active {
		t.Errorf("got active %v, %v", checked.Active, err)
	}
	if strings.Contains(s.body(t, owner, "/app/domains/new.example/setup"), "_dmarcd-challenge") {
		t.Error("the page asks for another proof")
	}
}
