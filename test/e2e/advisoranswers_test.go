package e2e_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// hookNames are the ids of a webhook and one of its deliveries.
type hookNames struct{ webhook, delivery string }

// advisorRequests returns the requests of the advisor and of a webhook. The deletion is
// last.
func advisorRequests(domain string, hook hookNames, token string) []request {
	path := "/webhooks/" + hook.webhook
	return []request{
		changing(http.MethodGet, "/insights/advice?domain="+domain, token, ""),
		changing(http.MethodGet, "/insights/simulate?domain="+domain, token, ""),
		changing(http.MethodGet, "/insights/records?domain="+domain, token, ""),
		changing(http.MethodPut, "/domains/"+domain+"/senders/as64500", token, `{"class":"yours"}`),
		changing(http.MethodDelete, "/senders/our-crm", token, ""),
		changing(http.MethodPut, "/domains/"+domain+"/tags", token, `{"tags":["shop"]}`),
		changing(http.MethodGet, "/domains/"+domain+"/tags", token, ""),
		changing(http.MethodGet, path+"/deliveries", token, ""),
		changing(http.MethodPatch, path, token, `{"kinds":["policy.weakened"]}`),
		changing(http.MethodPost, path+"/test", token, ""),
		changing(http.MethodPost, path+"/rotate", token, ""),
		changing(http.MethodPost, path+"/deliveries/"+hook.delivery+"/retry", token, ""),
		changing(http.MethodDelete, path, token, ""),
	}
}

// teamRequests returns the requests for all webhooks, alerts and tags of a team, and the
// self-test, which needs a mail server to succeed.
func teamRequests(token string) []request {
	return append(alertRequests(1, token),
		changing(http.MethodPost, "/domains/example.com/selftest", token, ""),
		changing(http.MethodGet, "/senders", token, ""),
		changing(http.MethodPut, "/senders/our-crm", token, `{"name":"Our CRM","class":"yours","networks":["192.0.2.0/24"]}`),
		changing(http.MethodGet, "/tags", token, ""),
		changing(http.MethodGet, "/search?q=example", token, ""),
		changing(http.MethodGet, "/webhooks", token, ""),
		changing(http.MethodPost, "/webhooks", token, `{"url":"https://hooks.example/dmarc","kinds":null,"domains":null}`))
}

// addHook adds a webhook, and delivers a test event to it, which fails.
func (s *server) addHook() hookNames {
	t := s.in.t
	t.Helper()
	var created struct{ ID string }
	a := s.post("/webhooks", `{"url":"https://hooks.example/dmarc","kinds":null,"domains":null}`)
	a.wantStatus(t, http.StatusCreated)
	if err := json.Unmarshal(a.body, &created); err != nil {
		t.Fatal(err)
	}
	s.post("/webhooks/"+created.ID+"/test", "")
	deliveries := readAs[page[struct{ ID string }]](t, s.get("/webhooks/"+created.ID+"/deliveries"))
	if len(deliveries.Items) == 0 {
		t.Fatal("got no delivery, want that of the test")
	}
	return hookNames{created.ID, deliveries.Items[0].ID}
}

// TestAnswersOfTheAdvisor causes the documented answers of the advisor and of webhooks.
func TestAnswersOfTheAdvisor(t *testing.T) {
	each(t, checkedZone, func(t *testing.T, in *installation) {
		s := in.serve()
		s.add("example.com")
		s.firstCheck("example.com")
		hook := s.addHook()
		cast := newErrorFixture(in)
		in.do("team", "create", "other", "--api")
		want := func(r request, status int) {
			t.Helper()
			s.send(r).wantStatus(t, status)
		}
		for token, status := range map[string]int{
			"": http.StatusUnauthorized, cast.denied: http.StatusForbidden, in.newToken("other"): http.StatusNotFound,
		} {
			for _, r := range advisorRequests("example.com", hook, token) {
				want(r, status)
			}
			for _, r := range teamRequests(token) {
				if status != http.StatusNotFound {
					want(r, status)
				}
			}
		}
		for _, r := range append(advisorRequests("example.com", hook, in.token), teamRequests(in.token)...) {
			join := "?"
			if strings.Contains(r.path, "?") {
				join = "&"
			}
			r.path += join + "unknown=1"
			want(r, http.StatusUnprocessableEntity)
		}
		for _, r := range []request{
			changing(http.MethodPut, "/domains/example.com/senders/as64500", in.token, ""),
			changing(http.MethodPut, "/domains/example.com/tags", in.token, ""),
			changing(http.MethodPut, "/senders/our-crm", in.token, ""),
			changing(http.MethodPatch, "/webhooks/"+hook.webhook, in.token, ""),
			changing(http.MethodPost, "/webhooks", in.token, ""),
		} {
			for body, status := range map[string]int{"{": http.StatusBadRequest, tooLarge: http.StatusRequestEntityTooLarge, "[]": http.StatusUnprocessableEntity} {
				want(changing(r.method, r.path, in.token, body), status)
			}
			r.header, r.body = map[string]string{"Content-Type": "text/plain"}, "{}"
			want(r, http.StatusUnsupportedMediaType)
		}
		for _, path := range []string{"/insights/advice", "/insights/simulate?domain=example.com", "/webhooks", "/webhooks/" + hook.webhook + "/deliveries", "/senders", "/tags", "/domains/example.com/tags", "/search?q=example"} {
			a := s.get(path)
			a.wantStatus(t, http.StatusOK)
			s.ifNoneMatch(path, a.header.Get("ETag")).wantStatus(t, http.StatusNotModified)
		}
		want(changing(http.MethodPut, "/senders/our-crm", in.token, `{"name":"Our CRM","networks":["192.0.2.0/24"]}`), http.StatusOK)
		for _, r := range advisorRequests("example.com", hook, in.token) {
			if a := s.send(r); a.status >= http.StatusBadRequest {
				t.Errorf("%s %s: got status %d want a success: %s", r.method, r.path, a.status, a.body)
			}
		}
	})
}
