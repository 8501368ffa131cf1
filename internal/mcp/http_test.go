package mcp_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`

// send sends a message over HTTP, with more fields in the header.
func (in *installation) send(t *testing.T, method, secret, body string, header ...string) (status int, answer string, fields http.Header) {
	t.Helper()
	r := musttest.Get(http.NewRequestWithContext(t.Context(), method, in.url, strings.NewReader(body)))(t)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if secret != "" {
		r.Header.Set("Authorization", "Bearer "+secret)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	got, err := http.DefaultClient.Do(r)
	musttest.Do(t, err)
	defer func() { _ = got.Body.Close() }() // read to the end
	text := musttest.Get(io.ReadAll(got.Body))(t)
	return got.StatusCode, string(text), got.Header
}

func TestHTTP(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		in := install(t, db, 0)
		secret, _ := in.token(t, dmarcd.ScopeRead)
		for _, test := range []struct {
			name, method, secret, body string
			header                     []string
			status                     int
			want                       string
		}{
			{"a message", "POST", secret, ping, nil, http.StatusOK, `"result":{}`},
			{"our own page", "POST", secret, ping, []string{"Origin", "http://dmarc.example"}, http.StatusOK, `"result":{}`},
			{"an allowed origin", "POST", secret, ping, []string{"Origin", allowed}, http.StatusOK, `"result":{}`},
			{"another origin", "POST", secret, ping, []string{"Origin", "http://evil.example"}, http.StatusForbidden, `"code":"forbidden"`},
			{"no origin", "POST", secret, ping, []string{"Origin", "null"}, http.StatusForbidden, `"code":"forbidden"`},
			{"no token", "POST", "", ping, nil, http.StatusUnauthorized, `"code":"unauthorized"`},
			{"a cookie", "POST", "", ping, []string{"Cookie", "session=" + secret}, http.StatusUnauthorized, `"code":"unauthorized"`},
			{"a wrong token", "POST", secret + "x", ping, nil, http.StatusUnauthorized, `"code":"unauthorized"`},
			{"a large body", "POST", secret, `{"a":"` + strings.Repeat("x", 64<<10) + `"}`, nil, http.StatusRequestEntityTooLarge, `"code":"body_too_large"`},
			{"a batch", "POST", secret, " [" + ping + "," + ping + "]", nil, http.StatusBadRequest, `"code":"bad_request"`},
			{"no JSON", "POST", secret, "hello", nil, http.StatusBadRequest, `"code":"bad_request"`},
			{"another media type", "POST", secret, ping, []string{"Content-Type", "text/plain"}, http.StatusUnsupportedMediaType, ""},
			{"a stream of the server", "GET", secret, "", nil, http.StatusMethodNotAllowed, `"code":"method_not_allowed"`},
			{"the end of a session", "DELETE", secret, "", nil, http.StatusMethodNotAllowed, `"code":"method_not_allowed"`},
		} {
			status, body, fields := in.send(t, test.method, test.secret, test.body, test.header...)
			if status != test.status || !strings.Contains(body, test.want) {
				t.Errorf("%s: got status %d and %s, want %d and %s", test.name, status, body, test.status, test.want)
			}
			if fields.Get("Mcp-Session-Id") != "" || len(fields.Values("Set-Cookie")) > 0 {
				t.Errorf("%s: got a session, want none", test.name)
			}
			if challenge := fields.Get("WWW-Authenticate"); (status == http.StatusUnauthorized) != strings.HasPrefix(challenge, "Bearer") {
				t.Errorf("%s: got WWW-Authenticate %q", test.name, challenge)
			}
		}
	})
}

// TestSubscriptions asks for what would hold a request open.
func TestSubscriptions(t *testing.T) {
	t.Parallel()
	in := install(t, storetest.SQLite(t), 0)
	secret, _ := in.token(t, dmarcd.ScopeRead)
	body := `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{` +
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`
	status, got, _ := in.send(t, "POST", secret, body, "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "subscriptions/listen")
	if !strings.Contains(got, `"code":-32601`) {
		t.Errorf("got status %d and %s, want an error", status, got)
	}
}

// TestRevokedToken revokes the token of a client that is connected.
func TestRevokedToken(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		in := install(t, db, 0)
		secret, id := in.token(t, dmarcd.ScopeWrite)
		session := connect(t, &sdk.StreamableClientTransport{Endpoint: in.url, HTTPClient: &http.Client{Transport: bearer(secret)}})
		list := &sdk.CallToolParams{Name: "list_domains"}
		musttest.Get(session.CallTool(t.Context(), list))(t)
		musttest.Do(t, in.store.Team(in.team).RevokeToken(t.Context(), id))
		// The authenticator remembers a token for less than a second.
		for deadline := time.Now().Add(time.Minute); ; {
			status, _, _ := in.send(t, "POST", secret, ping)
			if status == http.StatusUnauthorized {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("got status %d, want 401", status)
			}
		}
		if _, err := session.CallTool(t.Context(), list); err == nil {
			t.Error("a call with a revoked token: got no error")
		}
	})
}

func TestLimits(t *testing.T) {
	t.Parallel()
	in := install(t, storetest.SQLite(t), 1)
	secret, _ := in.token(t, dmarcd.ScopeRead)
	for range 10 {
		if status, _, fields := in.send(t, "POST", secret, ping); status == http.StatusTooManyRequests {
			if fields.Get("Retry-After") == "" {
				t.Error("got no Retry-After")
			}
			musttest.Do(t, in.store.SetAPI(t.Context(), "example.com", false))
			other, _ := in.token(t, dmarcd.ScopeRead)
			if status, body, _ := in.send(t, "POST", other, ping); status != http.StatusForbidden || !strings.Contains(body, "team_not_allowed") {
				t.Errorf("a team that is not on the whitelist: got status %d and %s", status, body)
			}
			return
		}
	}
	t.Error("ten requests at once: got no 429")
}
