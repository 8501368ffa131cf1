package certificate

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/caddyserver/certmagic"
	"github.com/mholt/acmez/v3"
	"github.com/mholt/acmez/v3/acme"

	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/internal/cache"
	"github.com/dmarcd/dmarcd/internal/secret"
)

const (
	// OrderTimeout limits an order.
	OrderTimeout = 2 * time.Minute
	// requestTimeout limits a request to the authority.
	requestTimeout = 30 * time.Second
	// firstPause and maxPause limit how long an authority that asks for patience gets it.
	firstPause = 10 * time.Minute
	// awayPause is the time after an attempt to reach an authority that did not answer.
	awayPause = 10 * time.Second
	maxPause  = 8 * 24 * time.Hour
	// maxCached is the number of certificates in memory.
	maxCached = 2000
)

// LaterError is an answer of the authority that asks to wait: the rate of orders is too high, or it
// is overloaded.
type LaterError struct {
	Until time.Time
	// All is true if all orders have to wait, and not only those of the host's organization.
	All bool
	err error
}

func (e *LaterError) Error() string { return e.err.Error() }

func (e *LaterError) Unwrap() error { return e.err }

// HostsOptions configure Hosts.
type HostsOptions struct {
	Directory, Email string // as in Options
	Database         Database
	Secrets          *secret.Keys
	Log              *slog.Logger

	// Tests set these; the zero values are the defaults.
	Roots   *x509.CertPool // that sign the certificate of the authority's own server
	Timeout time.Duration  // of a request
}

// Hosts gets certificates for any number of hosts. Unlike an Authority it orders them when it is told
// to, and never because of a handshake. Replicas share the certificates, and answer each other's
// challenges. It is safe for concurrent use.
type Hosts struct {
	options HostsOptions
	storage *storage
	client  acmez.Client
	loaded  *cache.Cache[string, *tls.Certificate] // nil values are hosts without one

	asking chan struct{} // full while a caller asks for the directory
	away   time.Time     // until then the authority is not asked for it

	mu      sync.Mutex
	account acme.Account
}

var errAway = errors.New("the authority did not answer a moment ago")

// NewHosts returns Hosts with the certificates in the database.
func NewHosts(options HostsOptions) *Hosts {
	options.Directory = cmp.Or(options.Directory, certmagic.LetsEncryptProductionCA)
	h := &Hosts{
		options: options, storage: &storage{database: options.Database, secrets: options.Secrets, log: options.Log},
		loaded: cache.New[string, *tls.Certificate](maxCached), asking: make(chan struct{}, 1),
	}
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, IdleConnTimeout: time.Minute,
		TLSClientConfig: &tls.Config{RootCAs: options.Roots, MinVersion: tls.VersionTLS12},
	}
	h.client = acmez.Client{
		Client: &acme.Client{
			Directory:  options.Directory,
			HTTPClient: &http.Client{Transport: patient{transport}, Timeout: cmp.Or(options.Timeout, requestTimeout)},
			UserAgent:  "dmarcd",
		},
		ChallengeSolvers: map[string]acmez.Solver{acme.ChallengeTypeTLSALPN01: solver{h.storage}},
	}
	return h
}

// Identities returns the names of the authority for CAA records (RFC 8555 §9.7.6), none if it does not
// say.
func (h *Hosts) Identities(ctx context.Context) ([]string, error) {
	directory, err := h.directory(ctx)
	if err != nil || directory.Meta == nil {
		return nil, err
	}
	return directory.Meta.CAAIdentities, nil
}

// directory returns the directory of the authority, which the client keeps. One caller at a time asks for
// it, and after a failure the others get its error for a while: an authority that does not answer would
// hold them all, one after the other.
func (h *Hosts) directory(ctx context.Context) (acme.Directory, error) {
	select {
	case h.asking <- struct{}{}:
		defer func() { <-h.asking }()
	case <-ctx.Done():
		return acme.Directory{}, ctx.Err()
	}
	if time.Now().Before(h.away) {
		return acme.Directory{}, errAway
	}
	directory, err := h.client.GetDirectory(ctx)
	if err != nil && ctx.Err() == nil {
		h.away = time.Now().Add(awayPause)
	}
	return directory, err
}

// pair is a stored certificate.
type pair struct {
	Certificate, Key []byte // PEM
}

func hostFile(host string) string { return "hosts/" + host }

func (h *Hosts) accountFile() string { return "accounts/" + h.options.Directory }

func challengeFile(host string) string { return "challenges/" + host }

