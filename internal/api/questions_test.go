package api_test

import (
	"encoding/json"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/senders"
	usecase "github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// mailDays is the number of days with mail.
const mailDays = 20

// newAdvised returns a service that knows SendGrid, which signs as sendgrid.example.
func newAdvised(t *testing.T, db storetest.DB) *service {
	t.Helper()
	known := []senders.Sender{{Key: "sendgrid", Name: "SendGrid", Kind: senders.Service, Category: senders.Transactional, Domains: []string{"sendgrid.example"}}}
	st := db.Open(t, store.Options{})
	return newService(t, st, func(o *options) {
		o.Service = useCases(st, usecase.Options{Insight: insight.New(&senders.Atlas{}, senders.NewCatalogue(known), nameless{}, nil)})
	})
}

// advised adds a domain with a DMARC record, "" for none, and the same mail on each of mailDays.
func (s *service) advised(domain, record string, mail ...aggregate.Record) {
	s.t.Helper()
	s.add(domain)
	check := facts.Check{At: time.Now(), Conclusive: true, Record: record, Usable: record != "", Asked: true, Facts: &facts.Facts{Domain: domain}}
	if record != "" {
		check.RecordDomain = domain
	}
	musttest.Get(s.team.SaveCheck(s.t.Context(), domain, check, dmarcd.Plan{Next: time.Now().Add(time.Hour)}))(s.t)
	if len(mail) == 0 {
		return
	}
	today := dmarcd.DayOf(time.Now())
	for day := range dmarcd.Day(mailDays) {
		report := storetest.Aggregate(domain+today.String()+itoa(int(day)), domain, today-1-day, mail...)
		musttest.Get(s.team.Receive(s.t.Context(), []*dmarcd.Delivery{storetest.Delivery(report)}))(s.t)
	}
}

// mailFrom returns messages with a From domain that are signed as a domain, and whether they pass.
func mailFrom(address, from, signer, selector string, result aggregate.Result, count int64) aggregate.Record {
	r := aggregate.Record{
		Addr: netip.MustParseAddr(address), Source: address, Count: count, HeaderFrom: from, EnvelopeFrom: "bounce.example", Disposition: aggregate.PolicyNone,
		DKIM: aggregate.ResultFail, SPF: aggregate.ResultFail,
		DKIMResults: []aggregate.DKIMResult{{Domain: signer, Selector: selector, Result: result}},
		SPFResults:  []aggregate.SPFResult{{Domain: "bounce.example", Scope: "mfrom", Result: aggregate.ResultFail}},
	}
	if signer == from {
		r.DKIM = result
	}
	return r
}

// ownServer returns messages of a server that passes SPF and DKIM.
func ownServer(domain string, count int64) aggregate.Record {
	r := mailFrom("192.0.2.1", domain, domain, "s1", aggregate.ResultPass, count)
	r.EnvelopeFrom, r.SPF = domain, aggregate.ResultPass
	r.SPFResults = []aggregate.SPFResult{{Domain: domain, Scope: "mfrom", Result: aggregate.ResultPass}}
	return r
}

// put changes something of a domain.
func (s *service) put(domain, path, body string) answer {
	s.t.Helper()
	r := s.request(http.MethodPut, "/domains/"+domain+"/"+path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	return s.send(r)
}

// next returns the next action of a domain, and checks what is true of all advice.
func (s *service) next(domain string) wire.Action {
	s.t.Helper()
	items := read[page[wire.Advice]](s.t, s.get("/insights/advice?domain="+domain), http.StatusOK).Items
	if len(items) != 1 || items[0].Domain != domain || items[0].NextAction == nil {
		s.t.Fatalf("got %+v, want the advice for %s with a next action", items, domain)
	}
	advice := items[0]
	done, now := 0, 0
	for _, step := range advice.Steps {
		switch step.State {
		case "done":
			done++
		case "now":
			if now++; !cmp.Equal(step.Action, *advice.NextAction) {
				s.t.Errorf("got the step %+v, want it to be the next action %+v", step, advice.NextAction)
			}
		}
	}
	if now != 1 || advice.Done != done*100/len(advice.Steps) {
		s.t.Errorf("got %d steps that are now and %d %% done, want one, and %d of %d", now, advice.Done, done, len(advice.Steps))
	}
	return *advice.NextAction
}

// effect returns the four figures of an action.
func effect(a wire.Action) [4]int64 {
	return [4]int64{a.LegitimateAffected, a.ForwarderAffected, a.UnknownAffected, a.SpoofingStopped}
}

func TestAnswerQuestion(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := newAdvised(t, db)
		const key, asked = "sendgrid:rest", 50 * mailDays
		for _, tt := range []struct {
			domain, answer, class, action string
			effect                        [4]int64
		}{
			{"a.example", "yours", "yours", "fix_sender", [4]int64{asked, 0, 0, 0}},
			{"b.example", "not_yours", "spoofing", "tighten_policy", [4]int64{0, 0, 0, asked}},
		} {
			s.advised(tt.domain, "v=DMARC1; p=none", ownServer(tt.domain, 100), mailFrom("198.51.100.1", tt.domain, "sendgrid.example", "sg", aggregate.ResultPass, 50))
			question := s.next(tt.domain)
			if q := question.Question; question.ID != "answer_question" || q == nil || q.Key != key || q.Name != "SendGrid (not aligned)" ||
				q.Text != "Does your company use SendGrid?" || q.Messages != asked || q.Addresses != 1 || len(q.Evidence) == 0 || effect(question) != [4]int64{0, 0, asked, 0} {
				t.Fatalf("%s: got %+v with %+v, want the question about SendGrid", tt.domain, question, q)
			}
			before := s.changes(tt.domain)
			for _, bad := range []struct{ key, body, field, code string }{
				{key, `{}`, "answer", "invalid_input"},
				{key, `{"answer": null}`, "answer", "invalid_input"},
				{key, `{"answer": "maybe"}`, "answer", "invalid_input"},
				{key, `{"answer": true}`, "answer", "invalid_input"},
				{"sendgrid", `{"answer": "yours"}`, "key", "question_closed"},
				{"AS64496:others", `{"answer": "yours"}`, "key", "question_closed"},
				{"-:yours", `{"answer": "not_yours"}`, "key", "question_closed"},
				{"192.0.2.1", `{"answer": "yours"}`, "key", "question_closed"},
				{"nosuch:rest", `{"answer": "yours"}`, "key", "question_closed"},
				{"no such", `{"answer": "yours"}`, "key", "invalid_input"},
			} {
				s.rejected(s.put(tt.domain, "questions/"+url.PathEscape(bad.key), bad.body), bad.key+" "+bad.body, bad.field, bad.code)
			}
			if got := s.put("elsewhere.example", "questions/"+key, `{"answer": "yours"}`); got.status != http.StatusNotFound {
				t.Errorf("got status %d for a domain that is not there, want 404", got.status)
			}
			if diff := cmp.Diff(before, s.changes(tt.domain)); diff != "" {
				t.Errorf("%s: bad answers changed something (-want +got):\n%s", tt.domain, diff)
			}
			got := read[map[string]string](t, s.put(tt.domain, "questions/"+key, `{"answer": "`+tt.answer+`"}`), http.StatusOK)
			if diff := cmp.Diff(map[string]string{"domain": tt.domain, "sender": key, "class": tt.class}, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.answer, diff)
			}
			action := s.next(tt.domain)
			if action.ID != tt.action || action.Question != nil || effect(action) != tt.effect {
				t.Errorf("%s: got %+v, want %s with the effect %v", tt.answer, action, tt.action, tt.effect)
			}
			switch tt.action {
			case "fix_sender":
				if action.Sender == nil || *action.Sender != key {
					t.Errorf("got %+v, want the sender %s", action, key)
				}
			default:
				if action.Record == nil || action.Record.Name != "_dmarc."+tt.domain || !strings.HasPrefix(action.Record.Value, "v=DMARC1; p=quarantine") {
					t.Errorf("got the record %+v, want p=quarantine", action.Record)
				}
			}
			s.rejected(s.put(tt.domain, "questions/"+key, `{"answer": "yours"}`), "a second answer", "key", "question_closed")
			if got := s.next(tt.domain); !cmp.Equal(got, action) {
				t.Errorf("after a second answer: got %+v, want %+v", got, action)
			}
			// Without the class, the question is open again.
			read[wire.SenderClass](t, s.put(tt.domain, "senders/"+key, `{"class": null}`), http.StatusOK)
			if got := s.next(tt.domain); !cmp.Equal(got, question) {
				t.Errorf("without the class: got %+v, want %+v", got, question)
			}
		}
	})
}

