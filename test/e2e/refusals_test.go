package e2e_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/internal/musttest"
)

// tooLarge is a body of one byte more than the limit, which is not JSON either.
var tooLarge = strings.Repeat("x", 64<<10+1)

// unknownToken is well-formed but unknown.
var unknownToken = mintToken("unknown")

// errorFixture contains tokens that are rejected.
type errorFixture struct {
	write, read, denied, deniedRead, revoked string
}

// newErrorFixture creates a team that is not on the whitelist, and tokens of every kind, once per
// installation.
func newErrorFixture(in *installation) errorFixture {
	in.t.Helper()
	if in.rejected != nil {
		return *in.rejected
	}
	in.do("team", "create", "denied")
	in.rejected = &errorFixture{
		write:      in.token,
		read:       in.newToken("default", "--scope", "read"),
		denied:     in.newToken("denied"),
		deniedRead: in.newToken("denied", "--scope", "read"),
		revoked:    in.newToken("default", "--name", "to be revoked"),
	}
	in.do("token", "revoke", in.tokenID("default", "to be revoked"))
	return *in.rejected
}

// everywhere returns the seven endpoints, and requests that match none.
func everywhere() []endpoint {
	return append(endpoints("example.com"),
		endpoint{http.MethodGet, "/no/such/path", false},
		endpoint{http.MethodGet, "/domains/", false},
		endpoint{http.MethodPatch, "/domains", false},
		endpoint{http.MethodOptions, "/reports", false},
	)
}

func outsidersAreUnauthorizedEverywhere(t *testing.T, s *server) {
	in := s.in
	s.add("example.com")
	cast := newErrorFixture(in)
	typo := strings.ToUpper(in.token[:20]) + strings.ToLower(in.token[20:])
	rows := []struct {
		name, token, authorization string
	}{
		{name: "no header"},
		{name: "another scheme", authorization: "Basic dXNlcjpwYXNzd29yZA=="},
		{name: "the token without a scheme", authorization: in.token},
		{name: "unknown token", token: unknownToken},
		{name: "token with a typo", token: typo},
		{name: "token with more behind it", token: in.token + "0"},
		{name: "revoked token", token: cast.revoked},
	}
	for _, row := range rows {
		for _, e := range everywhere() {
			r := e.request(row.token)
			if row.authorization != "" {
				r.header = map[string]string{"Authorization": row.authorization}
			}
			a := s.send(r)
			if a.status != http.StatusUnauthorized {
				t.Errorf("%s: %s: got status %d want 401: %s", row.name, e, a.status, a.body)
			}
			a.wantBody(t, `{"message":"Unauthorized"}`)
		}
	}
}

func schemeWordInAnyCase(t *testing.T, s *server) {
	in := s.in
	for _, scheme := range []string{"Bearer", "bearer", "BEARER"} {
		// The validator only knows the first one.
		a := s.send(request{
			method: http.MethodGet, path: "/domains", undocumented: scheme != "Bearer",
			header: map[string]string{"Authorization": scheme + " " + in.token},
		})
		if a.status != http.StatusOK {
			t.Errorf("%s: got status %d want 200", scheme, a.status)
		}
	}
}

func teamOffTheWhitelistIsForbiddenEverywhere(t *testing.T, s *server) {
	in := s.in
	s.add("example.com")
	cast := newErrorFixture(in)
	for name, token := range map[string]string{"write": cast.denied, "read": cast.deniedRead} {
		for _, e := range everywhere() {
			if a := s.send(e.request(token)); a.status != http.StatusForbidden {
				t.Errorf("%s token: %s: got status %d want 403: %s", name, e, a.status, a.body)
			}
		}
	}
}

func readTokenMayOnlyRead(t *testing.T, s *server) {
	in := s.in
	s.add("example.com")
	cast := newErrorFixture(in)
	for _, e := range endpoints("example.com") {
		want := http.StatusOK
		if e.writes {
			want = http.StatusForbidden
		}
		s.send(e.request(cast.read)).wantStatus(t, want)
	}
	if got := s.list(); len(got) != 1 {
		t.Errorf("got the domains %v want example.com alone", got)
	}
}

