package certificate_test

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/internal/certificate"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// TestAuthorityHangs has an authority that never answers: callers who give up do not wait for others, and
// those who come later are told at once.
func TestAuthorityHangs(t *testing.T) {
	t.Parallel()
	var requests atomic.Int64
	asked, ended := make(chan struct{}, 100), make(chan struct{})
	authority := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		asked <- struct{}{}
		select {
		case <-ended:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(func() {
		close(ended)
		authority.Close()
	})
	roots := x509.NewCertPool()
	roots.AddCert(authority.Certificate())
	hosts := certificate.NewHosts(certificate.HostsOptions{
		Directory: authority.URL + "/dir", Database: storetest.SQLite(t).Open(t, store.Options{}),
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Roots: roots, Timeout: 2 * time.Second,
	})
	var first sync.WaitGroup
	first.Go(func() {
		if _, err := hosts.Identities(t.Context()); err == nil {
			t.Error("got identities of an authority that does not answer")
		}
	})
	<-asked
	impatient, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := hosts.Identities(impatient); !errors.Is(err, context.Canceled) {
		t.Errorf("beside the first: got %v, want context.Canceled", err)
	}
	first.Wait()
	before := requests.Load()
	for range 20 {
		if _, err := hosts.Identities(t.Context()); err == nil {
			t.Error("got identities of an authority that does not answer")
		}
		if err := hosts.Order(t.Context(), "mta-sts.example.com"); err == nil {
			t.Error("got a certificate of an authority that does not answer")
		}
	}
	if n := requests.Load() - before; n != 0 {
		t.Errorf("got %d requests right after a failure, want none", n)
	}
}
