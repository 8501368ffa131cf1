package e2e_test

import (
	"fmt"
	"net/http"
	"testing"
)

func alertRequests(alert int64, token string) []request {
	return []request{
		changing(http.MethodGet, "/alerts", token, ""),
		changing(http.MethodGet, "/alerts/rules", token, ""),
		changing(http.MethodPut, "/alerts/rules", token, `{"min_level":"warning","quiet_hours":{"from":"22:00","to":"07:00","time_zone":"Europe/Berlin"}}`),
		changing(http.MethodPost, "/alerts/test", token, ""),
		changing(http.MethodPost, fmt.Sprintf("/alerts/%d/acknowledge", alert), token, ""),
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
		if test.State != "sent" {
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
		for _, path := range []string{"/alerts?open=true&state=sent&kind=alert.test", "/alerts/rules"} {
			a := s.get(path)
			a.wantStatus(t, http.StatusOK)
			s.ifNoneMatch(path, a.header.Get("ETag")).wantStatus(t, http.StatusNotModified)
		}
	})
}
