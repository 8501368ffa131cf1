package trace

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

const (
	queueLength   = 4096
	batchLength   = 512
	batchWait     = 2 * time.Second
	exportTimeout = 10 * time.Second
	lastTimeout   = 2 * time.Second // of the export at the end
)

// Options configure the export of spans.
type Options struct {
	// URL is where spans are posted to; "" disables traces.
	URL string
	// Headers are added to each request.
	Headers map[string]string
	// Service is the name of the service, Version its version.
	Service, Version string
	// Log receives the first of several failures in a row; nil discards them.
	Log *slog.Logger
}

// Tracer exports spans. It is safe for concurrent use.
type Tracer struct {
	options           Options
	root              *Span
	client            *http.Client
	spans             chan *Span
	exported, dropped atomic.Int64
}

// New returns a tracer for options with a URL. Spans are exported while Run runs.
func New(options Options) *Tracer {
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	t := &Tracer{options: options, client: &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment}}, spans: make(chan *Span, queueLength)}
	t.root = &Span{tracer: t}
	return t
}

// With returns ctx with the tracer, in which Start begins traces. A nil tracer changes nothing.
func (t *Tracer) With(ctx context.Context) context.Context {
	if t == nil {
		return ctx
	}
	return context.WithValue(ctx, contextKey{}, t.root)
}

// Stats returns the numbers of exported and dropped spans, 0 for a nil tracer.
func (t *Tracer) Stats() (exported, dropped int64) {
	if t == nil {
		return 0, 0
	}
	return t.exported.Load(), t.dropped.Load()
}

// queue never blocks.
func (t *Tracer) queue(s *Span) {
	select {
	case t.spans <- s:
	default:
		t.dropped.Add(1)
	}
}

// Run exports spans in batches until ctx ends, and then those that are left. It returns nil.
func (t *Tracer) Run(ctx context.Context) error {
	defer t.client.CloseIdleConnections()
	timer := time.NewTicker(batchWait)
	defer timer.Stop()
	var batch []*Span
	failing := false
	flush := func(timeout time.Duration) {
		if len(batch) == 0 {
			return
		}
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
		defer cancel()
		err := t.export(limited, batch)
		if err != nil {
			t.dropped.Add(int64(len(batch)))
		} else {
			t.exported.Add(int64(len(batch)))
		}
		if err != nil && !failing {
			t.options.Log.WarnContext(ctx, "traces not exported", "error", err)
		}
		failing, batch = err != nil, nil
	}
	for {
		select {
		case s := <-t.spans:
			if batch = append(batch, s); len(batch) >= batchLength {
				flush(exportTimeout)
			}
		case <-timer.C:
			flush(exportTimeout)
		case <-ctx.Done():
			for len(t.spans) > 0 && len(batch) < queueLength {
				batch = append(batch, <-t.spans)
			}
			flush(lastTimeout)
			return nil
		}
	}
}

// export posts spans once.
func (t *Tracer) export(ctx context.Context, batch []*Span) error {
	body, err := json.Marshal(t.document(batch))
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, t.options.URL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	for key, value := range t.options.Headers {
		request.Header.Set(key, value)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := t.client.Do(request)
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err // the URL may hold a secret
		}
		return err
	}
	defer func() { _ = response.Body.Close() }()                     // the body is not used
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 1<<16)) // so that the connection is used again
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("the collector answered with status %d", response.StatusCode)
	}
	return nil
}

type (
	object = map[string]any
	list   = []any
)

// document returns an ExportTraceServiceRequest in the JSON encoding of OTLP: ids are in hex,
// whole numbers of 64 bits are text.
func (t *Tracer) document(batch []*Span) object {
	spans := make(list, 0, len(batch))
	for _, s := range batch {
		span := object{
			"traceId": hex.EncodeToString(s.trace[:]), "spanId": hex.EncodeToString(s.id[:]), "name": s.name, "kind": s.kind,
			"startTimeUnixNano": strconv.FormatInt(s.began.UnixNano(), 10), "endTimeUnixNano": strconv.FormatInt(s.ended.UnixNano(), 10),
			"attributes": encode(s.attributes),
		}
		if s.parent != (spanID{}) {
			span["parentSpanId"] = hex.EncodeToString(s.parent[:])
		}
		if s.failed {
			span["status"] = object{"code": 2}
		}
		spans = append(spans, span)
	}
	resource := encode([]attribute{{key: "service.name", text: t.options.Service, isText: true}, {key: "service.version", text: t.options.Version, isText: true}})
	return object{"resourceSpans": list{object{
		"resource":   object{"attributes": resource},
		"scopeSpans": list{object{"scope": object{"name": "dmarcd"}, "spans": spans}},
	}}}
}

func encode(attributes []attribute) list {
	all := make(list, 0, len(attributes))
	for _, a := range attributes {
		value := object{"intValue": strconv.FormatInt(a.number, 10)}
		if a.isText {
			value = object{"stringValue": a.text}
		}
		all = append(all, object{"key": a.key, "value": value})
	}
	return all
}

// FromEnvironment reads the variables of OpenTelemetry from environ, in the form of os.Environ.
// Without an endpoint, URL is "". ignored are the set ones that have no effect here. An error says
// which variable is wrong, without its value.
func FromEnvironment(environ []string) (o Options, ignored []string, err error) {
	set := make(map[string]string)
	for _, variable := range environ {
		if name, value, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "OTEL_") && value != "" {
			set[name] = value
		}
	}
	known := make(map[string]bool)
	o, err = fromVariables(func(name string) string {
		known[name] = true
		return set[name]
	})
	for name := range set {
		if !known[name] && o.URL != "" {
			ignored = append(ignored, name)
		}
	}
	slices.Sort(ignored)
	return o, ignored, err
}

func fromVariables(getenv func(string) string) (Options, error) {
	o := Options{Service: "dmarcd", Headers: make(map[string]string)}
	if name := getenv("OTEL_SERVICE_NAME"); name != "" {
		o.Service = name
	}
	variable := "OTEL_EXPORTER_OTLP_ENDPOINT"
	if base := getenv(variable); base != "" {
		o.URL = strings.TrimRight(base, "/") + "/v1/traces"
	}
	if own := getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"); own != "" { // taken as it is
		variable, o.URL = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", own
	}
	if strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true") || strings.EqualFold(getenv("OTEL_TRACES_EXPORTER"), "none") {
		o.URL = ""
	}
	if o.URL == "" {
		return o, nil
	}
	if at, err := url.Parse(o.URL); err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
		return o, fmt.Errorf("%s is not an http or https URL; set it to the OTLP/HTTP address of the collector, such as http://localhost:4318", variable)
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"} {
		if protocol := getenv(name); protocol != "" && protocol != "http/json" {
			return o, fmt.Errorf("%s must be http/json, the only protocol of dmarcd; collectors take it on the port of OTLP/HTTP, usually 4318", name)
		}
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"} {
		for pair := range strings.SplitSeq(getenv(name), ",") {
			key, value, found := strings.Cut(pair, "=")
			decoded, err := url.PathUnescape(strings.TrimSpace(value))
			if key = strings.TrimSpace(key); key == "" && !found && value == "" {
				continue
			}
			if !found || key == "" || err != nil || strings.ContainsAny(key+decoded, "\r\n") {
				return o, fmt.Errorf("%s must be a list as key=value,key=value, with values in URL encoding", name)
			}
			o.Headers[key] = decoded
		}
	}
	return o, nil
}
