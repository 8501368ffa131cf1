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
	// maxHeader bounds the header of a response in bytes. The body is for the
	// caller to bound.
	maxHeader = 16 << 10
)

// Client returns an HTTP client that speaks HTTPS alone, through the dialer. It
// uses no proxy, keeps no connection and does not decompress. Redirects are for
// the caller to allow or not: each is dialled, and judged, anew. The roots are the
// authorities to trust; nil is those of the system.
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

// httpsOnly refuses to speak without TLS.
type httpsOnly struct{ next http.RoundTripper }

// RoundTrip sends a request if it is for an https URL.
func (h *httpsOnly) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Scheme != "https" {
		return nil, fmt.Errorf("get %s: only https is allowed", request.URL.Redacted())
	}
	return h.next.RoundTrip(request)
}
