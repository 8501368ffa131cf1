package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// advised are the ids of a webhook and one of its deliveries, and the key of an open question.
type advised struct{ webhook, delivery, question string }

// advisorRequests returns the requests of the advisor and of a webhook. The deletion is
// last.
func advisorRequests(domain string, ids advised, token string) []request {
	path := "/webhooks/" + ids.webhook
	return []request{
		changing(http.MethodPut, "/domains/"+domain+"/questions/"+ids.question, token, `{"answer":"yours"}`),
		changing(http.MethodPut, "/domains/"+domain+"/parked", token, `{"parked":true}`),
		changing(http.MethodPut, "/domains/"+domain+"/purpose", token, `{"domain_usage_purpose":"business"}`),
		changing(http.MethodPut, "/domains/"+domain+"/forwarding", token, `{"accepted":290}`),
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
		changing(http.MethodPost, path+"/deliveries/"+ids.delivery+"/retry", token, ""),
		changing(http.MethodDelete, path, token, ""),
	}
}

// teamRequests returns the requests for all webhooks, alerts and tags of a team, and the
// self-test, which needs a mail server to succeed.
func teamRequests(token string) []request {
	return append(alertRequests(1, token),
		changing(http.MethodPost, "/domains/example.com/selftest", token, ""),
		changing(http.MethodGet, "/senders", token, ""),
		changing(http.MethodPut, "/senders/our-crm", token, `{"name":"Our CRM","class":"yours","networks":["198.51.100.0/24"]}`),
		changing(http.MethodGet, "/tags", token, ""),
		changing(http.MethodGet, "/search?q=example", token, ""),
		changing(http.MethodGet, "/changes", token, ""),
		changing(http.MethodGet, "/me", token, ""),
		changing(http.MethodGet, "/insights/domains", token, ""),
		changing(http.MethodPost, "/domains/bulk", token, `{"add":["example.com"]}`),
		changing(http.MethodGet, "/webhooks", token, ""),
		changing(http.MethodPost, "/webhooks", token, `{"url":"https://hooks.example/dmarc","kinds":null,"domains":null}`))
}

// addHook adds a webhook, and delivers a test event to it, which fails.
func (s *server) addHook() (webhook, delivery string) {
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
	return created.ID, deliveries.Items[0].ID
}

// ask uploads mail of a domain that another one signs, and returns the key of the question about it.
func (s *server) ask(domain string) (key string) {
	t := s.in.t
	t.Helper()
	for day := range 10 {
		report := about(domain, fmt.Sprintf("asked-%d", day), 1000, 500)
		report.day = time.Now().UTC().AddDate(0, 0, -1-day).Format(time.DateOnly)
		own := "<domain>" + domain + "</domain><selector>s1</selector><result>fail</result>"
		s.upload(strings.Replace(report.xml(), own, "<domain>mailer.example</domain><selector>m1</selector><result>pass</result>", 1), http.StatusCreated)
	}
	type action struct {
		Question *struct{ Key string }
	}
	advice := readAs[page[struct{ Steps []action }]](t, s.get("/insights/advice?domain="+domain))
	for _, item := range advice.Items {
		for _, step := range item.Steps {
			if step.Question != nil {
				return step.Question.Key
			}
		}
	}
	t.Fatalf("got the advice %+v, want a question", advice)
	return ""
}

// TestAnswersOfTheAdvisor causes the documented answers of the advisor and of webhooks.
func TestAnswersOfTheAdvisor(t *testing.T) {
	each(t, checkedZone, func(t *testing.T, in *installation) {
		s := in.serve()
		s.add("example.com")
		s.firstCheck("example.com")
		ids := advised{question: s.ask("example.com")}
		ids.webhook, ids.delivery = s.addHook()
		cast := newErrorFixture(in)
		in.do("team", "create", "other", "--api")
		want := func(r request, status int) {
			t.Helper()
			s.send(r).wantStatus(t, status)
		}
		for token, status := range map[string]int{
			"": http.StatusUnauthorized, cast.denied: http.StatusForbidden, in.newToken("other"): http.StatusNotFound,
		} {
			for _, r := range advisorRequests("example.com", ids, token) {
				want(r, status)
			}
			for _, r := range teamRequests(token) {
				if status != http.StatusNotFound {
					want(r, status)
				}
			}
		}
		for _, r := range append(advisorRequests("example.com", ids, in.token), teamRequests(in.token)...) {
			join := "?"
			if strings.Contains(r.path, "?") {
				join = "&"
			}
			r.path += join + "unknown=1"
			want(r, http.StatusUnprocessableEntity)
		}
		for _, r := range []request{
			changing(http.MethodPut, "/domains/example.com/questions/"+ids.question, in.token, ""),
			changing(http.MethodPut, "/domains/example.com/parked", in.token, ""),
			changing(http.MethodPut, "/domains/example.com/purpose", in.token, ""),
			changing(http.MethodPut, "/domains/example.com/forwarding", in.token, ""),
			changing(http.MethodPut, "/domains/example.com/senders/as64500", in.token, ""),
			changing(http.MethodPut, "/domains/example.com/tags", in.token, ""),
			changing(http.MethodPut, "/senders/our-crm", in.token, ""),
			changing(http.MethodPatch, "/webhooks/"+ids.webhook, in.token, ""),
			changing(http.MethodPost, "/webhooks", in.token, ""),
			changing(http.MethodPost, "/alerts/acknowledge", in.token, ""),
			changing(http.MethodPost, "/domains/bulk", in.token, ""),
		} {
			large := tooLarge
			if r.path == "/domains/bulk" {
				large = strings.Repeat("x", 4<<20+1)
			}
			for body, status := range map[string]int{"{": http.StatusBadRequest, large: http.StatusRequestEntityTooLarge, "[]": http.StatusUnprocessableEntity} {
				want(changing(r.method, r.path, in.token, body), status)
			}
			r.header, r.body = map[string]string{"Content-Type": "text/plain"}, "{}"
			want(r, http.StatusUnsupportedMediaType)
		}
		for _, path := range []string{"/insights/advice", "/insights/simulate?domain=example.com", "/webhooks", "/webhooks/" + ids.webhook + "/deliveries", "/senders", "/tags", "/domains/example.com/tags", "/search?q=example", "/changes", "/insights/domains"} {
			a := s.get(path)
			a.wantStatus(t, http.StatusOK)
			s.ifNoneMatch(path, a.header.Get("ETag")).wantStatus(t, http.StatusNotModified)
		}
		want(changing(http.MethodPut, "/senders/our-crm", in.token, `{"name":"Our CRM","networks":["198.51.100.0/24"]}`), http.StatusOK)
		want(changing(http.MethodPost, "/domains/bulk", in.token, `{"add":["example.com"]}`), http.StatusOK)
		for _, r := range advisorRequests("example.com", ids, in.token) {
			if a := s.send(r); a.status >= http.StatusBadRequest {
				t.Errorf("%s %s: got status %d want a success: %s", r.method, r.path, a.status, a.body)
			}
		}
	})
}

