package mtasts

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"mime"
	"net/http"
	"time"

	"github.com/dmarcd/dmarcd/dns"
)

// fetchTimeout bounds a fetch, as RFC 8461 §3.3 suggests.
const fetchTimeout = time.Minute

// errUnverified rejects a response over a connection whose certificate was not verified.
var errUnverified = errors.New("the client did not verify the certificate")

// FetchStatus is the result of fetching a policy.
type FetchStatus uint8

const (
	// FetchInconclusive means that there was no response: the host lookup, the connection
	// or TLS failed, or timed out. Nothing is known about the policy.
	FetchInconclusive FetchStatus = iota
	// FetchOK means that there is a valid policy.
	FetchOK
	// FetchInvalid means that the policy is invalid.
	FetchInvalid
	// FetchBadCertificate means that the certificate of the web server is not valid for
	// the policy host, so its response is ignored.
	FetchBadCertificate
	// FetchRedirect means that the web server redirects, which senders must not follow.
	FetchRedirect
	// FetchBadStatus means that the HTTP status is not 200.
	FetchBadStatus
	// FetchNoHost means that the policy host has no address, so there is no policy.
	FetchNoHost
)

var fetchStatusWords = [...]string{
	FetchInconclusive: "inconclusive", FetchOK: "ok", FetchInvalid: "invalid", FetchBadCertificate: "bad certificate",
	FetchRedirect: "redirect", FetchBadStatus: "bad status", FetchNoHost: "no host",
}

// String returns the status in words.
func (s FetchStatus) String() string { return fetchStatusWords[s] }

// Fetched is the result of fetching the policy of a domain.
type Fetched struct {
	// Domain is the domain of the policy, and URL its location.
	Domain, URL string
	Status      FetchStatus
	// Policy is the fetched policy, zero unless Status is FetchOK or FetchInvalid.
	Policy Policy
	// Code is the HTTP status code, 0 if there was no valid response.
	Code int
	// Location is the target of a redirect, as sent by the web server.
	Location string
	// Problems lists problems other than those of the policy itself.
	Problems []Problem
	// Certificate is the valid certificate of the web server, nil if there was none.
	Certificate *x509.Certificate
	// Reason is why Status is FetchInconclusive, FetchNoHost or FetchBadCertificate.
	Reason string
}

// expiryWarning is how long before its expiry a certificate is reported; for a
// short-lived one it is a sixth of the lifetime. By then it should have been renewed.
const expiryWarning = 14 * 24 * time.Hour

// ExpiresSoon reports whether a certificate that is valid now, of a policy host or a mail
// server (RFC 8461 §4.2), should have been renewed.
func ExpiresSoon(c *x509.Certificate, at time.Time) bool {
	return at.Before(c.NotAfter) && c.NotAfter.Sub(at) <= min(expiryWarning, c.NotAfter.Sub(c.NotBefore)/6)
}

// ExpiresSoon returns the problem that the certificate is about to expire, or none.
func (f Fetched) ExpiresSoon(at time.Time) []Problem {
	if f.Certificate == nil || !ExpiresSoon(f.Certificate, at) {
		return nil
	}
	return []Problem{{Kind: CertificateExpiresSoon, Text: f.Certificate.NotAfter.UTC().Format(time.DateOnly)}}
}

// PolicyHost returns the name of the web server that serves the policy of a domain.
func PolicyHost(domain string) string { return "mta-sts." + domain }

// Fetch fetches the policy of a domain as RFC 8461 §3.3 requires: over HTTPS with a
// certificate that is valid for the policy host, without redirects, and within a minute or
// the deadline of ctx. It reads at most MaxPolicySize bytes.
//
// The client provides the transport and the trusted roots; its cookies and redirect policy
// are not used. A connection that fails with dns.ErrNoAddress means that there is no
// policy host. Attackers can control the host name, so callers should use a transport that
// does not connect to private networks.
func Fetch(ctx context.Context, client *http.Client, domain string) Fetched {
	f := Fetched{Domain: dns.Name(domain)}
	host := PolicyHost(f.Domain)
	if !isLDHName(host) {
		f.Reason = "the policy host " + host + " is no host name"
		return f
	}
	f.URL = "https://" + host + "/.well-known/mta-sts.txt"
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, f.URL, http.NoBody)
	if err != nil {
		f.Reason = err.Error()
		return f
	}
	response, err := withoutRedirects(client).Do(request)
	if err != nil {
		f.fail(host, err)
		return f
	}
	defer func() { _ = response.Body.Close() }() // nothing was written
	f.read(host, response)
	return f
}

// withoutRedirects returns a client with the same transport that neither follows redirects
// nor stores cookies.
func withoutRedirects(client *http.Client) *http.Client {
	return &http.Client{
		Transport:     client.Transport,
		Timeout:       client.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// fail sets the status for a failed request.
func (f *Fetched) fail(host string, err error) {
	var failed *tls.CertificateVerificationError
	if errors.As(err, &failed) {
		f.failCertificate(host, failed.Err)
		return
	}
	f.Reason = err.Error()
	if errors.Is(err, dns.ErrNoAddress) {
		f.Status = FetchNoHost
	}
}

// failCertificate sets the status for an invalid certificate.
func (f *Fetched) failCertificate(host string, err error) {
	f.Status, f.Reason = FetchBadCertificate, err.Error()
	f.Problems = append(f.Problems, certificateProblem(host, err))
}

// verify checks again what the client should have verified: a client without verification,
// or for another name, must not make a policy trusted.
func verify(state *tls.ConnectionState, host string) error {
	if state == nil || len(state.VerifiedChains) == 0 {
		return errUnverified
	}
	return state.PeerCertificates[0].VerifyHostname(host)
}

// certificateProblem classifies a certificate error.
func certificateProblem(host string, err error) Problem {
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &name):
		return Problem{Kind: CertificateName, Text: host}
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return Problem{Kind: CertificateExpired}
	default:
		return Problem{Kind: CertificateUntrusted, Text: err.Error()}
	}
}

// read processes the response of the web server.
func (f *Fetched) read(host string, response *http.Response) {
	if err := verify(response.TLS, host); err != nil {
		f.failCertificate(host, err)
		return
	}
	f.Code, f.Certificate = response.StatusCode, response.TLS.PeerCertificates[0]
	switch {
	case f.Code == http.StatusOK:
		f.body(response)
	case f.Code >= 300 && f.Code < 400:
		f.Status, f.Location = FetchRedirect, response.Header.Get("Location")
	default:
		f.Status = FetchBadStatus
	}
}

// body parses the policy.
func (f *Fetched) body(response *http.Response) {
	text, err := io.ReadAll(io.LimitReader(response.Body, MaxPolicySize+1))
	if err != nil {
		f.Reason = err.Error()
		return
	}
	contentType := response.Header.Get("Content-Type")
	if mediaType, _, err := mime.ParseMediaType(contentType); err != nil || mediaType != "text/plain" {
		f.Problems = append(f.Problems, Problem{Kind: MediaType, Text: contentType})
	}
	f.Policy = ParsePolicy(string(text))
	f.Status = FetchInvalid
	if f.Policy.Valid {
		f.Status = FetchOK
	}
}
