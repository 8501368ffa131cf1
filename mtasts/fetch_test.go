package mtasts_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd/internal/certtest"
	"github.com/dmarcd/dmarcd/mtasts"
)

const (
	host       = "mta-sts.example.com"
	goodPolicy = "version: STSv1\nmode: enforce\nmx: *.example.com\nmax_age: 604800\n"
)

func TestFetch(t *testing.T) {
	t.Parallel()
	type problems = []mtasts.Problem
	ca, other := newAuthority(t), newAuthority(t)
	for _, tt := range []struct {
		name      string
		authority authority // ca where it is the zero value
		host      string    // of the certificate, the policy host where it is ""
		until     time.Time // of the certificate, next year where it is zero
		handler   http.Handler
		want      mtasts.FetchStatus
		code      int
		location  string
		problems  problems
	}{
		{name: "a policy", handler: answer(200, "text/plain", goodPolicy), want: mtasts.FetchOK, code: 200},
		{name: "a policy with a charset", handler: answer(200, "Text/Plain; charset=utf-8", goodPolicy), want: mtasts.FetchOK, code: 200},
		{name: "a wildcard certificate", host: "*.example.com", handler: answer(200, "text/plain", goodPolicy), want: mtasts.FetchOK, code: 200},
		{
			name: "another media type", handler: answer(200, "text/html", goodPolicy), want: mtasts.FetchOK, code: 200,
			problems: problems{{Kind: mtasts.MediaType, Text: "text/html"}},
		},
		{
			name: "no media type", handler: answer(200, "", goodPolicy), want: mtasts.FetchOK, code: 200,
			problems: problems{{Kind: mtasts.MediaType}},
		},
		{name: "an invalid policy", handler: answer(200, "text/plain", "bogus"), want: mtasts.FetchInvalid, code: 200},
		{name: "a policy too large", handler: answer(200, "text/plain", goodPolicy+strings.Repeat("\n", mtasts.MaxPolicySize)), want: mtasts.FetchInvalid, code: 200},
		{name: "a policy without end", handler: endless(), want: mtasts.FetchInvalid, code: 200},
		{name: "not found", handler: answer(404, "text/plain", goodPolicy), want: mtasts.FetchBadStatus, code: 404},
		{name: "another success", handler: answer(203, "text/plain", goodPolicy), want: mtasts.FetchBadStatus, code: 203},
		{name: "an error", handler: answer(500, "text/plain", goodPolicy), want: mtasts.FetchBadStatus, code: 500},
		{
			name: "a redirect to a good policy", handler: redirectOnce(), want: mtasts.FetchRedirect, code: 301, location: "/elsewhere",
		},
		{
			name: "a certificate for another host", host: "www.example.com", handler: answer(200, "text/plain", goodPolicy),
			want: mtasts.FetchBadCertificate, problems: problems{{Kind: mtasts.CertificateName, Text: host}},
		},
		{
			name: "a certificate past its time", until: now.Add(-time.Second), handler: answer(200, "text/plain", goodPolicy),
			want: mtasts.FetchBadCertificate, problems: problems{{Kind: mtasts.CertificateExpired}},
		},
		{
			name: "a certificate of an unknown authority", authority: other, handler: answer(200, "text/plain", goodPolicy),
			want: mtasts.FetchBadCertificate, problems: problems{{Kind: mtasts.CertificateUntrusted, Text: "x509: certificate signed by unknown authority"}},
		},
		{name: "no answer", handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }), want: mtasts.FetchInconclusive},
		{name: "half an answer", handler: http.HandlerFunc(cutShort), want: mtasts.FetchInconclusive, code: 200},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			issuer, name, until := tt.authority, tt.host, tt.until
			if issuer.certificate == nil {
				issuer = ca
			}
			if name == "" {
				name = host
			}
			if until.IsZero() {
				until = now.AddDate(1, 0, 0)
			}
			client := ca.serve(t, issuer.issue(t, name, until), tt.handler)
			got := mtasts.Fetch(t.Context(), client, "Example.com.")
			if got.Status != tt.want || got.Code != tt.code || got.Location != tt.location {
				t.Errorf("got %v, %d, %q (%s); want %v, %d, %q", got.Status, got.Code, got.Location, got.Reason, tt.want, tt.code, tt.location)
			}
			if diff := cmp.Diff(tt.problems, withoutDetail(got.Problems)); diff != "" {
				t.Errorf("got other problems (-want +got):\n%s", diff)
			}
			if got.URL != "https://mta-sts.example.com/.well-known/mta-sts.txt" {
				t.Errorf("got URL %q", got.URL)
			}
			if unexplained := got.Reason == ""; unexplained != (tt.want != mtasts.FetchInconclusive && tt.want != mtasts.FetchBadCertificate) {
				t.Errorf("got reason %q for %v", got.Reason, got.Status)
			}
			if valid := tt.want == mtasts.FetchOK; got.Policy.Valid != valid {
				t.Errorf("got a policy that is valid: %v, want %v", got.Policy.Valid, valid)
			}
		})
	}
}

