package blobs_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/blobs"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

// bucket is one with a server that answers with a handler.
func bucket(t *testing.T, handler http.HandlerFunc) *blobs.Bucket {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return musttest.Get(blobs.Open("http://key:secret@"+strings.TrimPrefix(server.URL, "http://")+"/bucket/prefix", nil))(t)
}

func TestBadURLs(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "bucket", "s3://bucket", "https://host/bucket", "https://key@host/bucket", "https://key:@host/bucket", "https://:secret@host/bucket",
		"https://key:secret@/bucket", "https://key:secret@host", "https://key:secret@host/", "https://key:secret@host/a b", "https://key:secret@host/a//b",
		"https://key:secret@host/bucket?zone=x", "https://key:secret@host/bucket?region=a/&%zz", "https://key:secret@host/bucket#x", "https://key:secret@host:x/bucket",
		"https://key:secret@host/bucket?region=a+b",
	} {
		_, err := blobs.Open(text, nil)
		if err == nil || strings.Contains(err.Error(), "secret@") {
			t.Errorf("%s: got %v, want an error without the secret", text, err)
		}
	}
}

// TestSignature checks what is signed. test/bucket has a server verify signatures.
func TestSignature(t *testing.T) {
	t.Parallel()
	var got http.Header
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Header }))
	defer server.Close()
	now := time.Date(2026, 11, 15, 9, 30, 0, 0, time.UTC)
	b := musttest.Get(blobs.Open("http://key:secret@"+strings.TrimPrefix(server.URL, "http://")+"/bucket?region=eu-central-1", func() time.Time { return now }))(t)
	musttest.Do(t, b.Put(t.Context(), "a/b.parquet", []byte("data")))
	authorization := got.Get("Authorization")
	if !strings.HasPrefix(authorization, "AWS4-HMAC-SHA256 Credential=key/20261115/eu-central-1/s3/aws4_request, SignedHeaders=host;x-amz-content-sha256;x-amz-date, Signature=") {
		t.Errorf("got %s", authorization)
	}
	if got.Get("X-Amz-Date") != "20261115T093000Z" || got.Get("X-Amz-Content-Sha256") != "3a6eb0790f39ac87c94f3856b2dd2c5d110e6811602261a9a923d3bb23adc8b7" {
		t.Errorf("got %v", got)
	}
}

func TestRequests(t *testing.T) {
	t.Parallel()
	objects := map[string][]byte{}
	b := bucket(t, func(w http.ResponseWriter, r *http.Request) {
		data, found := objects[r.URL.Path]
		switch r.Method {
		case http.MethodPut:
			objects[r.URL.Path], _ = io.ReadAll(r.Body)
		case http.MethodDelete:
			delete(objects, r.URL.Path)
			w.WriteHeader(http.StatusNoContent)
		default:
			if !found {
				w.WriteHeader(http.StatusNotFound)
				return
			}
			_, _ = w.Write(data)
		}
	})
	ctx := t.Context()
	musttest.Do(t, b.Put(ctx, "a/1", []byte("data")))
	if got := string(objects["/bucket/prefix/a/1"]); got != "data" {
		t.Errorf("got %q stored", got)
	}
	if got, err := b.Get(ctx, "a/1", 4); err != nil || string(got) != "data" {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := b.Get(ctx, "a/1", 3); err == nil {
		t.Error("got an object that is too long")
	}
	for range 2 {
		if err := b.Delete(ctx, "a/1"); err != nil {
			t.Error(err)
		}
	}
	if _, err := b.Get(ctx, "a/1", 4); !errors.Is(err, dmarcd.ErrNotFound) {
		t.Errorf("got %v, want %v", err, dmarcd.ErrNotFound)
	}
	for _, name := range []string{"", "a b", "ü", "a?b", "a%2fb"} {
		if err := b.Put(ctx, name, nil); err == nil {
			t.Errorf("%q: got no error", name)
		}
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		return
	}
	for _, test := range []struct {
		status int
		body   string
		kind   error // nil for another
		want   string
		sent   int64
	}{
		{403, "<Error><Code>SignatureDoesNotMatch</Code><Message>No.</Message></Error>", nil, "check the host, the key, the secret and the region in DMARCD_BLOBS", 1},
		{301, "", nil, "check the host", 1},
		{404, "<Error><Code>NoSuchBucket</Code></Error>", nil, "create the bucket", 1},
		{503, "<Error><Code>SlowDown</Code></Error>", dmarcd.ErrTemporary, "SlowDown", 3},
		{500, "not XML", dmarcd.ErrTemporary, "500", 3},
		{409, strings.Repeat("x", 1<<20), nil, "409", 1},
	} {
		var sent atomic.Int64
		b := bucket(t, func(w http.ResponseWriter, _ *http.Request) {
			sent.Add(1)
			w.WriteHeader(test.status)
			_, _ = io.WriteString(w, test.body)
		})
		err := b.Put(t.Context(), "a", []byte("data"))
		if err == nil || !strings.Contains(err.Error(), test.want) || errors.Is(err, dmarcd.ErrTemporary) != (test.kind != nil) || errors.Is(err, dmarcd.ErrNotFound) {
			t.Errorf("%d: got %v, want %q", test.status, err, test.want)
		}
		if sent.Load() != test.sent {
			t.Errorf("%d: got %d requests, want %d", test.status, sent.Load(), test.sent)
		}
	}
	closed := httptest.NewServer(nil)
	closed.Close()
	b := musttest.Get(blobs.Open("http://key:secret@"+strings.TrimPrefix(closed.URL, "http://")+"/bucket", nil))(t)
	if err := b.Delete(t.Context(), "a"); !errors.Is(err, dmarcd.ErrTemporary) || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v, want %v without the secret", err, dmarcd.ErrTemporary)
	}
}
