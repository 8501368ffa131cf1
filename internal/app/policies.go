package app

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/api"
	"github.com/dmarcd/dmarcd/internal/certificate"
	"github.com/dmarcd/dmarcd/internal/config"
	"github.com/dmarcd/dmarcd/internal/jobs"
	"github.com/dmarcd/dmarcd/internal/recovered"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/mtasts"
)

const (
	// policyPath is what policy hosts serve, and nothing else.
	policyPath = "/.well-known/mta-sts.txt"
	// policyClaim is how long a step of a policy host may take: an order and reading the policy.
	policyClaim = certificate.OrderTimeout + 3*time.Minute
	// policyRate is the maximum number of steps started per second.
	policyRate = 20
	// policyPoll is the time between two polls for changes.
	policyPoll = time.Second
)

// policyHosts serves the MTA-STS policies of managed records from memory. It holds a lease in the
// database, so that the id of a policy is published when no replica serves another one.
type policyHosts struct {
	store *store.Store
	certs *certificate.Hosts
	own   string // the host of the page
	log   *slog.Logger
	now   func() time.Time

	version, leased int64
	renewed         time.Time

	mu     sync.RWMutex
	until  time.Time // of the lease
	byHost map[string]store.PolicyHost
}

// listenForPolicies gets the policy hosts ready, if the configuration has addresses for them.
func (a *App) listenForPolicies() error {
	cfg := a.config
	if len(cfg.ZoneAddresses) == 0 {
		return nil
	}
	if cfg.TLS != config.TLSAuto {
		return errors.New("policies need certificates: set DMARCD_TLS=auto, or unset DMARCD_ZONE_ADDRESSES")
	}
	a.policies = &policyHosts{
		store: a.store, own: strings.ToLower(hostOf(cfg.BaseURL)), log: a.log, now: time.Now, byHost: make(map[string]store.PolicyHost),
		certs: newPolicyCertificates(cfg, a.store, a.options.Policies.Roots, a.log),
	}
	return nil
}

func newPolicyCertificates(cfg config.Config, s *store.Store, roots *x509.CertPool, log *slog.Logger) *certificate.Hosts {
	return certificate.NewHosts(certificate.HostsOptions{
		Directory: cfg.ACME.Directory, Email: cfg.ACME.Email, Database: s, Secrets: secretKeys(cfg), Log: log, Roots: roots,
	})
}

// newPolicies returns what publishing a policy needs, nil if none are served.
func newPolicies(cfg config.Config, certificates service.Certificates) *service.Policies {
	if len(cfg.ZoneAddresses) == 0 {
		return nil
	}
	p := &service.Policies{Certificates: certificates}
	for _, text := range cfg.ZoneAddresses {
		if address, err := netip.ParseAddr(text); err == nil {
			p.Addresses = append(p.Addresses, address.Unmap())
		}
	}
	return p
}

// policyService returns what the service needs to serve policies, nil if none are served.
func (a *App) policyService() *service.Policies {
	if a.policies == nil {
		return nil
	}
	p := newPolicies(a.config, a.policies.certs)
	p.Retry = a.options.Policies.Retry
	// A host may not reach its own public address.
	host, port, _ := net.SplitHostPort(a.listener.Addr().String())
	if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() {
		host = "localhost"
	}
	p.Client = &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: a.options.Policies.Roots, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, net.JoinHostPort(host, port))
		},
	}}
	return p
}

// runPolicies serves policies until ctx ends.
func (a *App) runPolicies(ctx context.Context) error {
	defer func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeTimeout)
		defer cancel()
		if err := a.store.EndPolicies(ending); err != nil {
			a.log.Debug("lease of policies not ended", "error", err)
		}
	}()
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { a.policies.run(ctx) })
	due := jobs.Due[store.PolicyHost]{
		Name: "serve MTA-STS policies", Teams: a.store.PolicyTeams, Rate: policyRate, Log: a.log,
		Claim: func(ctx context.Context, _ time.Duration, slots map[dmarcd.TeamID]int) ([]store.PolicyHost, error) {
			return a.store.ClaimPolicyHosts(ctx, policyClaim, slots)
		},
		TeamOf: func(h store.PolicyHost) dmarcd.TeamID { return h.Team },
		Do: func(ctx context.Context, h store.PolicyHost) {
			ctx, cancel := context.WithTimeout(ctx, policyClaim)
			defer cancel()
			err := recovered.Boundary(a.recovered).Call("serve an MTA-STS policy", func() error { return a.service.CheckPolicyHost(ctx, h) })
			if err != nil && ctx.Err() == nil {
				a.log.Error("policy host not checked", "domain", h.Domain, "error", err)
			}
		},
	}
	return due.Run(ctx)
}

