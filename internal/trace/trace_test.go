package trace_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd/internal/trace"
)

// collected is an ExportTraceServiceRequest, as a collector decodes it.
type collected struct {
	ResourceSpans []struct {
		Resource   struct{ Attributes []keyValue }
		ScopeSpans []struct{ Spans []span }
	}
}

type span struct {
	TraceID, SpanID, ParentSpanID, Name string
	Kind                                int
	StartTimeUnixNano, EndTimeUnixNano  json.Number
	Attributes                          []keyValue
	Status                              struct{ Code int }
}

type keyValue struct {
	Key   string
	Value struct {
		StringValue string
		IntValue    json.Number
	}
}

// export returns the spans that run ends, as a collector with that status receives them.
func export(t *testing.T, status int, run func(ctx context.Context)) (spans []span, tracer *trace.Tracer) {
	t.Helper()
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var document collected
		if err := errors.Join(err, json.Unmarshal(body, &document)); err != nil {
			t.Error(err)
		}
		if r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/json" || r.Header.Get("X-Key") != "a b" {
			t.Errorf("got %s with %v", r.URL, r.Header)
		}
		for _, resource := range document.ResourceSpans {
			if resource.Resource.Attributes[0].Value.StringValue != "mail" {
				t.Errorf("got the resource %v, want the name of the service", resource.Resource)
			}
			for _, scope := range resource.ScopeSpans {
				spans = append(spans, scope.Spans...)
			}
		}
		w.WriteHeader(status)
	}))
	defer collector.Close()
	options, ignored, err := trace.FromEnvironment([]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT=" + collector.URL + "/", "OTEL_EXPORTER_OTLP_HEADERS=x-key=a%20b", "OTEL_SERVICE_NAME=mail", "OTEL_COLOUR=blue", "HOME=/",
	})
	if err != nil || !slices.Equal(ignored, []string{"OTEL_COLOUR"}) {
		t.Fatalf("got %v, ignored %q", err, ignored)
	}
	tracer = trace.New(options)
	run(tracer.With(t.Context()))
	ended, end := context.WithCancel(t.Context())
	end()
	if err := tracer.Run(ended); err != nil {
		t.Error(err)
	}
	return spans, tracer
}

func TestExport(t *testing.T) {
	t.Parallel()
	const client = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	spans, tracer := export(t, http.StatusOK, func(ctx context.Context) {
		ctx, request := trace.Start(trace.Continue(ctx, client), "request", trace.Server)
		_, query := trace.Start(ctx, "query", trace.Client)
		query.Text("db.system.name", "sqlite")
		query.Int("rows", 1<<60)
		query.End(errors.New("a secret"))
		request.Name("GET /domains")
		request.End(nil)
	})
	if len(spans) != 2 {
		t.Fatalf("got %d spans, want 2", len(spans))
	}
	query, request := spans[0], spans[1]
	if request.TraceID != client[3:35] || request.ParentSpanID != client[36:52] || request.Name != "GET /domains" || request.Kind != 2 || request.Status.Code != 0 {
		t.Errorf("got %+v, want a child of the client's span", request)
	}
	if query.TraceID != request.TraceID || query.ParentSpanID != request.SpanID || len(query.SpanID) != 16 || query.Status.Code != 2 || query.Kind != 3 {
		t.Errorf("got %+v, want a failed child of %s", query, request.SpanID)
	}
	if query.StartTimeUnixNano == "" || query.EndTimeUnixNano < query.StartTimeUnixNano {
		t.Errorf("got the times %s and %s", query.StartTimeUnixNano, query.EndTimeUnixNano)
	}
	var want [2]keyValue
	want[0].Key, want[0].Value.StringValue = "db.system.name", "sqlite"
	want[1].Key, want[1].Value.IntValue = "rows", "1152921504606846976"
	if diff := cmp.Diff(want[:], query.Attributes); diff != "" {
		t.Errorf("attributes (-want +got):\n%s", diff)
	}
	if exported, dropped := tracer.Stats(); exported != 2 || dropped != 0 {
		t.Errorf("exported %d, dropped %d", exported, dropped)
	}
}

