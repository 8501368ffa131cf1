package webhook_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/notify/webhook"
	"github.com/dmarcd/dmarcd/internal/outbound"
	"github.com/dmarcd/dmarcd/internal/phrase"
)

// TestFormats sends an event in each format to a server, and reads what arrives.
func TestFormats(t *testing.T) {
	t.Parallel()
	type received struct {
		path, query string
		header      http.Header
		body        []byte
	}
	requests := make(chan received, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		requests <- received{r.URL.Path, r.URL.RawQuery, r.Header, body}
	}))
	defer server.Close()
	secret := webhook.NewSecret()
	summary := phrase.Event(event)
	for _, tt := range []struct {
		format   dmarcd.WebhookFormat
		endpoint string // below that of the server
		query    string
		signed   bool
		message  func(body map[string]any) any
		want     any
	}{
		{dmarcd.FormatStandard, "/hook", "", true, func(b map[string]any) any { return b["type"] }, "policy.weakened"},
		{dmarcd.FormatJSON, "/hook", "", true, func(b map[string]any) any { return b["summary"] }, summary},
		{dmarcd.FormatSlack, "/services/T0/B0/secret", "", false, func(b map[string]any) any { return b["text"] }, summary},
		{dmarcd.FormatTeams, "/workflows/1?sig=secret", "sig=secret", false, func(b map[string]any) any { return b["type"] }, "message"},
		{dmarcd.FormatDiscord, "/api/webhooks/1/secret", "", false, func(b map[string]any) any { return len(b["embeds"].([]any)) }, 1}, //nolint:forcetypeassert // it panics, and the test fails
		{dmarcd.FormatPagerDuty, "/v2/enqueue?routing_key=secret", "", false, func(b map[string]any) any { return b["routing_key"] }, "secret"},
	} {
		c := delivery(server.URL+tt.endpoint, secret)
		c.Webhook.Format = tt.format
		if !tt.signed {
			c.Webhook.Secrets = [][]byte{[]byte(c.Webhook.URL)}
			c.Webhook = c.Webhook.Masked()
			if strings.Contains(c.Webhook.URL, "secret") {
				t.Errorf("%s: the URL is shown as %s", tt.format, c.Webhook.URL)
			}
		}
		result, err := sender(loopback()).Send(t.Context(), c)
		if err != nil || result.Problem != "" {
			t.Fatalf("%s: got %+v, %v", tt.format, result, err)
		}
		got := <-requests
		path, _, _ := strings.Cut(tt.endpoint, "?")
		if got.path != path || got.query != tt.query {
			t.Errorf("%s: arrived at %s?%s", tt.format, got.path, got.query)
		}
		var body map[string]any
		if err := json.Unmarshal(got.body, &body); err != nil || tt.message(body) != tt.want {
			t.Errorf("%s: got %s, %v", tt.format, got.body, err)
		}
		reference := musttest.Get(standard.NewWebhook(webhook.FormatSecret(secret)))(t)
		if err := reference.Verify(got.body, got.header); (err == nil) != tt.signed {
			t.Errorf("%s: verified with %v, want it signed: %v", tt.format, err, tt.signed)
		}
	}
}

// TestFormatsReject wants redirects and private addresses to be refused in each format.
func TestFormatsReject(t *testing.T) {
	t.Parallel()
	var followed atomic.Bool
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { followed.Store(true) }))
	defer elsewhere.Close()
	server := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusPermanentRedirect))
	defer server.Close()
	for _, format := range dmarcd.WebhookFormats() {
		if format == dmarcd.FormatEmail {
			continue // package mail sends it
		}
		for _, tt := range []struct {
			endpoint, problem string
		}{{server.URL, "redirect"}, {"https://10.0.0.1/?" + url.Values{"routing_key": {"x"}}.Encode(), "private or reserved"}} {
			c := delivery(tt.endpoint, []byte(tt.endpoint))
			c.Webhook.Format = format
			if result, err := sender(loopback()).Send(t.Context(), c); !strings.Contains(result.Problem, tt.problem) {
				t.Errorf("%s to %s: got %+v, %v", format, tt.endpoint, result, err)
			}
		}
	}
	if followed.Load() {
		t.Error("a redirect was followed")
	}
}

// TestErrorsHaveNoSecrets wants the URL of a chat service, which is its secret, not to be in an
// error: errors are logged.
func TestErrorsHaveNoSecrets(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(nil)
	server.Close() // nothing listens there any more
	for _, endpoint := range []string{server.URL + "/services/T0/secret?routing_key=secret", "https://10.0.0.1/secret?sig=secret"} {
		for _, format := range []dmarcd.WebhookFormat{dmarcd.FormatStandard, dmarcd.FormatSlack, dmarcd.FormatPagerDuty} {
			c := delivery(endpoint, []byte(endpoint))
			c.Webhook.Format = format
			if _, err := sender(loopback()).Send(t.Context(), c); err == nil || strings.Contains(err.Error(), "secret") {
				t.Errorf("%s: got %v, want an error without the URL", format, err)
			}
		}
	}
}

// rebinding resolves a name to a public address first, and to loopback after that.
type rebinding struct{ asked atomic.Int64 }

func (r *rebinding) Resolve(_ context.Context, q dns.Question) dns.Answer {
	if q.Type != dns.A {
		return dns.Answer{Outcome: dns.NoData}
	}
	address := "127.0.0.1"
	if r.asked.Add(1) == 1 {
		address = "93.184.216.34"
	}
	return dns.Answer{Outcome: dns.Data, Records: []dns.Record{{Type: dns.A, Addr: netip.MustParseAddr(address)}}}
}

// TestRebinding wants the address that is dialled to be checked, whatever the name resolved
// to before.
func TestRebinding(t *testing.T) {
	t.Parallel()
	var dialled []string
	dialer := &outbound.Dialer{Resolver: &rebinding{}, Connect: func(_ context.Context, _, address string) (net.Conn, error) {
		dialled = append(dialled, address)
		return nil, errors.New("not connected in a test")
	}}
	for _, want := range []string{"its answer is not HTTP", "private or reserved", "private or reserved"} {
		result, _ := sender(dialer).Send(t.Context(), delivery("https://rebind.example/", webhook.NewSecret()))
		if !strings.Contains(result.Problem, want) {
			t.Errorf("got %+v, want %q", result, want)
		}
	}
	if len(dialled) != 1 || dialled[0] != "93.184.216.34:443" {
		t.Errorf("dialled %v, want the public address alone", dialled)
	}
}
