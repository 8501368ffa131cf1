package e2e_test

import (
	"net/http"
	"net/url"
	"os/exec"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/test/daemon"
)

// bearer sends a token with every request.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// assist connects an assistant, which finds the domain of the team with a tool. It returns the names of
// the tools.
func assist(t *testing.T, transport sdk.Transport) (tools []string) {
	t.Helper()
	session := musttest.Get(sdk.NewClient(&sdk.Implementation{Name: "e2e", Version: "1"}, nil).Connect(t.Context(), transport, nil))(t)
	defer func() { _ = session.Close() }() // the answers are here
	for _, tool := range musttest.Get(session.ListTools(t.Context(), nil))(t).Tools {
		tools = append(tools, tool.Name)
	}
	got := musttest.Get(session.CallTool(t.Context(), &sdk.CallToolParams{Name: "list_domains"}))(t)
	if text := got.Content[0].(*sdk.TextContent).Text; got.IsError || !strings.Contains(text, "example.com") {
		t.Errorf("list_domains: got %s, want example.com", text)
	}
	return tools
}

// TestAssistants uses the daemon and the command as assistants do, and then the daemon as they must not.
func TestAssistants(t *testing.T) {
	each(t, "", func(t *testing.T, in *installation) {
		s := in.serve()
		in.do("domain", "add", "--team", "default", "example.com")
		reading, writing := in.newToken("default", "--name", "reading", "--scope", "read"), in.newToken("default", "--scope", "write")
		overHTTP := func(token string) sdk.Transport {
			return &sdk.StreamableClientTransport{Endpoint: "http://" + s.HTTP + "/mcp", HTTPClient: &http.Client{Transport: bearer(token)}}
		}
		onStreams := func(flags ...string) sdk.Transport {
			binary := in.binary(nil)
			command := exec.CommandContext(t.Context(), binary.Program, append([]string{"mcp", "--team", "default"}, flags...)...)
			command.Env, command.Dir = binary.Settings, t.TempDir()
			return &sdk.CommandTransport{Command: command}
		}
		for _, test := range []struct {
			name      string
			transport sdk.Transport
			writes    bool
		}{
			{"HTTP", overHTTP(reading), false},
			{"HTTP, a token that may write", overHTTP(writing), true},
			{"streams", onStreams(), false},
			{"streams, --write", onStreams("--write"), true},
		} {
			if tools := assist(t, test.transport); !slices.Contains(tools, "get_check") || slices.Contains(tools, "verify_domain") != test.writes {
				t.Errorf("%s: got tools %v", test.name, tools)
			}
		}

		post := func(path, body string, header http.Header) (status int, cookies []*http.Cookie) {
			r := musttest.Get(http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.HTTP+path, strings.NewReader(body)))(t)
			r.Header = header
			received, err := s.client.Do(r)
			musttest.Do(t, err)
			_ = received.Body.Close() // only the header counts
			return received.StatusCode, received.Cookies()
		}
		ping := func(name, value string, more ...string) int {
			header := http.Header{name: {value}, "Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
			for i := 0; i < len(more); i += 2 {
				header.Set(more[i], more[i+1])
			}
			status, _ := post("/mcp", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, header)
			return status
		}
		if got := ping("Authorization", "Bearer "+reading, "Origin", "http://evil.example"); got != http.StatusForbidden {
			t.Errorf("the page of another origin: got status %d want 403", got)
		}

		// The session of a member is for the pages.
		link := musttest.Get(url.Parse(strings.TrimSpace(in.do("user", "invite", "ann@example.com", "--team", "default", "--role", "owner"))))(t)
		status, cookies := post(link.Path, url.Values{"email": {"ann@example.com"}, "password": {"correct horse battery staple"}}.Encode(),
			http.Header{"Content-Type": {"application/x-www-form-urlencoded"}, "Origin": {"http://" + s.HTTP}})
		if len(cookies) == 0 {
			t.Fatalf("the invitation: got status %d and no session", status)
		}
		if got := ping("Cookie", cookies[0].Name+"="+cookies[0].Value); got != http.StatusUnauthorized {
			t.Errorf("a cookie: got status %d want 401", got)
		}

		in.do("token", "revoke", in.tokenID("default", "reading"))
		daemon.Eventually(t, answerLimit, "the revoked token is refused", func() bool { return ping("Authorization", "Bearer "+reading) == http.StatusUnauthorized })
		if got := ping("Authorization", "Bearer "+writing); got != http.StatusOK {
			t.Errorf("another token of the team: got status %d want 200", got)
		}
	})
}
