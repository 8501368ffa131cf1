package service_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// TestTestsAtOnce has endpoints and the mail server of self-tests hang. Only a few tests wait for
// them.
func TestTestsAtOnce(t *testing.T) {
	t.Parallel()
	s := storetest.SQLite(t).Open(t, store.Options{})
	release, begun := make(chan struct{}), make(chan struct{}, 100)
	w := service.New(s, service.Options{
		Deliver: func(_ context.Context, c dmarcd.ClaimedDelivery) (dmarcd.DeliveryResult, error) {
			begun <- struct{}{}
			<-release
			return dmarcd.DeliveryResult{Status: 204}, nil
		},
		SendSelfTest: func(context.Context, string, string, string) ([]dmarcd.SelfTestStage, bool) {
			begun <- struct{}{}
			<-release
			return nil, false
		},
		ReportDomain: "reports.example",
	})
	acme := storetest.Team(t, s, "acme")
	musttest.Get(s.Team(acme.ID).AddDomain(t.Context(), ours, time.Now().Add(time.Hour)))(t)
	hook := musttest.Get(s.Team(acme.ID).AddWebhook(t.Context(), dmarcd.Webhook{URL: endpoint, Format: dmarcd.FormatStandard},
		func(dmarcd.Webhook) ([]byte, error) { return []byte("x"), nil }))(t)
	team := w.Team(acme.ID, service.CommandLine())
	for name, test := range map[string]struct {
		most int
		run  func() error
	}{
		"webhook":   {4, func() error { _, err := team.TestWebhook(t.Context(), hook.ID); return err }},
		"self-test": {2, func() error { _, err := team.SelfTest(t.Context(), ours); return err }},
	} {
		var group sync.WaitGroup
		for range test.most {
			group.Go(func() {
				if err := test.run(); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			})
			<-begun
		}
		var throttled *service.ThrottledError
		if err := test.run(); !errors.As(err, &throttled) || throttled.RetryAfter <= 0 {
			t.Errorf("%s: one more than %d: got %v, want to be told when to try again", name, test.most, err)
		}
		for range test.most {
			release <- struct{}{}
		}
		group.Wait()
	}
}

// TestThrottledConfirmation adds addresses until no more mail is sent. What is refused leaves
// nothing behind.
func TestThrottledConfirmation(t *testing.T) {
	t.Parallel()
	s := storetest.SQLite(t).Open(t, store.Options{})
	w := service.New(s, service.Options{
		Mail: mailer{}, BaseURL: "https://dmarc.example/api",
		SealWebhook: func(_ dmarcd.Webhook, secret []byte) ([]byte, error) { return bytes.Clone(secret), nil },
		OpenWebhook: func(_ dmarcd.Webhook, sealed []byte) ([]byte, error) { return sealed, nil },
	})
	acme := storetest.Team(t, s, "acme")
	team := w.Team(acme.ID, service.Token(1, dmarcd.ScopeWrite, "192.0.2.1"))
	added := 0
	var throttled *service.ThrottledError
	for ; throttled == nil && added < 100; added++ {
		_, _, err := team.AddWebhook(t.Context(), dmarcd.Webhook{URL: fmt.Sprintf("mailto:a%d@example.com", added), Format: dmarcd.FormatEmail})
		if err != nil && !errors.As(err, &throttled) {
			t.Fatal(err)
		}
	}
	added--
	webhooks, err := team.Webhooks(t.Context())
	if err != nil || throttled == nil || len(webhooks) != added {
		t.Fatalf("got %d webhooks, %v, after %d were added and one refused with %v", len(webhooks), err, added, throttled)
	}
	enabled := true
	if _, err := team.UpdateWebhook(t.Context(), webhooks[0].ID, service.WebhookChange{Enabled: &enabled}); !errors.As(err, &throttled) {
		t.Errorf("send the link again: got %v, want to be told when to try again", err)
	}
	entries, err := s.Team(acme.ID).Audit(t.Context(), store.AuditFilter{Actor: "token tok_1"}, store.Cursor{}, 100)
	if err != nil || len(entries) != added {
		t.Errorf("got %d audit entries, %v, want %d", len(entries), err, added)
	}
}
