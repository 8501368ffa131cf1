package e2e_test

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
)

// misplacedTokenIsNotRepeated sends a token in wrong places and searches the answers
// for it. finish searches everything else.
func misplacedTokenIsNotRepeated(t *testing.T, s *server) {
	in := s.in
	secret := in.newToken("default", "--name", "misplaced")
	basic := base64.StdEncoding.EncodeToString([]byte("user:" + secret))
	rows := []struct {
		name string
		request
	}{
		{"in the query", request{method: http.MethodGet, path: "/domains?access_token=" + secret}},
		{"in the query, with a good token", request{method: http.MethodGet, path: "/domains?limit=" + secret, token: in.token}},
		{"as a day", request{method: http.MethodGet, path: "/reports?from=" + secret, token: in.token}},
		{"as a path", request{method: http.MethodGet, path: "/" + secret, token: in.token}},
		{"as a domain", request{method: http.MethodGet, path: "/domains/" + secret, token: in.token}},
		{"as a domain to verify", request{method: http.MethodPost, path: "/domains/" + secret + "/verify", token: in.token}},
		{"as a method", request{method: secret, path: "/domains", token: in.token}},
		{"as a name", adding(in.token, secret)},
		{"as a body", request{method: http.MethodPost, path: "/domains", token: in.token, body: secret, header: jsonType()}},
		{"as a media type", request{method: http.MethodPost, path: "/domains", token: in.token, body: "{}", header: map[string]string{"Content-Type": secret}}},
		{"as a request id", request{method: http.MethodGet, path: "/domains", token: in.token, header: map[string]string{"X-Request-Id": secret}}},
		{"as a user agent", request{method: http.MethodGet, path: "/domains", token: in.token, header: map[string]string{"User-Agent": secret}}},
		{"without a scheme", request{method: http.MethodGet, path: "/domains", header: map[string]string{"Authorization": secret}}},
		{"in another scheme", request{method: http.MethodGet, path: "/domains", header: map[string]string{"Authorization": "Basic " + basic}}},
		{"in a cookie", request{method: http.MethodGet, path: "/domains", header: map[string]string{"Cookie": "token=" + secret}}},
	}
	for _, row := range rows {
		a := s.send(row.request)
		text := a.text()
		for name, values := range a.header {
			text += name + strings.Join(values, "")
		}
		if strings.Contains(text, secret) {
			t.Errorf("%s: the answer repeats the token", row.name)
		}
	}
	if strings.Contains(s.Log(), basic) {
		t.Error("the log holds an Authorization header")
	}
}