// withoutDetail drops what the standard library adds in brackets.
func withoutDetail(problems []mtasts.Problem) []mtasts.Problem {
	for i := range problems {
		problems[i].Text, _, _ = strings.Cut(problems[i].Text, " (")
	}
	return problems
}

// endless sends a policy until the client disconnects.
func endless() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		for {
			if _, err := w.Write([]byte("mx: mail.example.com\n")); err != nil {
				return
			}
		}
	})
}

// redirectOnce leads the policy's path to another one, where there is a policy.
func redirectOnce() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/elsewhere", answer(200, "text/plain", goodPolicy))
	mux.Handle("/.well-known/mta-sts.txt", http.RedirectHandler("/elsewhere", http.StatusMovedPermanently))
	return mux
}

// cutShort promises more than it sends.
func cutShort(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", "1000")
	_, _ = w.Write([]byte(goodPolicy))
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

func TestFetchRequest(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	type request struct{ method, host, path string }
	requests := make(chan request, 1)
	client := ca.serve(t, ca.issue(t, host, now.AddDate(1, 0, 0)), http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		requests <- request{r.Method, r.Host, r.URL.Path}
	}))
	mtasts.Fetch(t.Context(), client, "example.com")
	if got, want := <-requests, (request{"GET", host, "/.well-known/mta-sts.txt"}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestFetchTrustsNoCarelessClient(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	for _, tt := range []struct {
		name  string
		spoil func(*http.Transport)
		want  mtasts.Kind
	}{
		{"it verifies nothing", func(tr *http.Transport) { tr.TLSClientConfig.InsecureSkipVerify = true }, mtasts.CertificateUntrusted},
		{"it verifies another name", func(tr *http.Transport) { tr.TLSClientConfig.ServerName = "www.example.com" }, mtasts.CertificateName},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			client := ca.serve(t, ca.issue(t, "www.example.com", now.AddDate(1, 0, 0)), answer(200, "text/plain", goodPolicy))
			transport, ok := client.Transport.(*http.Transport)
			if !ok {
				t.Fatalf("got a transport of type %T", client.Transport)
			}
			tt.spoil(transport)
			got := mtasts.Fetch(t.Context(), client, "example.com")
			if got.Status != mtasts.FetchBadCertificate || len(got.Problems) != 1 || got.Problems[0].Kind != tt.want {
				t.Errorf("got %v with %v, want %v with %s", got.Status, got.Problems, mtasts.FetchBadCertificate, tt.want)
			}
		})
	}
}

func TestFetchEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	ctx, cancel := context.WithCancel(t.Context())
	client := ca.serve(t, ca.issue(t, host, now.AddDate(1, 0, 0)), http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	}))
	if got := mtasts.Fetch(ctx, client, "example.com"); got.Status != mtasts.FetchInconclusive || got.Reason == "" {
		t.Errorf("got %v (%q), want %v with a reason", got.Status, got.Reason, mtasts.FetchInconclusive)
	}
}

// noTransport fails the test when it is used.
type noTransport struct{ t *testing.T }

func (n noTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	n.t.Errorf("got a request for %s, want none", r.URL)
	return nil, http.ErrServerClosed
}

func TestFetchAsksOnlyHosts(t *testing.T) {
	t.Parallel()
	client := &http.Client{Transport: noTransport{t}}
	for _, domain := range []string{"", "example.com/path?", "user@example.com", "example.com:8443", "a b", "é.example"} {
		if got := mtasts.Fetch(t.Context(), client, domain); got.Status != mtasts.FetchInconclusive || got.Reason == "" {
			t.Errorf("%q: got %v (%q), want %v with a reason", domain, got.Status, got.Reason, mtasts.FetchInconclusive)
		}
	}
}

func TestExpiresSoon(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for _, row := range []struct {
		name           string
		lifetime, left time.Duration
		want           bool
	}{
		{"a quarter, just renewed", 90 * day, 89 * day, false},
		{"a quarter, due for renewal", 90 * day, 30 * day, false},
		{"a quarter, not renewed", 90 * day, 14 * day, true},
		{"a year, three weeks before", 365 * day, 21 * day, false},
		{"six days, half over", 6 * day, 3 * day, false},
		{"six days, the last hours", 6 * day, 20 * time.Hour, true},
		{"over", 90 * day, 0, false}, // the connection fails
	} {
		at := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
		until := at.Add(row.left)
		got := mtasts.Fetched{Certificate: &x509.Certificate{NotBefore: until.Add(-row.lifetime), NotAfter: until}}.ExpiresSoon(at)
		if (len(got) == 1) != row.want || row.want && (got[0].Kind != mtasts.CertificateExpiresSoon || got[0].Text != until.Format(time.DateOnly)) {
			t.Errorf("%s: got %v want %v", row.name, got, row.want)
		}
	}
	if got := (mtasts.Fetched{}).ExpiresSoon(time.Now()); got != nil {
		t.Errorf("without a certificate: got %v", got)
	}
}

// now is the time at which the client checks certificates.
var now = time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)

// authority issues certificates that its clients trust.
type authority struct{ certificate *tls.Certificate }

func newAuthority(t *testing.T) authority {
	t.Helper()
	return authority{certtest.New(t, nil, x509.Certificate{
		Subject: pkix.Name{CommonName: "Test Authority"}, NotBefore: now.AddDate(-1, 0, 0), NotAfter: now.AddDate(1, 0, 0),
		IsCA: true, KeyUsage: x509.KeyUsageCertSign,
	})}
}

// issue returns a certificate for a host that is good until a time.
func (a authority) issue(t *testing.T, host string, until time.Time) tls.Certificate {
	t.Helper()
	return *certtest.New(t, a.certificate, x509.Certificate{
		Subject: pkix.Name{CommonName: "mta-sts.example.com"}, DNSNames: []string{host},
		NotBefore: now.AddDate(-1, 0, 0), NotAfter: until,
	})
}

// serve starts a web server on loopback and returns a client that trusts the
// authority and reaches the server under every name.
func (a authority) serve(t *testing.T, certificate tls.Certificate, handler http.Handler) *http.Client {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	roots := x509.NewCertPool()
	roots.AddCert(a.certificate.Leaf)
	transport := &http.Transport{
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, network, server.Listener.Addr().String())
		},
		TLSClientConfig: &tls.Config{RootCAs: roots, Time: func() time.Time { return now }},
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// answer returns a handler that sends the same to everybody.
func answer(code int, mediaType, body string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = []string{mediaType}
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body) // the client may have enough
	})
}