func TestTraceparent(t *testing.T) {
	t.Parallel()
	const id = "0af7651916cd43dd8448eb211c80319c"
	for _, tt := range []struct {
		header         string
		taken, dropped bool
	}{
		{header: "00-" + id + "-b7ad6b7169203331-01", taken: true},
		{header: "00-" + id + "-b7ad6b7169203331-00", dropped: true},
		{header: "cc-" + id + "-b7ad6b7169203331-01-more", taken: true},
		{header: ""},
		{header: "00-" + id + "-b7ad6b7169203331-01-more"},
		{header: "cc-" + id + "-b7ad6b7169203331-01more"},
		{header: "ff-" + id + "-b7ad6b7169203331-01"},
		{header: "00-" + strings.ToUpper(id) + "-b7ad6b7169203331-01"},
		{header: "00-" + strings.Repeat("0", 32) + "-b7ad6b7169203331-01"},
		{header: "00-" + id + "-0000000000000000-01"},
		{header: "00-" + id + "-b7ad6b716920333x-01"},
		{header: strings.Repeat("x", 1<<16)},
	} {
		spans, _ := export(t, http.StatusOK, func(ctx context.Context) {
			_, s := trace.Start(trace.Continue(ctx, tt.header), "x", trace.Server)
			s.End(nil)
		})
		if tt.dropped != (len(spans) == 0) {
			t.Errorf("%.60s: got %d spans", tt.header, len(spans))
		} else if !tt.dropped && (spans[0].TraceID == id) != tt.taken {
			t.Errorf("%.60s: got the trace %s", tt.header, spans[0].TraceID)
		}
	}
}

// TestDropped fills the queue, and has a collector that fails.
func TestDropped(t *testing.T) {
	t.Parallel()
	const more = 100
	_, tracer := export(t, http.StatusServiceUnavailable, func(ctx context.Context) {
		for range trace.QueueLength + more {
			_, s := trace.Start(ctx, "x", trace.Internal)
			s.End(nil) // it would block for ever
		}
		for range 3 {
			_, _ = trace.Start(ctx, "never ended", trace.Internal)
		}
	})
	if exported, dropped := tracer.Stats(); exported != 0 || dropped != trace.QueueLength+more {
		t.Errorf("exported %d, dropped %d", exported, dropped)
	}
}

func TestBadEnvironment(t *testing.T) {
	t.Parallel()
	const endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT=http://collector:4318"
	for _, tt := range []struct {
		environ []string
		url     string // "" for an error
		hint    string
	}{
		{environ: []string{endpoint}, url: "http://collector:4318/v1/traces"},
		{environ: []string{endpoint, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=https://t/x"}, url: "https://t/x"},
		{environ: []string{"OTEL_EXPORTER_OTLP_ENDPOINT=secret:4317"}, hint: "OTEL_EXPORTER_OTLP_ENDPOINT"},
		{environ: []string{endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc"}, hint: "http/json"},
		{environ: []string{endpoint, "OTEL_EXPORTER_OTLP_HEADERS=secret"}, hint: "OTEL_EXPORTER_OTLP_HEADERS"},
		{environ: []string{endpoint, "OTEL_EXPORTER_OTLP_HEADERS=a=secret%0d%0a"}, hint: "OTEL_EXPORTER_OTLP_HEADERS"},
	} {
		options, _, err := trace.FromEnvironment(tt.environ)
		if tt.hint == "" && (err != nil || options.URL != tt.url) {
			t.Errorf("%q: got %q, %v", tt.environ, options.URL, err)
		}
		if tt.hint != "" && (err == nil || !strings.Contains(err.Error(), tt.hint) || strings.Contains(err.Error(), "secret")) {
			t.Errorf("%q: got %v, want an error with %q and without the value", tt.environ, err, tt.hint)
		}
	}
	for _, off := range [][]string{nil, {endpoint, "OTEL_SDK_DISABLED=true"}, {endpoint, "OTEL_TRACES_EXPORTER=none"}, {"OTEL_EXPORTER_OTLP_ENDPOINT="}} {
		if options, _, err := trace.FromEnvironment(off); err != nil || options.URL != "" {
			t.Errorf("%q: got %q, %v; want none", off, options.URL, err)
		}
	}
}

// TestOffAllocatesNothing is what a request costs without traces.
func TestOffAllocatesNothing(t *testing.T) {
	ctx := t.Context()
	if allocations := testing.AllocsPerRun(1000, func() { traced(ctx) }); allocations != 0 {
		t.Errorf("got %v allocations, want 0", allocations)
	}
}

func BenchmarkOff(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		traced(b.Context())
	}
}

func traced(ctx context.Context) {
	var off *trace.Tracer
	ctx, s := trace.Start(trace.Continue(off.With(ctx), "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"), "x", trace.Server)
	_, below := trace.Start(ctx, "y", trace.Client)
	below.Text("key", "value")
	below.Int("key", 1)
	below.Fail(true)
	below.End(nil)
	s.Name("z")
	s.End(nil)
}
