package bimi_test

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/bimi"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/packtest"
)

// serve starts a server for https://example.com and returns a client that connects to it
// for every name.
func serve(t *testing.T) *http.Client {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/logo.svg", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "image/svg+xml; charset=utf-8")
		_, _ = io.WriteString(w, goodSVG)
	})
	mux.HandleFunc("/text", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		_, _ = io.WriteString(w, goodSVG)
	})
	mux.HandleFunc("/large", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "image/svg+xml")
		_, _ = io.WriteString(w, strings.Repeat(" ", 1<<20+1))
	})
	mux.HandleFunc("/short", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, "<svg")
	})
	mux.HandleFunc("/bomb", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(packtest.Gzip(strings.Repeat(" ", 2<<20)))
	})
	mux.Handle("/moved", http.RedirectHandler("/logo.svg", http.StatusFound))
	mux.Handle("/plain", http.RedirectHandler("http://example.com/logo.svg", http.StatusFound))
	mux.Handle("/loop", http.RedirectHandler("/loop", http.StatusFound))
	server := httptest.NewUnstartedServer(mux)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	client := server.Client()
	transport, ok := client.Transport.(*http.Transport)
	if !ok {
		t.Fatalf("got a transport of type %T", client.Transport)
	}
	transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
	}
	return client
}

func TestFetchImage(t *testing.T) {
	t.Parallel()
	client := serve(t)
	for _, tt := range []struct {
		name   string
		uri    string
		final  string // if different
		status int
		length int
		want   []bimi.Kind
	}{
		{name: "an image", uri: "https://example.com/logo.svg", status: 200, length: len(goodSVG)},
		{name: "a redirect", uri: "https://example.com/moved", final: "https://example.com/logo.svg", status: 200, length: len(goodSVG)},
		{name: "the wrong media type", uri: "https://example.com/text", status: 200, length: len(goodSVG), want: []bimi.Kind{bimi.WrongContentType}},
		{name: "not there", uri: "https://example.com/gone", status: 404, want: []bimi.Kind{bimi.UnexpectedStatus}},
		{name: "too large", uri: "https://example.com/large", status: 200, want: []bimi.Kind{bimi.DocumentTooLarge}},
		{name: "too large once the transport has expanded it", uri: "https://example.com/bomb", status: 200, want: []bimi.Kind{bimi.DocumentTooLarge}},
		{name: "a redirect to http", uri: "https://example.com/plain", want: []bimi.Kind{bimi.InsecureRedirect}},
		{name: "a loop", uri: "https://example.com/loop", want: []bimi.Kind{bimi.TooManyRedirects}},
		{name: "a server with the certificate of another", uri: "https://example.net/logo.svg", want: []bimi.Kind{bimi.UntrustedServer}},
		{name: "http", uri: "http://example.com/logo.svg", want: []bimi.Kind{bimi.NotHTTPS}},
		{name: "an address", uri: "https://127.0.0.1/logo.svg", want: []bimi.Kind{bimi.BadURI}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := musttest.Get(bimi.FetchImage(t.Context(), client, tt.uri))(t)
			tt.final = cmp.Or(tt.final, tt.uri)
			if got.URI != tt.final || got.Status != tt.status || len(got.Content) != tt.length {
				t.Errorf("got %s, status %d, %d bytes; want %s, %d, %d", got.URI, got.Status, len(got.Content), tt.final, tt.status, tt.length)
			}
			var kinds []bimi.Kind
			for _, p := range got.Problems {
				kinds = append(kinds, p.Kind)
			}
			if !slices.Equal(kinds, tt.want) {
				t.Errorf("problems: got %v want %v", got.Problems, tt.want)
			}
		})
	}
}

func TestFetchEvidenceTakesEveryMediaType(t *testing.T) {
	t.Parallel()
	got, err := bimi.FetchEvidence(t.Context(), serve(t), "https://example.com/text")
	if err != nil || len(got.Problems) != 0 || got.ContentType != "text/plain" || string(got.Content) != goodSVG {
		t.Errorf("got %+v, error %v", got, err)
	}
}

func TestFetchUnreachable(t *testing.T) {
	t.Parallel()
	client := serve(t)
	for _, tt := range []struct {
		name   string
		uri    string
		cancel bool
	}{
		{name: "no time left", uri: "https://example.com/logo.svg", cancel: true},
		{name: "a connection that breaks", uri: "https://example.com/short"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if tt.cancel {
				cancel()
			}
			got, err := bimi.FetchImage(ctx, client, tt.uri)
			if !errors.Is(err, bimi.ErrUnreachable) || got.Content != nil {
				t.Errorf("got error %v, %d bytes; want ErrUnreachable", err, len(got.Content))
			}
		})
	}
}

func TestFetchLeavesTheClientAlone(t *testing.T) {
	t.Parallel()
	client := serve(t)
	musttest.Get(bimi.FetchImage(t.Context(), client, "https://example.com/logo.svg"))(t)
	if client.CheckRedirect != nil {
		t.Error("got a client that was changed")
	}
}
