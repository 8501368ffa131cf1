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

// fetchTimeout is how long fetching may take; RFC 8461 §3.3 suggests it.
const fetchTimeout = time.Minute

// errUnverified is why an answer does not count that came over a connection whose
// certificate nobody looked at.
var errUnverified = errors.New("the client did not verify the certificate")

// FetchStatus tells what fetching a policy came to.
type FetchStatus uint8

const (
	// FetchInconclusive means that nothing answered: the host could not be looked
	// up, there is no connection, no TLS, or no answer in time. Nothing is stated about the policy.
	FetchInconclusive FetchStatus = iota
	// FetchOK means that there is a valid policy.
	FetchOK
	// FetchInvalid means that there is a policy, and that it is not valid.
	FetchInvalid
	// FetchBadCertificate means that the certificate of the web server is not valid
	// for the policy host, so that nothing it says counts.
	FetchBadCertificate
	// FetchRedirect means that the web server leads elsewhere, which senders must
	// not follow.
	FetchRedirect
	// FetchBadStatus means that the web server answered with another status than
	// 200.
	FetchBadStatus
	// FetchNoHost means that the policy host has no address, so that there is no
	// policy.
	FetchNoHost
)

// String returns the status in words.
func (s FetchStatus) String() string {
	switch s {
	case FetchOK:
		return "ok"
	case FetchInvalid:
		return "invalid"
	case FetchBadCertificate:
		return "bad certificate"
	case FetchRedirect:
		return "redirect"
	case FetchBadStatus:
		return "bad status"
	case FetchNoHost:
		return "no host"
	default:
		return "inconclusive"
	}
}

// Fetched is what fetching the policy of a domain came to.
type Fetched struct {
	// Domain is the domain whose policy was asked for, and URL where that is.
	Domain, URL string
	// Status tells what it came to.
	Status FetchStatus
	// Policy is the policy that was served, the zero value unless Status is FetchOK
	// or FetchInvalid.
	Policy Policy
	// Code is the status code of HTTP, 0 where there was no answer that counts.
	Code int
	// Location is where a redirect leads to, as the web server wrote it.
	Location string
	// Problems holds what is wrong beside the problems of the policy itself.
	Problems []Problem
	// Reason says in words why Status is FetchInconclusive, FetchNoHost or
	// FetchBadCertificate.
	Reason string
}

// PolicyHost returns the name of the web server that serves the policy of a domain.
func PolicyHost(domain string) string { return "mta-sts." + domain }

// Fetch fetches the policy of a domain as RFC 8461 §3.3 asks: over HTTPS with a
// certificate that is valid for the policy host, without following redirects, and
// within a minute or the deadline of ctx. At most MaxPolicySize bytes are read.
//
// The client supplies the connection and the trusted authorities; its cookies and
// its rule for redirects are not used. A connection that fails with dns.ErrNoAddress
// means that there is no policy host. Since a stranger decides where the host name
// leads to, callers that fetch for others should give it a transport that does not
// connect to private networks.
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
		f.refuse(host, err)
		return f
	}
	defer func() { _ = response.Body.Close() }() // nothing was written
	f.read(host, response)
	return f
}

// withoutRedirects returns a client over the same transport that follows no
// redirects and keeps no cookies.
func withoutRedirects(client *http.Client) *http.Client {
	return &http.Client{
		Transport:     client.Transport,
		Timeout:       client.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// refuse tells why there was no answer.
func (f *Fetched) refuse(host string, err error) {
	var failed *tls.CertificateVerificationError
	if errors.As(err, &failed) {
		f.refuseCertificate(host, failed.Err)
		return
	}
	f.Reason = err.Error()
	if errors.Is(err, dns.ErrNoAddress) {
		f.Status = FetchNoHost
	}
}

// refuseCertificate tells why the certificate is not valid.
func (f *Fetched) refuseCertificate(host string, err error) {
	f.Status, f.Reason = FetchBadCertificate, err.Error()
	f.Problems = append(f.Problems, certificateProblem(host, err))
}

// verify holds a connection to what the client should have seen to already: one
// that verifies nothing, or another name, must not make a policy trusted.
func verify(state *tls.ConnectionState, host string) error {
	if state == nil || len(state.VerifiedChains) == 0 {
		return errUnverified
	}
	return state.PeerCertificates[0].VerifyHostname(host)
}

// certificateProblem tells what is wrong with a certificate.
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

// read takes the answer of the web server.
func (f *Fetched) read(host string, response *http.Response) {
	if err := verify(response.TLS, host); err != nil {
		f.refuseCertificate(host, err)
		return
	}
	f.Code = response.StatusCode
	switch {
	case f.Code == http.StatusOK:
		f.body(response)
	case f.Code >= 300 && f.Code < 400:
		f.Status, f.Location = FetchRedirect, response.Header.Get("Location")
	default:
		f.Status = FetchBadStatus
	}
}

// body reads the policy.
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