// rejected checks that the response names the invalid part of the input.
func (s *service) rejected(got answer, what, field, code string) {
	s.t.Helper()
	var body struct{ Message, Field, Code string }
	if err := json.Unmarshal(got.body, &body); err != nil || got.status != http.StatusUnprocessableEntity || body.Field != field || body.Code != code || body.Message == "" {
		s.t.Errorf("%s: got %d, %s, %v; want 422 with the field %s and the code %s", what, got.status, got.body, err, field, code)
	}
}

// changes returns everything that the advice endpoints can change.
func (s *service) changes(domain string) []any {
	s.t.Helper()
	d := musttest.Get(s.team.Domain(s.t.Context(), domain))(s.t)
	classes := musttest.Get(s.team.SenderClasses(s.t.Context(), domain))(s.t)
	entries := musttest.Get(s.store.Audit(s.t.Context(), store.AuditFilter{}, store.Cursor{}, 1000))(s.t)
	return []any{d.Parked, d.ForwardingAccepted, classes, len(entries), s.next(domain)}
}

// TestClassOfAnAddress checks that a network that the team classified is a separate sender, and
// that invalid keys are rejected.
func TestClassOfAnAddress(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := newAdvised(t, db)
		const domain = "example.com"
		s.advised(domain, "v=DMARC1; p=none", ownServer(domain, 100),
			mailFrom("198.51.100.7", domain, "one.example", "x", aggregate.ResultFail, 20), mailFrom("203.0.113.9", domain, "two.example", "x", aggregate.ResultFail, 30))
		before := s.changes(domain)
		for _, key := range []string{
			"nosuch", "nosuch:rest", "192.0.2", "192.0.2.256", "192.0.2.0/33", "10.0.0.0/7", "0.0.0.0/0", "2001:db8::/31", "::/0", "2001:db8::1%eth0", "::ffff:192.0.2.0/120",
			"AS0", "AS4294967296", "AS64496:", "AS64496:theirs", "AS64496:as:", "AS64496:as:a b", "Sendgrid", "sendgrid:rest:rest", "no such", "*", strings.Repeat("a", 400),
		} {
			s.rejected(s.put(domain, "senders/"+url.PathEscape(key), `{"class": "yours"}`), key, "key", "invalid_input")
		}
		for _, body := range []string{`{}`, `{"class": "service"}`, `{"class": "friend"}`, `{"class": ""}`, `{"class": 1}`, `{"class": true}`} {
			s.rejected(s.put(domain, "senders/192.0.2.7", body), body, "class", "invalid_input")
		}
		if diff := cmp.Diff(before, s.changes(domain)); diff != "" {
			t.Errorf("bad input changed something (-want +got):\n%s", diff)
		}
		for _, set := range []struct{ written, key, class string }{
			{"198.51.100.7", "198.51.100.7", "yours"},
			{"203.0.113.77/24", "203.0.113.0/24", "forwarder"},
			{"2001:DB8:0:1::5/64", "2001:db8:0:1::/64", "unknown"},
			{"as64496:as:News.Example", "AS64496:as:news.example", "spoofing"},
			{"-:others", "-:others", "unknown"},
			{"sendgrid", "sendgrid", "yours"},
		} {
			got := read[wire.SenderClass](t, s.put(domain, "senders/"+url.PathEscape(set.written), `{"class": "`+set.class+`"}`), http.StatusOK)
			if want := (wire.SenderClass{Domain: domain, Sender: set.key, Class: &set.class}); !cmp.Equal(got, want) {
				t.Errorf("%s: got %+v, want %+v", set.written, got, want)
			}
		}
		got := map[string]wire.SimulatedSender{}
		simulation := read[wire.Simulation](t, s.get("/insights/simulate?p=reject&domain="+domain), http.StatusOK)
		for _, sender := range simulation.Senders {
			if got[sender.Key] = sender; (sender.Affected > 0) != (sender.Cause != nil) || (sender.Cause != nil) != (sender.Fix != nil) {
				t.Errorf("%s: got the cause %v and the fix %v, want both where mail is affected", sender.Key, sender.Cause, sender.Fix)
			}
		}
		want := map[string]wire.SimulatedSender{
			"-:yours":        {Key: "-:yours", Name: "Unknown networks (yours)", Class: "yours", Messages: 100 * mailDays, Addresses: 1},
			"198.51.100.7":   {Key: "198.51.100.7", Name: "198.51.100.7", Class: "yours", Messages: 20 * mailDays, Affected: 20 * mailDays, Addresses: 1},
			"203.0.113.0/24": {Key: "203.0.113.0/24", Name: "203.0.113.0/24", Class: "forwarder", Messages: 30 * mailDays, Affected: 30 * mailDays, Addresses: 1},
		}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(wire.SimulatedSender{}, "Cause", "Fix")); diff != "" {
			t.Errorf("senders (-want +got):\n%s", diff)
		}
		figures := [6]int64{
			simulation.LegitimateMessages, simulation.LegitimateAffected, simulation.ForwarderMessages, simulation.ForwarderAffected, simulation.UnknownMessages, simulation.SpoofingMessages,
		}
		if figures != [6]int64{120 * mailDays, 20 * mailDays, 30 * mailDays, 30 * mailDays, 0, 0} {
			t.Errorf("got the figures %v", figures)
		}
	})
}