func alertRequests(alert int64, token string) []request {
	return []request{
		changing(http.MethodGet, "/alerts", token, ""),
		changing(http.MethodGet, "/alerts/rules", token, ""),
		changing(http.MethodPut, "/alerts/rules", token, `{"min_level":"warning","quiet_hours":{"from":"22:00","to":"07:00","time_zone":"Europe/Berlin"}}`),
		changing(http.MethodPost, "/alerts/test", token, ""),
		changing(http.MethodPost, fmt.Sprintf("/alerts/%d/acknowledge", alert), token, ""),
		changing(http.MethodPost, "/alerts/acknowledge", token, fmt.Sprintf(`{"through":%d}`, alert)),
	}
}

// TestAnswersOfAlerts causes the documented answers of alerts.
func TestAnswersOfAlerts(t *testing.T) {
	each(t, checkedZone, func(t *testing.T, in *installation) {
		s := in.serve()
		cast := newErrorFixture(in)
		want := func(r request, status int) {
			t.Helper()
			s.send(r).wantStatus(t, status)
		}
		test := readAs[struct {
			Seq   int64
			State string
		}](t, s.post("/alerts/test", ""))
		if test.State == "delivered" { // nothing answers at the endpoint
			t.Errorf("the test: got state %q", test.State)
		}
		for token, status := range map[string]int{"": http.StatusUnauthorized, cast.denied: http.StatusForbidden, in.token: http.StatusOK} {
			for _, r := range alertRequests(test.Seq, token) {
				want(r, status)
			}
		}
		for _, r := range alertRequests(test.Seq, in.token) {
			r.path += "?unknown=1"
			want(r, http.StatusUnprocessableEntity)
		}
		for _, id := range []string{"4711", "x"} {
			want(changing(http.MethodPost, "/alerts/"+id+"/acknowledge", in.token, ""), http.StatusNotFound)
		}
		for _, query := range []string{"state=x", "open=x", "kind=x", "limit=0"} {
			want(changing(http.MethodGet, "/alerts?"+query, in.token, ""), http.StatusUnprocessableEntity)
		}
		for _, body := range []string{
			`[]`, `{"min_level":"good"}`, `{"unknown":1}`, `{"kinds":[]}`, `{"quiet_hours":{"from":"25:00","to":"07:00","time_zone":"UTC"}}`,
			`{"quiet_hours":{"from":"22:00","to":"07:00","time_zone":"Mars/Olympus"}}`, `{"mutes":[{}]}`, `{"mutes":[{"domain":"example.com","until":"soon"}]}`,
		} {
			want(changing(http.MethodPut, "/alerts/rules", in.token, body), http.StatusUnprocessableEntity)
		}
		want(changing(http.MethodPut, "/alerts/rules", in.token, "{"), http.StatusBadRequest)
		want(changing(http.MethodPut, "/alerts/rules", in.token, tooLarge), http.StatusRequestEntityTooLarge)
		plain := changing(http.MethodPut, "/alerts/rules", in.token, "{}")
		plain.header = map[string]string{"Content-Type": "text/plain"}
		want(plain, http.StatusUnsupportedMediaType)
		for _, path := range []string{"/alerts?open=true&state=suppressed&kind=alert.test", "/alerts/rules"} {
			a := s.get(path)
			a.wantStatus(t, http.StatusOK)
			s.ifNoneMatch(path, a.header.Get("ETag")).wantStatus(t, http.StatusNotModified)
		}
	})
}

// documentationHasNoParameters sends a parameter to what needs no token.
func documentationHasNoParameters(t *testing.T, s *server) {
	for _, path := range []string{"/openapi.json?version=3", "/docs?page=2"} {
		answer := s.send(request{method: http.MethodGet, path: path})
		answer.wantStatus(t, http.StatusUnprocessableEntity)
		if got := answer.header.Get("Dmarcd-Error"); got != "unknown_parameter" {
			t.Errorf("%s: got the code %q, want unknown_parameter", path, got)
		}
	}
}
