package chat_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/goldentest"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/notify/chat"
)

var formats = []dmarcd.WebhookFormat{dmarcd.FormatSlack, dmarcd.FormatTeams, dmarcd.FormatDiscord, dmarcd.FormatPagerDuty}

const (
	baseURL  = "https://dmarc.example/api"
	endpoint = "https://hooks.example/v2/enqueue?routing_key=R0UT1NG&region=eu"
	// hostile is what a reporter or the owner of a zone may write.
	hostile = "<!channel> @everyone <https://evil.example|click> [click](https://evil.example) ```*bold*``` \"quoted\"\n# heading"
)

func event(kind dmarcd.EventKind, domain string, data dmarcd.EventData) dmarcd.Event {
	return dmarcd.Event{Seq: 7, ID: 4711, At: time.Unix(1794909761, 0), Domain: domain, Kind: kind, EventData: data}
}

// TestMessages compares the messages about some events with golden files.
func TestMessages(t *testing.T) {
	t.Parallel()
	for name, e := range map[string]dmarcd.Event{
		"weakened": event(dmarcd.PolicyWeakened, "example.com", dmarcd.EventData{Before: "reject", After: "none"}),
		"changed":  event(dmarcd.RecordChanged, "example.com", dmarcd.EventData{Before: "v=DMARC1; p=none", After: "v=DMARC1; p=reject"}),
		"resolved": event(dmarcd.FindingResolved, "example.com", dmarcd.EventData{Finding: "spf.lookups", Before: "SPF needs 12 lookups."}),
		"hostile":  event(dmarcd.HeldReport, "example.com", dmarcd.EventData{Report: 9, Organization: hostile, Before: hostile + "!", Reason: hostile}),
		"test":     event(dmarcd.WebhookTest, "", dmarcd.EventData{Webhook: 1}),
	} {
		for _, format := range formats {
			to, body, err := chat.Message(format, e, baseURL, endpoint)
			musttest.Do(t, err)
			want := endpoint
			if format == dmarcd.FormatPagerDuty {
				want = "https://hooks.example/v2/enqueue?region=eu"
			}
			if to != want {
				t.Errorf("%s: posted to %s, want %s", format, to, want)
			}
			golden(t, string(format)+"-"+name+".golden.json", body)
		}
	}
}

func golden(t *testing.T, name string, body []byte) {
	t.Helper()
	var got bytes.Buffer
	musttest.Do(t, json.Indent(&got, body, "", "  "))
	goldentest.Check(t, "testdata/"+name, got.String()+"\n")
}

// TestNoFormatting wants texts of outsiders to have no meaning in the markup of a service.
func TestNoFormatting(t *testing.T) {
	t.Parallel()
	e := event(dmarcd.HeldReport, "example.com", dmarcd.EventData{Organization: hostile, Before: hostile + "!", Reason: hostile})
	for format, forbidden := range map[dmarcd.WebhookFormat][]string{
		dmarcd.FormatSlack:   {"<!channel>", "<https://evil"},
		dmarcd.FormatTeams:   {`"TextBlock"`},
		dmarcd.FormatDiscord: {"](https://evil.example)\\n", "```*bold*```"},
	} {
		_, body, err := chat.Message(format, e, baseURL, endpoint)
		musttest.Do(t, err)
		var plain bytes.Buffer
		encoder := json.NewEncoder(&plain)
		encoder.SetEscapeHTML(false)
		var message any
		musttest.Do(t, json.Unmarshal(body, &message))
		if m, ok := message.(map[string]any); ok && format == dmarcd.FormatSlack {
			// plain_text has no markup.
			m["blocks"].([]any)[0].(map[string]any)["text"] = nil //nolint:forcetypeassert // it panics, and the test fails
		}
		musttest.Do(t, encoder.Encode(message))
		for _, text := range forbidden {
			if strings.Contains(plain.String(), text) {
				t.Errorf("%s: got %q in %s", format, text, plain.String())
			}
		}
	}
}

// TestIncidentIsResolved wants what resolves a problem to have the key of the problem.
func TestIncidentIsResolved(t *testing.T) {
	t.Parallel()
	for _, pair := range [][2]dmarcd.EventKind{
		{dmarcd.FindingAppeared, dmarcd.FindingResolved}, {dmarcd.PolicyWeakened, dmarcd.PolicyStrengthened}, {dmarcd.RecordRemoved, dmarcd.RecordAppeared},
	} {
		var keys, actions []string
		for _, kind := range pair {
			_, body, err := chat.Message(dmarcd.FormatPagerDuty, event(kind, "example.com", dmarcd.EventData{Finding: "spf.lookups"}), baseURL, endpoint)
			musttest.Do(t, err)
			var message struct {
				Key    string `json:"dedup_key"`
				Action string `json:"event_action"`
			}
			musttest.Do(t, json.Unmarshal(body, &message))
			keys, actions = append(keys, message.Key), append(actions, message.Action)
		}
		if keys[0] != keys[1] || actions[0] != "trigger" || actions[1] != "resolve" {
			t.Errorf("%v: got the keys %q and the actions %q", pair, keys, actions)
		}
	}
}

// length returns how many characters the texts of a document have.
func length(document any) (n int) {
	switch d := document.(type) {
	case string:
		return utf8.RuneCountInString(d)
	case []any:
		for _, item := range d {
			n += length(item)
		}
	case map[string]any:
		for _, item := range d {
			n += length(item)
		}
	}
	return n
}

// TestLongTexts wants messages within the limits of the services, whatever the length of a
// text.
func TestLongTexts(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("&ä`\\", 100_000)
	e := event(dmarcd.RecordChanged, "example.com", dmarcd.EventData{Before: long, After: long + "!", Reason: long + "?"})
	for format, limit := range map[dmarcd.WebhookFormat]int{
		dmarcd.FormatSlack: 40_000, dmarcd.FormatTeams: 14_000, dmarcd.FormatDiscord: 6000,
	} {
		_, body, err := chat.Message(format, e, baseURL, endpoint)
		var plain any
		if err == nil {
			err = json.Unmarshal(body, &plain)
		}
		if n := length(plain); err != nil || n > limit {
			t.Errorf("%s: got %d characters, %v; want at most %d", format, n, err, limit)
		}
	}
}
