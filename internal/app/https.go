package app

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"time"

	"github.com/dmarcd/dmarcd/internal/api"
	"github.com/dmarcd/dmarcd/internal/certificate"
	"github.com/dmarcd/dmarcd/internal/clientaddr"
	"github.com/dmarcd/dmarcd/internal/config"
	"github.com/dmarcd/dmarcd/internal/store"
)

// The limits of an HTTP/2 connection. A connection carries many requests with a header each, and
// what a client sends before it is read is in memory, unlike the kernel's buffers of HTTP/1.1.
const (
	maxStreamHeaderBytes = 16 << 10
	maxStreams           = 16
	maxUnread            = 128 << 10
	maxFrame             = 16 << 10 // the minimum that the protocol permits
	strictTransport      = "max-age=31536000"
)

// secure gets the certificate of the server ready, as the setting tls says.
func (a *App) secure() (err error) {
	cfg := a.config
	switch cfg.TLS {
	case config.TLSFiles:
		files, err := certificate.NewFiles(cfg.TLSCertificate, cfg.TLSKey, time.Now, a.log)
		if err != nil {
			return fmt.Errorf("prepare HTTPS (tls_certificate and tls_key): %w", err)
		}
		a.certificate = files.GetCertificate
	case config.TLSAuto:
		options := certificate.Options{
			Host: hostOf(cfg.BaseURL), Directory: cfg.ACME.Directory, Email: cfg.ACME.Email,
			Database: a.store, Secrets: secretKeys(cfg), Log: a.log,
		}
		if len(cfg.DNS) > 0 {
			options.Resolver = cfg.DNS[0]
		}
		_, port, _ := net.SplitHostPort(cfg.Listen) // of the listener
		options.Port, _ = strconv.Atoi(port)
		if options.Port != certificate.TLSPort {
			a.log.Warn(fmt.Sprintf("the certificate authority connects to port %d or %d: forward port %[1]d to this one, leave port %[2]d free, or set DMARCD_LISTEN=:%[1]d",
				certificate.TLSPort, certificate.HTTPPort), "host", options.Host, "port", options.Port)
		}
		if a.authority, err = certificate.NewAuthority(options); err != nil {
			return fmt.Errorf("prepare HTTPS: %w", err)
		}
		a.certificate = a.policies.getCertificate(a.authority.GetCertificate)
	}
	return nil
}

// hostOf returns the host of a valid URL.
func hostOf(baseURL string) string {
	u, err := url.Parse(baseURL)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// serverTLS returns the configuration of the HTTPS listener, nil for plain HTTP.
func (a *App) serverTLS() *tls.Config {
	if a.certificate == nil {
		return nil
	}
	c := &tls.Config{GetCertificate: a.certificate, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
	if a.authority != nil {
		c.NextProtos = append(c.NextProtos, certificate.ChallengeProtocol)
	}
	return c
}

// strict has browsers use only HTTPS, if this server serves it.
func (a *App) strict(next http.Handler) http.Handler {
	if a.certificate == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Strict-Transport-Security", strictTransport)
		next.ServeHTTP(w, r)
	})
}

// limitStreams applies the limits of connections to requests over HTTP/2, of which a connection
// carries many at once.
func (c *connections) limitStreams(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor >= 2 {
			network := clientaddr.Network(r)
			if !c.addStream(network, 1) {
				w.Header().Set("Retry-After", "1")
				api.WriteMessage(w, http.StatusServiceUnavailable, "There are too many requests at once. Try again in a moment.")
				return
			}
			defer c.addStream(network, -1)
		}
		next.ServeHTTP(w, r)
	})
}

// addStream counts a stream that begins or ends, and reports whether it is within the limits.
func (c *connections) addStream(network netip.Prefix, n int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n > 0 && (c.streams >= c.max || c.streamsByNetwork[network] >= c.perNetwork) {
		return false
	}
	c.streams += n
	if c.streamsByNetwork[network] += n; c.streamsByNetwork[network] == 0 {
		delete(c.streamsByNetwork, network)
	}
	return true
}

// diagnoseHTTPS reports what the HTTP listener serves. Whether there is a certificate by ACME is
// in the database.
func diagnoseHTTPS(cfg config.Config) []Diagnosis {
	switch cfg.TLS {
	case config.TLSFiles:
		pair, err := tls.LoadX509KeyPair(cfg.TLSCertificate, cfg.TLSKey)
		if err != nil {
			return []Diagnosis{{partHTTPS, Sick, err.Error(), "Correct DMARCD_TLS_CERTIFICATE and DMARCD_TLS_KEY, or the files."}}
		}
		return []Diagnosis{diagnoseCertificate(pair.Leaf, hostOf(cfg.BaseURL), "Replace the files; no restart is needed.")}
	case config.TLSAuto:
		return nil
	}
	return []Diagnosis{{partHTTPS, Healthy, "Plain HTTP is served on " + cfg.Listen + "; HTTPS is up to a reverse proxy (DMARCD_TLS=off).", ""}}
}

const partHTTPS = "HTTPS"

// diagnoseAuthority reports the certificate by ACME.
func diagnoseAuthority(ctx context.Context, cfg config.Config, s *store.Store) []Diagnosis {
	if cfg.TLS != config.TLSAuto {
		return nil
	}
	host := hostOf(cfg.BaseURL)
	leaf, err := certificate.Stored(ctx, s, secretKeys(cfg), host)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return []Diagnosis{{partHTTPS, Advised, "There is no certificate for " + host + " yet.", "Start dmarcd, and read its log: it says why if it gets none."}}
	case err != nil:
		return []Diagnosis{{partHTTPS, Unseen, err.Error(), "Try again."}}
	}
	return []Diagnosis{diagnoseCertificate(leaf, host, "The log of dmarcd says why it was not renewed.")}
}

// renewalDue is the rest of its life at which a certificate should have been replaced.
const renewalDue = 0.2

func diagnoseCertificate(leaf *x509.Certificate, host, fix string) Diagnosis {
	what := fmt.Sprintf("HTTPS is served for %s with a certificate that is valid until %s.", host, leaf.NotAfter.UTC().Format(time.RFC3339))
	rest := time.Until(leaf.NotAfter)
	switch {
	case rest <= 0:
		return Diagnosis{partHTTPS, Sick, "The certificate for " + host + " expired at " + leaf.NotAfter.UTC().Format(time.RFC3339) + ".", fix}
	case leaf.VerifyHostname(host) != nil:
		return Diagnosis{partHTTPS, Sick, "The certificate is not valid for " + host + ", the host of DMARCD_BASE_URL.", fix}
	case rest.Seconds() < renewalDue*leaf.NotAfter.Sub(leaf.NotBefore).Seconds():
		return Diagnosis{partHTTPS, Advised, what, fix}
	}
	return Diagnosis{partHTTPS, Healthy, what, ""}
}
