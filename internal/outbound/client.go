package outbound

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"time"
)

const (
	headerTimeout = 10 * time.Second
	// maxHeader bounds the response header in bytes. The caller bounds the body.
	maxHeader = 16 << 10
)

// Client returns an HTTPS-only client that uses the dialer. It uses no proxy and no
// keep-alive, and does not decompress. The caller decides about redirects; each is dialled
// and checked again. roots are the trusted roots; nil means those of the system.
func (d *Dialer) Client(roots *x509.CertPool) *http.Client {
	transport := d.transport(roots)
	transport.ResponseHeaderTimeout = headerTimeout
	return &http.Client{Transport: &httpsOnly{transport}}
}

// EndpointClient returns an HTTP client for endpoints that outsiders name: it speaks HTTPS
// to all that the dialer reaches, and HTTP only to the networks that the operator allows.
// It follows no redirects: they are answers like others. Otherwise it is like that of
// Client, but leaves all times to the caller.
func (d *Dialer) EndpointClient(roots *x509.CertPool) *http.Client {
	allowed := *d
	allowed.AllowedOnly = true
	return &http.Client{
		Transport:     &byScheme{https: d.transport(roots), http: allowed.transport(roots)},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func (d *Dialer) transport(roots *x509.CertPool) *http.Transport {
	return &http.Transport{
		DialContext:            d.DialContext,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
		TLSHandshakeTimeout:    dialTimeout,
		MaxResponseHeaderBytes: maxHeader,
		DisableKeepAlives:      true,
		DisableCompression:     true,
		ForceAttemptHTTP2:      true,
	}
}

// byScheme sends requests without TLS another way.
type byScheme struct{ https, http http.RoundTripper }

// RoundTrip sends a request.
func (b *byScheme) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Scheme == "https" {
		return b.https.RoundTrip(request)
	}
	return b.http.RoundTrip(request)
}

// httpsOnly rejects requests without TLS.
type httpsOnly struct{ next http.RoundTripper }

// RoundTrip sends a request if it is for an https URL.
func (h *httpsOnly) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Scheme != "https" {
		return nil, fmt.Errorf("get %s: only https is allowed", request.URL.Redacted())
	}
	return h.next.RoundTrip(request)
}