// orderOfRefusals sends requests with several errors; the first in the defined order
// must be reported.
func orderOfRefusals(t *testing.T, s *server) {
	in := s.in
	s.add("example.com")
	cast := newErrorFixture(in)
	text := map[string]string{"Content-Type": "text/plain"}
	packed := map[string]string{"Content-Type": "application/json", "Content-Encoding": "gzip"}
	json := jsonType()
	rows := []struct {
		name         string
		token        string
		method, path string
		header       map[string]string
		body         string
		want         int
	}{
		{"401 before 404 of the path", unknownToken, "GET", "/no/such", nil, "", 401},
		{"401 before 405", unknownToken, "PUT", "/domains", nil, "", 401},
		{"401 before 415 and 413", unknownToken, "POST", "/domains", text, tooLarge, 401},
		{"401 before 422", unknownToken, "GET", "/domains?limit=0", nil, "", 401},
		{"403 of the whitelist before 404 of the path", cast.denied, "GET", "/no/such", nil, "", 403},
		{"403 of the whitelist before 405", cast.denied, "PUT", "/domains", nil, "", 403},
		{"403 of the whitelist before 415 and 413", cast.denied, "POST", "/domains", text, tooLarge, 403},
		{"403 of the whitelist before 422", cast.denied, "GET", "/reports?from=x", nil, "", 403},
		{"403 of the whitelist before 404 of the domain", cast.denied, "GET", "/domains/unknown.example", nil, "", 403},
		{"404 of the path before 403 of the token", cast.read, "POST", "/no/such", text, tooLarge, 404},
		{"405 before 403 of the token", cast.read, "PUT", "/domains", text, tooLarge, 405},
		{"405 before 415", cast.write, "PUT", "/domains", text, tooLarge, 405},
		{"405 before 404 of the domain", cast.write, "PUT", "/domains/unknown.example", nil, "", 405},
		{"405 of a verification", cast.write, "GET", "/domains/unknown.example/verify", nil, "", 405},
		{"403 of the token before 415", cast.read, "POST", "/domains", text, tooLarge, 403},
		{"403 of the token before 413", cast.read, "POST", "/domains", json, tooLarge, 403},
		{"403 of the token before 400", cast.read, "POST", "/domains", json, "{", 403},
		{"403 of the token before 422", cast.read, "POST", "/domains", json, "{}", 403},
		{"403 of the token before 404 of the domain", cast.read, "DELETE", "/domains/unknown.example", nil, "", 403},
		{"403 of the token before 404 of a verification", cast.read, "POST", "/domains/unknown.example/verify", nil, "", 403},
		{"403 of the token before 409", cast.read, "POST", "/domains", json, `{"domain":"example.com"}`, 403},
		{"415 of the type before 413", cast.write, "POST", "/domains", text, tooLarge, 415},
		{"415 of the encoding before 413", cast.write, "POST", "/domains", packed, tooLarge, 415},
		{"415 before 400", cast.write, "POST", "/domains", text, "{", 415},
		{"415 without a body", cast.write, "POST", "/domains", nil, "", 415},
		{"415 before 422", cast.write, "POST", "/domains", text, "{}", 415},
		{"415 before 409", cast.write, "POST", "/domains", text, `{"domain":"example.com"}`, 415},
		{"413 before 400", cast.write, "POST", "/domains", json, tooLarge, 413},
		{"413 before 422", cast.write, "POST", "/domains", json, "{}" + strings.Repeat(" ", 64<<10), 413},
		{"413 before 409", cast.write, "POST", "/domains", json, `{"domain":"example.com"}` + strings.Repeat(" ", 64<<10), 413},
		{"400 before 422", cast.write, "POST", "/domains", json, `{"domain":5} more`, 400},
		{"400 before 422, no object", cast.write, "POST", "/domains", json, `[1] more`, 400},
		{"400 before 409", cast.write, "POST", "/domains", json, `{"domain":"example.com"} more`, 400},
		{"422 of the query before 404 of the domain", cast.write, "GET", "/reports/unknown.example?from=x", nil, "", 422},
		{"422 of the query before 404 of a bad name", cast.write, "GET", "/reports/bad_name?to=x", nil, "", 422},
		{"404 of the domain", cast.write, "GET", "/reports/unknown.example?from=2026-01-01", nil, "", 404},
		{"409 comes last", cast.write, "POST", "/domains", json, `{"domain":"EXAMPLE.com.","active":0}`, 409},
	}
	for _, row := range rows {
		a := s.send(request{method: row.method, path: row.path, token: row.token, header: row.header, body: row.body})
		if a.status != row.want {
			t.Errorf("%s: got status %d want %d: %s", row.name, a.status, row.want, a.body)
		}
	}
}

