// Package trace records spans of requests and background work and exports them to an
// OpenTelemetry collector, as OTLP 1.x in JSON over HTTP. It follows W3C Trace Context for the
// header traceparent. It is a small part of OpenTelemetry: the official exporter brings gRPC
// and fifteen modules into the binary.
//
// A Tracer is in the context. Without one, Start returns no span and allocates nothing; all
// methods of a nil *Span do nothing.
package trace

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"time"
)

// Kind is the kind of a span, with the numbers of OTLP.
type Kind int

// The kinds of spans.
const (
	Internal Kind = 1
	Server   Kind = 2
	Client   Kind = 3
	Consumer Kind = 5
)

type (
	traceID [16]byte
	spanID  [8]byte
)

// Span is a piece of work. It belongs to one goroutine until End.
type Span struct {
	tracer     *Tracer
	trace      traceID
	id, parent spanID
	dropped    bool // the client does not want it recorded, nor its children
	name       string
	kind       Kind
	began      time.Time
	ended      time.Time
	failed     bool
	attributes []attribute
}

type attribute struct {
	key    string
	text   string
	number int64
	isText bool
}

type contextKey struct{}

// Start begins a span as a child of that in ctx, or a new trace. name is a constant, or one of
// few. The span must be ended. Without a tracer in ctx it returns ctx and nil.
func Start(ctx context.Context, name string, kind Kind) (context.Context, *Span) {
	parent, _ := ctx.Value(contextKey{}).(*Span)
	if parent == nil || parent.dropped {
		return ctx, nil
	}
	s := &Span{tracer: parent.tracer, trace: parent.trace, parent: parent.id, name: name, kind: kind, began: time.Now()}
	if s.trace == (traceID{}) {
		_, _ = rand.Read(s.trace[:]) // it never fails
	}
	_, _ = rand.Read(s.id[:])
	return context.WithValue(ctx, contextKey{}, s), s
}

// Continue returns ctx with the trace of a client, from the header traceparent of W3C Trace
// Context. Anything else than a valid header begins a new trace.
func Continue(ctx context.Context, traceparent string) context.Context {
	root, _ := ctx.Value(contextKey{}).(*Span)
	// version "-" trace-id "-" parent-id "-" trace-flags; later versions may add to it
	if root == nil || len(traceparent) < 55 || traceparent[:3] == "ff-" ||
		len(traceparent) > 55 && (traceparent[:3] == "00-" || traceparent[55] != '-') ||
		traceparent[2] != '-' || traceparent[35] != '-' || traceparent[52] != '-' {
		return ctx
	}
	s := &Span{tracer: root.tracer}
	var version, flags [1]byte
	for _, part := range []struct {
		to   []byte
		text string
	}{{version[:], traceparent[:2]}, {s.trace[:], traceparent[3:35]}, {s.id[:], traceparent[36:52]}, {flags[:], traceparent[53:55]}} {
		for _, c := range []byte(part.text) {
			if c >= 'A' && c <= 'F' { // only lower case is valid
				return ctx
			}
		}
		if _, err := hex.Decode(part.to, []byte(part.text)); err != nil {
			return ctx
		}
	}
	if s.trace == (traceID{}) || s.id == (spanID{}) {
		return ctx
	}
	s.dropped = flags[0]&1 == 0
	return context.WithValue(ctx, contextKey{}, s)
}

// Name replaces the name.
func (s *Span) Name(name string) {
	if s != nil {
		s.name = name
	}
}

// Text adds an attribute. It must not contain data of a team other than ids.
func (s *Span) Text(key, value string) {
	if s != nil {
		s.attributes = append(s.attributes, attribute{key: key, text: value, isText: true})
	}
}

// Int adds an attribute.
func (s *Span) Int(key string, value int64) {
	if s != nil {
		s.attributes = append(s.attributes, attribute{key: key, number: value})
	}
}

// Fail marks the span as failed if that is true.
func (s *Span) Fail(failed bool) {
	if s != nil {
		s.failed = s.failed || failed
	}
}

// End ends the span and queues it for export, or drops it if the queue is full. An error marks
// it as failed; its text, which may hold anything, is not exported.
func (s *Span) End(err error) {
	if s == nil {
		return
	}
	s.ended, s.failed = time.Now(), s.failed || err != nil
	s.tracer.queue(s)
}