// load returns the stored certificate of a host, or fs.ErrNotExist.
func (h *Hosts) load(ctx context.Context, host string) (*tls.Certificate, error) {
	var stored pair
	if err := h.read(ctx, hostFile(host), &stored); err != nil {
		return nil, err
	}
	certificate, err := tls.X509KeyPair(stored.Certificate, stored.Key)
	return &certificate, err
}

func (h *Hosts) read(ctx context.Context, name string, to any) error {
	content, err := h.storage.Load(ctx, name)
	if err != nil {
		return err
	}
	return json.Unmarshal(content, to)
}

func (s *storage) write(ctx context.Context, name string, content any) error {
	encoded, err := json.Marshal(content)
	if err != nil {
		return err
	}
	return s.Store(ctx, name, encoded)
}

// GetCertificate returns the certificate for a handshake with a host that is known to be served here,
// or the answer to a challenge of the authority. A host without a certificate is fs.ErrNotExist.
func (h *Hosts) GetCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	ctx, host := hello.Context(), strings.ToLower(hello.ServerName)
	if slices.Contains(hello.SupportedProtos, ChallengeProtocol) {
		var challenge acme.Challenge
		if err := h.read(ctx, challengeFile(host), &challenge); err != nil {
			return nil, err
		}
		return acmez.TLSALPN01ChallengeCert(challenge)
	}
	certificate, ok := h.loaded.Get(host)
	if !ok {
		var err error
		if certificate, err = h.load(ctx, host); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		h.loaded.Put(host, certificate, 1)
	}
	if certificate == nil {
		return nil, fs.ErrNotExist
	}
	return certificate, nil
}

// Changed drops the certificate of a host from memory: it may have been renewed.
func (h *Hosts) Changed(host string) { h.loaded.Delete(host) }

// Remove deletes the certificate of a host.
func (h *Hosts) Remove(ctx context.Context, host string) error {
	defer h.Changed(host)
	return h.options.Database.DeleteCertificateFile(ctx, hostFile(host))
}

// Order gets a certificate for a host, which replaces the one that it has. An answer that asks to wait
// is a *LaterError.
func (h *Hosts) Order(ctx context.Context, host string) error {
	ctx, cancel := context.WithTimeout(ctx, OrderTimeout)
	defer cancel()
	asked := new(time.Time)
	err := h.order(context.WithValue(ctx, patience{}, asked), host)
	var problem acme.Problem
	if errors.As(err, &problem) && problem.Type == acme.ProblemTypeAccountDoesNotExist {
		h.mu.Lock() // the next order registers another one
		h.account, _ = acme.Account{}, h.options.Database.DeleteCertificateFile(ctx, h.accountFile())
		h.mu.Unlock()
	}
	if errors.Is(err, context.DeadlineExceeded) && asked.IsZero() { // other orders would wait as long
		return &LaterError{Until: time.Now().Add(OrderTimeout), All: true, err: err}
	}
	if err == nil || asked.IsZero() {
		return err
	}
	// A limit of the account does not name whose orders were too many.
	named := problem.Type == acme.ProblemTypeRateLimited && strings.Contains(problem.Detail, dmarc.LegacyOrganization(host))
	return &LaterError{Until: *asked, All: !named, err: err}
}

