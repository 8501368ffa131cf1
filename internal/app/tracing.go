package app

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dmarcd/dmarcd/internal/trace"
)

// runTracer exports spans until ctx ends; the result waits for the last export.
func (a *App) runTracer(ctx context.Context) (wait func()) {
	if a.tracer == nil {
		return func() {}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = a.tracer.Run(ctx) // it returns nil
	}()
	return func() { <-done }
}

// registerTracer adds the metrics of traces, which are 0 if they are disabled.
func registerTracer(registry prometheus.Registerer, tracer *trace.Tracer) {
	registry.MustRegister(
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "dmarcd_trace_spans_exported_total", Help: "Spans of traces that the collector accepted.",
		}, func() float64 { exported, _ := tracer.Stats(); return float64(exported) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "dmarcd_trace_spans_dropped_total", Help: "Spans of traces that were dropped because the queue was full or the collector did not accept them.",
		}, func() float64 { _, dropped := tracer.Stats(); return float64(dropped) }))
}
