package api_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
	"github.com/dmarcd/dmarcd/internal/wire"
)

func TestSimulateAndAdvice(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := newService(t, db.Open(t, store.Options{}))
		s.add("example.com", "example.org")
		s.stored(aggregateXML("1", "example.com", firstDay, row{"example.com", "none", "pass", 5}, row{"a.example.com", "reject", "fail", 20}))
		from, to := dmarcd.Day(firstDay).String(), dmarcd.Day(firstDay+1).String()
		got := read[wire.Simulation](t, s.get("/insights/simulate?domain=Example.com&p=quarantine&sp=reject&from="+from+"&to="+to), http.StatusOK)
		reject, cause := "reject", "The SPF record of a.example.com does not list the address, and the signature s1._domainkey.a.example.com does not verify: the message was changed in transit."
		want := wire.Simulation{
			Domain: "example.com", From: from, To: to,
			Policy:   wire.Policy{P: "quarantine", SP: &reject, ADKIM: "r", ASPF: "r", T: "n", Percent: 100},
			Record:   "v=DMARC1; p=quarantine; rua=mailto:dmarc-reports@example.com; sp=reject",
			Observed: wire.Handled{Delivered: 5, Rejected: 20}, RFC9989: wire.Handled{Delivered: 5, Rejected: 20}, RFC7489: wire.Handled{Delivered: 5, Rejected: 20},
			LegitimateMessages: 5, SpoofingMessages: 20, SpoofingStopped: 20,
			Senders: []wire.SimulatedSender{
				{Key: "-:others", Name: "Unknown networks (others)", Class: dmarcd.ClassSpoofing, Messages: 20, Affected: 20, Addresses: 1, Cause: &cause},
				{Key: "-:yours", Name: "Unknown networks (yours)", Class: dmarcd.ClassYours, Messages: 5, Addresses: 1},
			},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("simulation (-want +got):\n%s", diff)
		}
		set := func(domain, key, body string) answer {
			r := s.request(http.MethodPut, "/domains/"+domain+"/senders/"+url.PathEscape(key), strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			return s.send(r)
		}
		// The class of a network applies to all its parts without a class.
		for _, step := range []struct {
			key, body     string
			others, yours dmarcd.Class
		}{
			{"-", `{"class": "unknown"}`, dmarcd.ClassUnknown, dmarcd.ClassUnknown},
			{"-:others", `{"class": "forwarder"}`, dmarcd.ClassForwarder, dmarcd.ClassUnknown},
			{"-", `{"class": null}`, dmarcd.ClassForwarder, dmarcd.ClassYours},
			{"-:others", `{"class": null}`, dmarcd.ClassSpoofing, dmarcd.ClassYours},
		} {
			if got := set("example.com", step.key, step.body); got.status != http.StatusOK {
				t.Errorf("%s: got status %d: %s", step.body, got.status, got.body)
			}
			items := read[page[wire.Sender]](t, s.get("/insights/senders?domain=example.com"), http.StatusOK).Items
			if len(items) != 2 || items[0].Key != "-:others" || items[0].Class != step.others || len(items[0].Evidence) == 0 || items[0].Cause == nil ||
				items[1].Class != step.yours || len(items[1].Evidence) == 0 || items[1].Cause != nil {
				t.Errorf("%s of %s: got %+v, want the classes %s and %s with evidence, and a cause of the first", step.body, step.key, items, step.others, step.yours)
			}
		}
		for _, body := range []string{`{"class": "service"}`, `{}`, `{"class": 1}`} {
			if got := set("example.com", "-", body); got.status != http.StatusUnprocessableEntity {
				t.Errorf("%s: got status %d, want 422", body, got.status)
			}
		}
		if got := set("example.com", "bad key", `{"class": "yours"}`); got.status != http.StatusUnprocessableEntity || !strings.Contains(string(got.body), "AS64496") {
			t.Errorf("got status %d and %s for a wrong key, want 422 and what a key looks like", got.status, got.body)
		}
		if got := set("example.net", "-", `{"class": "yours"}`); got.status != http.StatusNotFound {
			t.Errorf("got status %d for a domain that is not there, want 404", got.status)
		}
		sender := func(method, key, body string) answer {
			r := s.request(method, "/senders/"+key, strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			return s.send(r)
		}
		crm := wire.TeamSender{Key: "our-crm", Name: "Our CRM", Networks: []string{"192.0.2.0/24"}, Hosts: []string{}, Domains: []string{"a.example"}}
		added := read[wire.TeamSender](t, sender(http.MethodPut, "our-crm", `{"name": "Our CRM", "class": null, "networks": ["192.0.2.9/24"], "hosts": null, "domains": ["A.example"]}`), http.StatusOK)
		listed := read[page[wire.TeamSender]](t, s.get("/senders"), http.StatusOK)
		if diff := cmp.Diff([]wire.TeamSender{crm, crm}, append(listed.Items, added)); diff != "" {
			t.Errorf("senders (-want +got):\n%s", diff)
		}
		for _, body := range []string{`{"name": "X"}`, `{}`, `{"name": 1}`, `{"name": "X", "networks": "192.0.2.1"}`, `{"name": "X", "networks": ["0.0.0.0/0"]}`, `{"name": "X", "domains": ["example.com"]}`, `{"name": "X", "hosts": ["co.uk"]}`, `{"name": "X", "class": "friend", "hosts": ["a.example"]}`} {
			if got := sender(http.MethodPut, "x", body); got.status != http.StatusUnprocessableEntity {
				t.Errorf("%s: got status %d, want 422: %s", body, got.status, got.body)
			}
		}
		for _, status := range []int{http.StatusNoContent, http.StatusNotFound} {
			if got := sender(http.MethodDelete, "our-crm", ""); got.status != status {
				t.Errorf("delete: got status %d, want %d", got.status, status)
			}
		}
		for query, status := range map[string]int{
			"simulate": 422, "simulate?domain=example.com&p=maybe": 422, "simulate?domain=example.com&adkim=x": 422, "simulate?domain=example.net": 404,
			"advice?domain=example.net": 404, "advice?after=x": 422, "advice?limit=0": 422, "advice?colour=red": 422,
		} {
			if got := s.get("/insights/" + query); got.status != status {
				t.Errorf("%s: got status %d, want %d: %s", query, got.status, status, got.body)
			}
		}
		one := read[page[wire.Advice]](t, s.get("/insights/advice?domain=example.com"), http.StatusOK).Items
		var all []wire.Advice
		for after := ""; ; {
			part := read[page[wire.Advice]](t, s.get("/insights/advice?limit=1"+after), http.StatusOK)
			all = append(all, part.Items...)
			if part.Next == nil {
				break
			}
			after = "&after=" + *part.Next
		}
		if len(one) != 1 || len(all) != 2 || !cmp.Equal(one[0], all[0]) || one[0].NextAction == nil || one[0].Stage != "none" {
			t.Errorf("got %+v for one domain and %+v for all, want the same in both", one, all)
		}
	})
}