// run polls for changes until ctx ends.
func (p *policyHosts) run(ctx context.Context) {
	ticks := time.NewTicker(policyPoll)
	defer ticks.Stop()
	for away := false; ; {
		err := p.sync(ctx)
		if err != nil && !away && ctx.Err() == nil {
			p.log.WarnContext(ctx, "policies not updated; they are served until the lease ends", "lease", store.PolicyLease.String(), "error", err)
		}
		away = err != nil
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
	}
}

// sync reads changes. The lease is renewed first, with the version that is served at that time: what is
// committed before another process can no longer see the old lease is part of what is read afterwards.
func (p *policyHosts) sync(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	began := p.now()
	renew := p.leased != p.version || began.Sub(p.renewed) >= store.PolicyLease/3
	if renew {
		if err := p.store.LeasePolicies(ctx, p.version); err != nil {
			return err
		}
		p.leased = p.version
	}
	version, changed, err := p.store.PolicyHosts(ctx, p.version)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if version < p.version { // a backup was restored
		p.version, p.until = 0, time.Time{}
		clear(p.byHost)
		return nil
	}
	for _, h := range changed { // of a version, those that are no longer verified are first
		host := mtasts.PolicyHost(h.Domain)
		p.certs.Changed(host)
		switch {
		case h.Verified:
			p.byHost[host] = h
		case p.byHost[host].Label == h.Label:
			delete(p.byHost, host)
		}
	}
	p.version = version
	if renew {
		p.renewed, p.until = began, began.Add(store.PolicyLease)
	}
	return nil
}

// find returns what is served at a host, and whether this process may serve policies now.
func (p *policyHosts) find(host string) (h store.PolicyHost, found, leased bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	h, found = p.byHost[host]
	now := p.now()
	return h, found && (h.ExpiresAt.IsZero() || now.Before(h.ExpiresAt)), now.Before(p.until)
}

// owns reports whether a name is one of policy hosts, known or not. p may be nil.
func (p *policyHosts) owns(host string) bool {
	return p != nil && strings.HasPrefix(host, mtasts.PolicyHost("")) && host != p.own
}

// getCertificate has policy hosts use their own certificates, and none for others that only begin like
// them: a CNAME record of an outsider gets no certificate.
func (p *policyHosts) getCertificate(others func(*tls.ClientHelloInfo) (*tls.Certificate, error)) func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		host := dns.Name(hello.ServerName)
		if !p.owns(host) {
			return others(hello)
		}
		if _, found, _ := p.find(host); !found {
			return nil, fmt.Errorf("no policy is served at %q", host)
		}
		return p.certs.GetCertificate(hello)
	}
}

// handler serves policies at their hosts, and next at all others.
func (p *policyHosts) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		if host = dns.Name(host); !p.owns(host) {
			next.ServeHTTP(w, r)
			return
		}
		note(w, "route", policyPath)
		h, found, leased := p.find(host)
		switch {
		case r.TLS == nil || dns.Name(r.TLS.ServerName) != host:
			api.WriteMessage(w, http.StatusMisdirectedRequest, "This connection is for another host.")
		case !found || r.URL.EscapedPath() != policyPath:
			api.WriteMessage(w, http.StatusNotFound, "There is nothing here.")
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			api.WriteMessage(w, http.StatusMethodNotAllowed, "A policy is read with GET.")
		case !leased: // senders use the policy that they have
			w.Header().Set("Retry-After", "30")
			api.WriteMessage(w, http.StatusServiceUnavailable, "The database is unavailable, so the policy may be an old one.")
		default:
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			w.Header().Set("Cache-Control", "no-store")
			_, _ = w.Write([]byte(strings.TrimSpace(h.Policy) + "\n")) // the client is gone
		}
	})
}