func (h *Hosts) order(ctx context.Context, host string) error {
	if _, err := h.directory(ctx); err != nil {
		return err
	}
	account, err := h.register(ctx)
	if err != nil {
		return fmt.Errorf("register an account: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	request, err := acmez.NewCSR(key, []string{host})
	if err != nil {
		return err
	}
	parameters, err := acmez.OrderParametersFromCSR(account, request)
	if err != nil {
		return err
	}
	if previous, err := h.load(ctx, host); err == nil && time.Now().Before(previous.Leaf.NotAfter) {
		parameters.Replaces = h.replaceable(ctx, previous.Leaf)
	}
	chains, err := h.client.ObtainCertificate(ctx, parameters)
	if err != nil {
		return err
	}
	encoded, err := certmagic.PEMEncodePrivateKey(key)
	if err != nil || len(chains) == 0 {
		return cmp.Or(err, errors.New("the authority sent no certificate"))
	}
	issued := pair{Certificate: chains[0].ChainPEM, Key: encoded}
	if _, err := tls.X509KeyPair(issued.Certificate, issued.Key); err != nil {
		return err
	}
	defer h.Changed(host)
	return h.storage.write(ctx, hostFile(host), issued)
}

// replaceable returns a certificate that the authority has renewal information about, else nil: only
// then an order may name it (RFC 9773 §5).
func (h *Hosts) replaceable(ctx context.Context, leaf *x509.Certificate) *x509.Certificate {
	if info, err := h.client.GetRenewalInfo(ctx, leaf); err != nil || !info.HasWindow() {
		return nil
	}
	return leaf
}

// Renewal returns when the certificate of a host ends, and when to replace it: at the time that the
// authority suggests (RFC 9773), or else after two thirds of its life. Without a certificate it is
// fs.ErrNotExist.
func (h *Hosts) Renewal(ctx context.Context, host string) (notAfter, renewAt time.Time, err error) {
	certificate, err := h.load(ctx, host)
	if err != nil {
		return time.Time{}, time.Time{}, err
	}
	leaf := certificate.Leaf
	life := leaf.NotAfter.Sub(leaf.NotBefore)
	renewAt = leaf.NotBefore.Add(2 * life / 3)
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if _, err := h.directory(ctx); err == nil {
		if info, err := h.client.GetRenewalInfo(ctx, leaf); err == nil && info.HasWindow() {
			renewAt = info.SelectedTime
		}
	}
	if latest := leaf.NotAfter.Add(-life / 20); renewAt.After(latest) {
		renewAt = latest
	}
	return leaf.NotAfter, renewAt, nil
}

// account is what is stored of the account.
type account struct {
	Account acme.Account
	Key     []byte // PEM
}

// register returns the account, which the first order of all replicas registers.
func (h *Hosts) register(ctx context.Context) (acme.Account, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.account.Status == acme.StatusValid {
		return h.account, nil
	}
	name := h.accountFile()
	if err := h.storage.Lock(ctx, name); err != nil {
		return acme.Account{}, err
	}
	defer func() { _ = h.storage.Unlock(context.WithoutCancel(ctx), name) }() // or its lease ends
	var stored account
	err := h.read(ctx, name, &stored)
	if err == nil {
		if stored.Account.PrivateKey, err = certmagic.PEMDecodePrivateKey(stored.Key); err == nil {
			h.account = stored.Account
		}
		return h.account, err
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return acme.Account{}, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return acme.Account{}, err
	}
	wanted := acme.Account{TermsOfServiceAgreed: true, PrivateKey: key}
	if h.options.Email != "" {
		wanted.Contact = []string{"mailto:" + h.options.Email}
	}
	if stored.Account, err = h.client.NewAccount(ctx, wanted); err != nil {
		return acme.Account{}, err
	}
	if stored.Key, err = certmagic.PEMEncodePrivateKey(key); err != nil {
		return acme.Account{}, err
	}
	if err := h.storage.write(ctx, name, stored); err != nil {
		return acme.Account{}, err
	}
	h.account = stored.Account
	return h.account, nil
}

// solver stores challenges of TLS-ALPN-01 (RFC 8737), so that any replica can answer.
type solver struct{ storage *storage }

// Present implements acmez.Solver.
func (s solver) Present(ctx context.Context, challenge acme.Challenge) error {
	return s.storage.write(ctx, challengeFile(challenge.Identifier.Value), challenge)
}

// CleanUp implements acmez.Solver.
func (s solver) CleanUp(ctx context.Context, challenge acme.Challenge) error {
	return s.storage.database.DeleteCertificateFile(context.WithoutCancel(ctx), challengeFile(challenge.Identifier.Value))
}

// patience is the key of a *time.Time in the context of an order: until when the authority asked to
// wait.
type patience struct{}

var errPatience = errors.New("the authority asked to wait")

// patient ends an order at an answer that asks to wait. The client would repeat the request.
type patient struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (p patient) RoundTrip(r *http.Request) (*http.Response, error) {
	asked, _ := r.Context().Value(patience{}).(*time.Time)
	if asked != nil && !asked.IsZero() {
		return nil, errPatience
	}
	response, err := p.RoundTripper.RoundTrip(r)
	if err == nil && asked != nil && (response.StatusCode == http.StatusTooManyRequests || response.StatusCode == http.StatusServiceUnavailable) {
		*asked = retryAt(response.Header.Get("Retry-After"), time.Now())
	}
	return response, err
}

// retryAt reads a Retry-After header (RFC 9110 §10.2.3).
func retryAt(header string, now time.Time) time.Time {
	wait := firstPause
	if seconds, err := strconv.Atoi(header); err == nil && seconds >= 0 {
		wait = time.Duration(min(seconds, int(maxPause.Seconds()))) * time.Second
	} else if at, err := http.ParseTime(header); err == nil {
		wait = at.Sub(now)
	}
	return now.Add(min(max(wait, 0), maxPause))
}
