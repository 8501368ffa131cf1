package notify_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/notify"
	"github.com/dmarcd/dmarcd/internal/trace"
)

// TestDeliveryIsTraced checks the span of a failed attempt, which holds nothing of the event.
func TestDeliveryIsTraced(t *testing.T) {
	t.Parallel()
	var received strings.Builder
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(&received, r.Body) // what is missing, the test misses
	}))
	defer collector.Close()
	tracer := trace.New(trace.Options{URL: collector.URL, Service: "dmarcd"})
	box := &outbox{}
	claimed := box.add(7, false).claimed
	claimed.Webhook.URL = "https://secret.example/"
	worker := &notify.Worker{Outbox: box, Now: time.Now, Log: slog.New(slog.DiscardHandler), Send: func(context.Context, dmarcd.ClaimedDelivery) (dmarcd.DeliveryResult, error) {
		return dmarcd.DeliveryResult{Status: http.StatusBadGateway, Problem: "a secret problem"}, nil
	}}
	musttest.Get(worker.Deliver(tracer.With(t.Context()), claimed))(t)
	ended, end := context.WithCancel(t.Context())
	end()
	musttest.Do(t, tracer.Run(ended))
	text := received.String()
	for _, want := range []string{`"name":"webhook delivery"`, `{"intValue":"502"}`, `"status":{"code":2}`, dmarcd.TeamID(7).String()} {
		if !strings.Contains(text, want) {
			t.Errorf("got %s, want %s", text, want)
		}
	}
	if strings.Contains(text, "secret") {
		t.Errorf("the span holds data of the team: %s", text)
	}
}
