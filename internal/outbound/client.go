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
	return &http.Client{Transport: &httpsOnly{&http.Transport{
		DialContext:            d.DialContext,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
		TLSHandshakeTimeout:    dialTimeout,
		ResponseHeaderTimeout:  headerTimeout,
		MaxResponseHeaderBytes: maxHeader,
		DisableKeepAlives:      true,
		DisableCompression:     true,
		ForceAttemptHTTP2:      true,
	}}}
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
