package webhook_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dns/dnstest"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/notify/webhook"
	"github.com/dmarcd/dmarcd/internal/outbound"
)

// event is what is delivered.
var event = dmarcd.Event{
	Seq: 7, ID: 4711, At: time.Unix(1794909761, 0), Domain: "example.com", Kind: dmarcd.PolicyWeakened,
	EventData: dmarcd.EventData{Before: "reject", After: "none"},
}

// sender returns a sender that reaches loopback, and whose secrets are not sealed.
func sender(dialer *outbound.Dialer) *webhook.Sender {
	return &webhook.Sender{
		Client: dialer.EndpointClient(nil), BaseURL: "https://dmarc.example/api", Now: time.Now,
		Open: func(_ dmarcd.Webhook, sealed []byte) ([]byte, error) { return sealed, nil },
	}
}

func loopback() *outbound.Dialer {
	return &outbound.Dialer{Resolver: dnstest.New(""), Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
}

func delivery(to string, secrets ...[]byte) dmarcd.ClaimedDelivery {
	return dmarcd.ClaimedDelivery{
		Webhook:  dmarcd.Webhook{ID: 1, URL: to, Format: dmarcd.FormatStandard, Secrets: secrets},
		Delivery: dmarcd.WebhookDelivery{ID: 2, Event: event},
	}
}

// TestSignature has deliveries verified by the reference library, with either secret of a
// rotation.
func TestSignature(t *testing.T) {
	t.Parallel()
	type received struct {
		header http.Header
		body   []byte
	}
	requests := make(chan received, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		requests <- received{r.Header, body}
	}))
	defer server.Close()
	current, old := webhook.NewSecret(), webhook.NewSecret()
	result, err := sender(loopback()).Send(t.Context(), delivery(server.URL, current, old))
	if err != nil || result.Status != http.StatusOK || result.Problem != "" {
		t.Fatalf("got %+v, %v", result, err)
	}
	got := <-requests
	for name, secret := range map[string][]byte{"the current secret": current, "the old secret": old} {
		reference := musttest.Get(standard.NewWebhook(webhook.FormatSecret(secret)))(t)
		if err := reference.Verify(got.body, got.header); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := reference.Verify(append(got.body, ' '), got.header); err == nil {
			t.Errorf("%s: another body was verified", name)
		}
	}
	other := musttest.Get(standard.NewWebhook(webhook.FormatSecret(webhook.NewSecret())))(t)
	if err := other.Verify(got.body, got.header); err == nil {
		t.Error("another secret verified the delivery")
	}
	if got.header.Get("webhook-id") != event.ID.String() {
		t.Errorf("webhook-id: got %q", got.header.Get("webhook-id"))
	}
	var body struct {
		Type, Timestamp string
		Data            struct {
			Seq  int64
			Kind string
		}
	}
	if err := json.Unmarshal(got.body, &body); err != nil || body.Type != "policy.weakened" || body.Timestamp != "2026-11-17T10:02:41+00:00" ||
		body.Data.Seq != 7 || body.Data.Kind != "policy.weakened" {
		t.Errorf("body: got %s, %v", got.body, err)
	}
}

// TestReceivers has endpoints that behave badly.
func TestReceivers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		answer  http.HandlerFunc
		status  int
		problem string // a part of it
	}{
		{"no content", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }, http.StatusNoContent, ""},
		{"fails", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }, http.StatusInternalServerError, "status 500"},
		{"redirects", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) }, 302, "redirect"},
		{"redirects and keeps the method", func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/elsewhere" {
				t.Error("the redirect was followed")
			}
			http.Redirect(w, r, "/elsewhere", http.StatusPermanentRedirect)
		}, 308, "redirect"},
		{"sends 10 MB", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.CopyN(w, zeros{}, 10<<20) }, 200, ""},
		{"sends a large header", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Large", strings.Repeat("x", 1<<20))
		}, 0, "its answer is not HTTP"},
		{"closes early", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, 0, "its answer is not HTTP"},
		{"breaks off its answer", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, 200, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(tt.answer)
			defer server.Close()
			result, err := sender(loopback()).Send(t.Context(), delivery(server.URL, webhook.NewSecret()))
			if result.Status != tt.status || (result.Problem == "") != (tt.problem == "") || !strings.Contains(result.Problem, tt.problem) {
				t.Errorf("got %+v, %v", result, err)
			}
		})
	}
}

// zeros is a reader that does not end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// TestReceiverHangs wants the end of the time for an answer to be a failure.
func TestReceiverHangs(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then the server notices that the client left
		cancel()                           // acts as the timeout
		<-r.Context().Done()
	}))
	defer server.Close()
	if result, err := sender(loopback()).Send(ctx, delivery(server.URL, webhook.NewSecret())); err == nil || result.Status != 0 || result.Problem == "" {
		t.Errorf("got %+v, %v", result, err)
	}
}