// TestAcceptForwarding accepts forwarded mail that a stricter policy affects.
func TestAcceptForwarding(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := newAdvised(t, db)
		const domain, affected = "example.com", 50 * mailDays
		s.advised(domain, "v=DMARC1; p=none", ownServer(domain, 1000), mailFrom("198.51.100.1", domain, domain, "s1", aggregate.ResultFail, 50))
		action := s.next(domain)
		if action.ID != "accept_forwarding" || effect(action) != [4]int64{0, affected, 0, 0} {
			t.Fatalf("got %+v, want that %d forwarded messages are to be accepted", action, affected)
		}
		before := s.changes(domain)
		for _, body := range []string{`{}`, `{"accepted": 0}`, `{"accepted": -1}`, `{"accepted": 1.5}`, `{"accepted": "1000"}`, `{"accepted": true}`, `{"accepted": 1e30}`, `{"accepted": 9223372036854775807}`} {
			s.rejected(s.put(domain, "forwarding", body), body, "accepted", "invalid_input")
		}
		if got := s.put("elsewhere.example", "forwarding", `{"accepted": 1}`); got.status != http.StatusNotFound {
			t.Errorf("got status %d for a domain that is not there, want 404", got.status)
		}
		if diff := cmp.Diff(before, s.changes(domain)); diff != "" {
			t.Errorf("bad numbers changed something (-want +got):\n%s", diff)
		}
		for _, step := range []struct{ accepted, action string }{
			{"1000", "tighten_policy"}, {"800", "tighten_policy"}, {"799", "accept_forwarding"}, {"5000", "tighten_policy"}, {"null", "accept_forwarding"},
		} {
			got := s.put(domain, "forwarding", `{"accepted": `+step.accepted+`}`)
			if want := `{"domain":"` + domain + `","accepted":` + step.accepted + `}`; got.status != http.StatusOK || strings.TrimSpace(string(got.body)) != want {
				t.Errorf("got %d and %s, want %s", got.status, got.body, want)
			}
			if action := s.next(domain); action.ID != step.action || effect(action) != [4]int64{0, affected, 0, 0} {
				t.Errorf("%s accepted: got %+v, want %s", step.accepted, action, step.action)
			}
		}
	})
}

