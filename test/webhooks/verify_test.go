// Package webhooks verifies deliveries with the reference library of Standard Webhooks for
// JavaScript, the npm package standardwebhooks, run by Node.js. The one for Go is used by the
// tests of package webhook. scripts/need-node.sh installs what it needs.
package webhooks_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dns/dnstest"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/notify/webhook"
	"github.com/dmarcd/dmarcd/internal/outbound"
)

// delivered is a delivery as a receiver has it.
type delivered struct {
	Secret  string            `json:"secret"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
}

// TestSignature has deliveries in both signed formats verified by the reference library,
// with either secret of a rotation. What was changed must not be verified.
func TestSignature(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Log("-short: Node.js is not started")
		return
	}
	var rows []delivered
	var wanted []bool
	for _, format := range []dmarcd.WebhookFormat{dmarcd.FormatStandard, dmarcd.FormatJSON} {
		current, old := webhook.NewSecret(), webhook.NewSecret()
		got := deliver(t, format, current, old)
		add := func(verified bool, secret []byte, change func(*delivered)) {
			row := delivered{Secret: webhook.FormatSecret(secret), Headers: map[string]string{}, Body: got.Body}
			for name, value := range got.Headers {
				row.Headers[name] = value
			}
			change(&row)
			rows, wanted = append(rows, row), append(wanted, verified)
		}
		nothing := func(*delivered) {}
		add(true, current, nothing)
		add(true, old, nothing)
		add(false, webhook.NewSecret(), nothing)
		add(false, current, func(d *delivered) { d.Body += " " })
		add(false, current, func(d *delivered) { d.Headers["webhook-id"] += "x" })
		add(false, current, func(d *delivered) { d.Headers["webhook-timestamp"] = "1794909761" })
	}
	input := musttest.Get(json.Marshal(rows))(t)
	node := exec.CommandContext(t.Context(), "node", "verify.mjs")
	node.Stdin = bytes.NewReader(input)
	var complaints bytes.Buffer
	node.Stderr = &complaints
	output, err := node.Output()
	if err != nil {
		t.Fatalf("node (scripts/need-node.sh installs what it needs): %v\n%s", err, &complaints)
	}
	var results []string
	if err := json.Unmarshal(output, &results); err != nil || len(results) != len(rows) {
		t.Fatalf("got %s, %v", output, err)
	}
	for i, problem := range results {
		if (problem == "") != wanted[i] {
			t.Errorf("delivery %d: got the problem %q, want it verified: %t", i, problem, wanted[i])
		}
	}
}

// deliver sends an event to a server of the test, signed with secrets.
func deliver(t *testing.T, format dmarcd.WebhookFormat, secrets ...[]byte) delivered {
	t.Helper()
	requests := make(chan delivered, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got := delivered{Headers: map[string]string{}, Body: string(body)}
		for name := range r.Header {
			got.Headers[strings.ToLower(name)] = r.Header.Get(name)
		}
		requests <- got
	}))
	defer server.Close()
	dialer := &outbound.Dialer{Resolver: dnstest.New(""), Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	sender := &webhook.Sender{
		Client: dialer.EndpointClient(nil), BaseURL: "https://dmarc.example/api", Now: time.Now,
		Open: func(_ dmarcd.Webhook, sealed []byte) ([]byte, error) { return sealed, nil },
	}
	result, err := sender.Send(t.Context(), dmarcd.ClaimedDelivery{
		Webhook: dmarcd.Webhook{ID: 1, URL: server.URL, Format: format, Secrets: secrets},
		Delivery: dmarcd.WebhookDelivery{ID: 2, Event: dmarcd.Event{
			Seq: 7, ID: 4711, At: time.Now(), Domain: "bücher.example", Kind: dmarcd.PolicyWeakened,
			EventData: dmarcd.EventData{Before: "reject", After: "none — “quoted”"},
		}},
	})
	if err != nil || result.Problem != "" {
		t.Fatalf("got %+v, %v", result, err)
	}
	return <-requests
}