func wrongMethodReportsTheRightOnes(t *testing.T, s *server) {
	in := s.in
	s.add("example.com")
	rows := map[string][]string{
		"/domains":                    {"PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "FROBNICATE"},
		"/domains/example.com":        {"PUT", "PATCH", "POST", "OPTIONS"},
		"/domains/example.com/verify": {"GET", "HEAD", "PUT", "DELETE", "OPTIONS"},
		"/reports":                    {"PUT", "DELETE", "OPTIONS"},
		"/reports/example.com":        {"POST", "PUT", "DELETE", "OPTIONS"},
	}
	for path, methods := range rows {
		for _, method := range methods {
			// The client compares Allow with the document.
			s.send(request{method: method, path: path, token: in.token}).wantStatus(t, http.StatusMethodNotAllowed)
		}
	}
}

// malformedRequests sends what is not HTTP. net/http answers it with a text, as the document says.
// OPTIONS * is answered as an unknown path.
func malformedRequests(t *testing.T, s *server) {
	const host = "Host: dmarc.example\r\n"
	for _, row := range []struct {
		name, sent string
		status     int
		json       bool
	}{
		{"no request line", "hello\r\n\r\n", 400, false},
		{"a header without a colon", "GET / HTTP/1.1\r\n" + host + "x\r\n\r\n", 400, false},
		{"two lengths", "POST / HTTP/1.1\r\n" + host + "Content-Length: 1\r\nContent-Length: 2\r\n\r\n", 400, false},
		{"no host", "GET / HTTP/1.1\r\n\r\n", 400, false},
		{"a large header", "GET / HTTP/1.1\r\n" + host + "X: " + strings.Repeat("x", 80<<10) + "\r\n\r\n", 431, false},
		{"another expectation", "GET / HTTP/1.1\r\n" + host + "Expect: a miracle\r\n\r\n", 417, false},
		{"another transfer encoding", "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: br\r\n\r\n", 501, false},
		{"another version", "GET / HTTP/3.0\r\n" + host + "\r\n", 505, false},
		{"every path", "OPTIONS * HTTP/1.1\r\n" + host + "\r\n", 404, true},
	} {
		connection := musttest.Get(net.Dial("tcp", s.HTTP))(t)
		_, _ = io.WriteString(connection, row.sent) // the server may answer before it has read all
		received, err := http.ReadResponse(bufio.NewReader(connection), nil)
		if err != nil {
			t.Errorf("%s: %v", row.name, err)
		} else {
			coded := received.Header.Get("Content-Type") == "application/json" && received.Header.Get("Dmarcd-Error") != ""
			if received.StatusCode != row.status || coded != row.json {
				t.Errorf("%s: got status %d, JSON with a code: %t; want %d, %t", row.name, received.StatusCode, coded, row.status, row.json)
			}
			_ = received.Body.Close() // the header was read
		}
		_ = connection.Close() // the answer was read
	}
}
