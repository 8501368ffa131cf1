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

// TestDeliveryIsTraced checks the span of a failed attempt, which must not contain the
// endpoint or the problem.
func TestDeliveryIsTraced(t *testing.T) {
	t.Parallel()
	var received strings.Builder
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(&received, r.Body) // an incomplete body fails the test below
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
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	musttest.Do(t, tracer.Run(ended)) // sends the spans and returns
	text := received.String()
	for _, want := range []string{`"name":"webhook delivery"`, `{"intValue":"502"}`, `"status":{"code":2}`, dmarcd.TeamID(7).String()} {
		if !strings.Contains(text, want) {
			t.Errorf("got %s, want %s in it", text, want)
		}
	}
	if strings.Contains(text, "secret") {
		t.Errorf("got a span with data of the team: %s", text)
	}
}