// TestSetParked marks a domain without a record as parked: its first record is then p=reject.
func TestSetParked(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := newAdvised(t, db)
		const domain = "example.com"
		s.advised(domain, "")
		before := s.changes(domain)
		for _, body := range []string{`{}`, `{"parked": null}`, `{"parked": "yes"}`, `{"parked": 1}`} {
			s.rejected(s.put(domain, "parked", body), body, "parked", "invalid_input")
		}
		if got := s.put("elsewhere.example", "parked", `{"parked": true}`); got.status != http.StatusNotFound {
			t.Errorf("got status %d for a domain that is not there, want 404", got.status)
		}
		if diff := cmp.Diff(before, s.changes(domain)); diff != "" {
			t.Errorf("bad marks changed something (-want +got):\n%s", diff)
		}
		for _, step := range []struct{ parked, stage, action, record string }{
			{"false", "none", "publish_record", "v=DMARC1; p=none"}, {"true", "parked", "lock_parked", "v=DMARC1; p=reject"}, {"false", "none", "publish_record", "v=DMARC1; p=none"},
		} {
			got := s.put(domain, "parked", `{"parked": `+step.parked+`}`)
			if want := `{"domain":"` + domain + `","parked":` + step.parked + `}`; got.status != http.StatusOK || strings.TrimSpace(string(got.body)) != want {
				t.Errorf("got %d and %s, want %s", got.status, got.body, want)
			}
			action := s.next(domain)
			if action.ID != step.action || action.Record == nil || *action.Record != (wire.ActionRecord{Name: "_dmarc." + domain, Type: "TXT", Value: step.record}) {
				t.Errorf("parked %s: got %+v with the record %+v, want %s with %s", step.parked, action, action.Record, step.action, step.record)
			}
			if got := read[page[wire.Advice]](t, s.get("/insights/advice"), http.StatusOK).Items; len(got) != 1 || got[0].Stage != step.stage {
				t.Errorf("parked %s: got %+v, want the stage %s", step.parked, got, step.stage)
			}
		}
		// It stays parked once the record is there, and nothing is left to do.
		read[wire.Parked](t, s.put(domain, "parked", `{"parked": true}`), http.StatusOK)
		check := facts.Check{At: time.Now().Add(time.Second), Conclusive: true, Record: "v=DMARC1; p=reject", RecordDomain: domain, Usable: true, Facts: &facts.Facts{Domain: domain}}
		musttest.Get(s.team.SaveCheck(t.Context(), domain, check, dmarcd.Plan{Next: time.Now().Add(time.Hour)}))(t)
		items := read[page[wire.Advice]](t, s.get("/insights/advice?domain="+domain), http.StatusOK).Items
		if len(items) != 1 || items[0].Stage != "parked" || items[0].NextAction != nil || items[0].Done != 100 {
			t.Errorf("got %+v, want a parked domain with nothing left to do", items)
		}
	})
}