// TestRejectedAddresses wants no connection to addresses that are not public, in whatever
// form they are written or found.
func TestRejectedAddresses(t *testing.T) {
	t.Parallel()
	const zone = `
		private.example.    A    10.0.0.1
		loopback.example.   A    127.0.0.1
		both.example.       A    127.0.0.1
		both.example.       A    192.168.1.1
		six.example.        AAAA ::1
		mapped.example.     AAAA ::ffff:169.254.169.254
		metadata.example.   A    169.254.169.254
	`
	hosts := []string{
		"127.0.0.1", "127.1.2.3", "127.255.255.254", "0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.127.255.254",
		"169.254.0.1", "169.254.169.254", "172.16.0.1", "172.31.255.254", "192.0.0.1", "192.0.2.1", "192.88.99.1", "192.168.0.1", "198.18.0.1",
		"198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255", "168.63.129.16",
		"[::]", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:10.0.0.1]", "[::127.0.0.1]", "[64:ff9b::7f00:1]", "[64:ff9b:1::1]", "[100::1]",
		"[2001::1]", "[2001:db8::1]", "[2002:7f00:1::]", "[3fff::1]", "[fc00::1]", "[fd12:3456::1]", "[fe80::1]", "[fec0::1]", "[ff02::1]",
		"private.example", "loopback.example", "both.example", "six.example", "mapped.example", "metadata.example",
	}
	if len(hosts) < 40 {
		t.Fatalf("only %d forms", len(hosts))
	}
	dialer := &outbound.Dialer{Resolver: dnstest.New(zone)}
	for _, host := range hosts {
		for _, scheme := range []string{"https", "http"} {
			result, err := sender(dialer).Send(t.Context(), delivery(scheme+"://"+host+":8443/", webhook.NewSecret()))
			if result.Status != 0 || !strings.Contains(result.Problem, "private or reserved") {
				t.Errorf("%s://%s: got %+v, %v; want it refused", scheme, host, result, err)
			}
		}
	}
}

// TestErrorsHaveNoURL wants no part of a URL that may be a key in errors, which are logged.
func TestErrorsHaveNoURL(t *testing.T) {
	t.Parallel()
	for _, format := range []dmarcd.WebhookFormat{dmarcd.FormatStandard, dmarcd.FormatJSON, dmarcd.FormatSlack, dmarcd.FormatPagerDuty} {
		for _, to := range []string{"https://10.0.0.1/Zk3y?key=Zk3y&routing_key=Zk3y", "https://Zk3y:Zk3y@10.0.0.1/", "https://10.0.0.1:x/Zk3y?routing_key=Zk3y", "https://10.0.0.1/%zz/Zk3y"} {
			c := delivery(to, []byte(to))
			c.Webhook.Format = format
			if result, err := sender(loopback()).Send(t.Context(), c); err == nil || strings.Contains(err.Error()+result.Problem, "Zk3y") {
				t.Errorf("%s to %s: got %+v, %v", format, to, result, err)
			}
		}
	}
}

// TestOddHosts wants addresses in forms that only some programs read to be refused as URLs.
func TestOddHosts(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"https://2130706433/", "https://0x7f000001/", "https://0177.0.0.1/", "https://127.1/", "https://127.0.1/", "https://0x7f.1/", "https://1.2.3.4.5/",
		"https://[fe80::1%25eth0]/", "https://127.0.0.1%2f@example.com/", "https://user:pass@example.com/", "https:///path", "https://", "//example.com/",
		"ftp://example.com/", "file:///etc/passwd", "gopher://example.com/", "https://example.com:0/", "https://example.com:70000/", "https://exa mple.com/",
		"https://ex\u00e4mple.com/", "https://example.com/#fragment", "https://\uff11\uff12\uff17.0.0.1/", "javascript:alert(1)", "",
	} {
		if err := (dmarcd.Webhook{URL: text, Format: dmarcd.FormatStandard}).Validate(); err == nil {
			t.Errorf("%q: got no error", text)
		}
	}
	for _, text := range []string{"https://example.com/hooks?x=1", "http://10.0.0.1:8080/", "https://[2001:db8::1]:8443/", "https://hooks-1.a_b.example."} {
		if err := (dmarcd.Webhook{URL: text, Format: dmarcd.FormatStandard}).Validate(); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestPlainHTTP wants public hosts to be reached with TLS alone.
func TestPlainHTTP(t *testing.T) {
	t.Parallel()
	dialer := &outbound.Dialer{Resolver: dnstest.New("public.example. A 93.184.216.34")}
	result, _ := sender(dialer).Send(t.Context(), delivery("http://public.example/", webhook.NewSecret()))
	if !strings.Contains(result.Problem, "without https") {
		t.Errorf("got %+v", result)
	}
}

// TestStepThatFailed has endpoints that give no answer: the problem names the step, with no text of the
// network.
func TestStepThatFailed(t *testing.T) {
	t.Parallel()
	plain, encrypted := httptest.NewServer(nil), httptest.NewTLSServer(nil)
	defer plain.Close()
	defer encrypted.Close()
	closed := httptest.NewServer(nil)
	closed.Close()
	for name, tt := range map[string]struct{ url, want string }{
		"no such name":         {"https://gone.example/", "The name lookup failed"},
		"nothing listens":      {closed.URL, "The connection failed: nothing answers"},
		"no https":             {strings.Replace(plain.URL, "http:", "https:", 1), "The encryption failed"},
		"an unknown authority": {encrypted.URL, "The certificate of the host is not valid"},
		"a private address":    {"https://10.0.0.1/", "does not connect to private"},
	} {
		result, err := sender(loopback()).Send(t.Context(), delivery(tt.url, webhook.NewSecret()))
		if !strings.Contains(result.Problem, tt.want) || strings.Contains(result.Problem, "127.0.0.1") {
			t.Errorf("%s: got %q (%v), want %q", name, result.Problem, err, tt.want)
		}
	}
}

// TestSlowEndpoint has an endpoint that never answers.
func TestSlowEndpoint(t *testing.T) {
	t.Parallel()
	end := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-end }))
	defer server.Close()
	defer close(end)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second/4)
	defer cancel()
	result, err := sender(loopback()).Send(ctx, delivery(server.URL, webhook.NewSecret()))
	if !strings.Contains(result.Problem, "no answer within 15 seconds") {
		t.Errorf("got %q (%v), want that there was no answer", result.Problem, err)
	}
}
