package certificate

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"math/big"
	"net/http"
	"slices"
	"time"

	"github.com/caddyserver/certmagic"
	"github.com/mholt/acmez/v3"
	"go.uber.org/zap"

	"github.com/dmarcd/dmarcd/internal/secret"
)

// The ports that authorities connect to: for TLS-ALPN-01 (RFC 8737), which an HTTPS listener with
// the ChallengeProtocol answers, and for HTTP-01.
const (
	TLSPort           = certmagic.TLSALPNChallengePort
	HTTPPort          = certmagic.HTTPChallengePort
	ChallengeProtocol = acmez.ACMETLS1Protocol
)

const (
	// attemptTimeout limits an attempt to get the first certificate.
	attemptTimeout = 4 * time.Minute
	// The time between attempts doubles. Authorities allow few failed ones per hour.
	firstRetry = time.Minute
	lastRetry  = time.Hour
)

// Options configure an Authority.
type Options struct {
	// Host is the name in the certificate.
	Host string
	// Port is the port of the HTTPS listener. Unless it is TLSPort, HTTPPort is listened on
	// during an attempt, if that is possible.
	Port int
	// Directory is the URL of the authority's directory; "" is Let's Encrypt.
	Directory string
	// Email is the contact of the account; "" is none.
	Email string
	// Resolver is the host:port of a DNS server; "" is the system's.
	Resolver string
	Database Database
	Secrets  *secret.Keys
	Log      *slog.Logger

	// Tests set these; the zero values are the defaults.
	HTTPPort   int
	Roots      *x509.CertPool // that sign the certificate of the authority's own server
	FirstRetry time.Duration
	CheckEvery time.Duration // how often to look whether the certificate is to be renewed
}

// Authority gets a certificate and renews it. It is safe for concurrent use.
type Authority struct {
	options   Options
	cache     *certmagic.Cache
	magic     *certmagic.Config
	temporary *tls.Certificate
}

// NewAuthority returns an Authority without a certificate, which Run gets.
func NewAuthority(options Options) (*Authority, error) {
	temporary, err := selfSigned(options.Host)
	if err != nil {
		return nil, err
	}
	a := &Authority{options: options, temporary: temporary}
	a.cache = certmagic.NewCache(certmagic.CacheOptions{
		GetConfigForCert:   func(certmagic.Certificate) (*certmagic.Config, error) { return a.magic, nil },
		RenewCheckInterval: options.CheckEvery,
		Logger:             zap.NewNop(),
	})
	a.magic = certmagic.New(a.cache, certmagic.Config{
		Storage: &storage{database: options.Database, secrets: options.Secrets, log: options.Log},
		// Clients without server name indication, such as probes and mail servers, and those
		// with another name get the same certificate.
		DefaultServerName: options.Host, FallbackServerName: options.Host,
		OnEvent: a.observe, Logger: zap.NewNop(),
	})
	a.magic.Issuers = []certmagic.Issuer{certmagic.NewACMEIssuer(a.magic, certmagic.ACMEIssuer{
		CA: cmp.Or(options.Directory, certmagic.LetsEncryptProductionCA), Agreed: true,
		Email:          cmp.Or(options.Email, " "), // without any, certmagic reads one from the terminal
		AltTLSALPNPort: options.Port, AltHTTPPort: options.HTTPPort, DisableHTTPChallenge: options.Port == TLSPort,
		Resolver: options.Resolver, TrustedRoots: options.Roots, HTTPProxy: http.ProxyFromEnvironment, Logger: zap.NewNop(),
	})}
	return a, nil
}

// Run gets the certificate from the database or the authority, and renews it until ctx ends. An
// attempt that fails is logged and repeated.
func (a *Authority) Run(ctx context.Context) error {
	defer a.cache.Stop()
	for wait := cmp.Or(a.options.FirstRetry, firstRetry); ; wait = min(2*wait, lastRetry) {
		attempt, cancel := context.WithTimeout(ctx, attemptTimeout)
		err := a.magic.ManageSync(attempt, []string{a.options.Host})
		cancel()
		if err == nil {
			a.options.Log.Info("certificate ready", "host", a.options.Host)
			<-ctx.Done()
		}
		if ctx.Err() != nil {
			return nil
		}
		a.options.Log.Error("no certificate from the authority", "host", a.options.Host, "retry_in", wait.String(), "error", err)
		if sleep(ctx, wait) != nil {
			return nil
		}
	}
}

// observe logs events of renewals. Run logs the first certificate.
func (a *Authority) observe(_ context.Context, event string, data map[string]any) error {
	switch renewal, _ := data["renewal"].(bool); {
	case event == "cert_obtained":
		a.options.Log.Info("got a certificate from the authority", "host", a.options.Host, "renewal", renewal)
	case event == "cert_failed" && renewal:
		a.options.Log.Error("the certificate could not be renewed; the previous one stays", "host", a.options.Host, "remaining", data["remaining"], "error", data["error"])
	}
	return nil
}

// GetCertificate is the callback of a tls.Config. Until there is a certificate, a self-signed one
// is used: probes and mail servers, which do not verify it, are served.
func (a *Authority) GetCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	certificate, err := a.magic.GetCertificate(hello)
	if err != nil && !slices.Contains(hello.SupportedProtos, ChallengeProtocol) {
		return a.temporary, nil
	}
	return certificate, err
}

// selfSigned returns a certificate that no client trusts.
func selfSigned(host string) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{host}, NotAfter: time.Now().AddDate(1, 0, 0)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
