// Package app wires the daemon: New connects store, resolver, API and jobs from one
// configuration, and Run runs them until it is stopped. Commands and end-to-end tests use it.
// It contains no use cases.
package app

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/api"
	"github.com/dmarcd/dmarcd/internal/auth"
	"github.com/dmarcd/dmarcd/internal/certificate"
	"github.com/dmarcd/dmarcd/internal/clientaddr"
	"github.com/dmarcd/dmarcd/internal/config"
	"github.com/dmarcd/dmarcd/internal/dnscheck"
	"github.com/dmarcd/dmarcd/internal/fair"
	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/intake"
	"github.com/dmarcd/dmarcd/internal/intake/spool"
	"github.com/dmarcd/dmarcd/internal/mcp"
	"github.com/dmarcd/dmarcd/internal/memory"
	"github.com/dmarcd/dmarcd/internal/notify"
	mailer "github.com/dmarcd/dmarcd/internal/notify/mail"
	"github.com/dmarcd/dmarcd/internal/outbound"
	"github.com/dmarcd/dmarcd/internal/publish"
	"github.com/dmarcd/dmarcd/internal/recovered"
	"github.com/dmarcd/dmarcd/internal/resolver"
	"github.com/dmarcd/dmarcd/internal/secret"
	"github.com/dmarcd/dmarcd/internal/senders"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/starttls"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/trace"
	"github.com/dmarcd/dmarcd/internal/upload"
)

// drainTimeout is how long running requests may take after a stop. The whole stop takes less
// than 10 s.
const drainTimeout = 8 * time.Second

// Options are the inputs of an App other than the configuration.
type Options struct {
	Log *slog.Logger
	// Out receives the token and the instructions of the first start.
	Out io.Writer
	// Version is exported as a metric.
	Version string
	// Invitation is shown at the start instead of the first user's; the zero value shows that
	// one.
	Invitation Invitation
	// Demo means that all data is demo data.
	Demo bool
	// Trace configures the export of traces; without a URL there is none.
	Trace trace.Options
	// Policies is for tests of MTA-STS policies; the zero value is the default.
	Policies struct {
		Roots *x509.CertPool // of certificates
		Retry time.Duration  // see service.Policies
	}
}

// Invitation is a one-time link.
type Invitation struct {
	// Secret is the secret in the link, For the name of the user.
	Secret, For string
	// Token is a token for the API that is shown with the link, "" for none.
	Token string
}

// App is the daemon.
type App struct {
	config  config.Config // with the actual listen address
	options Options
	log     *slog.Logger

	store         *store.Store
	resolver      *resolver.Resolver
	dialer        *outbound.Dialer
	checker       *dnscheck.Checker
	authenticator *auth.Authenticator
	acceptor      *intake.Acceptor
	service       *service.Service
	uploads       *upload.Gate
	atlas         *senders.Atlas
	names         *senders.Names
	insight       *insight.Service
	memory        *memory.Budget
	spool         *spool.Spool // nil if this process handles no mail
	mail          *mail        // nil if SMTP is disabled
	zone          *zoneServer  // nil without a zone
	policies      *policyHosts // nil if no policies are served
	deliveries    *notify.Worker
	metrics       *metrics
	listener      net.Listener
	connections   *connections
	server        *http.Server
	certificate   func(*tls.ClientHelloInfo) (*tls.Certificate, error) // nil for plain HTTP
	authority     *certificate.Authority                               // nil without ACME
	stopping      atomic.Bool
	lowDisk       atomic.Bool    // what detectLowDisk found last
	ending        chan struct{}  // closed when no new requests are accepted
	requests      sync.WaitGroup // running requests
	tracer        *trace.Tracer  // nil if traces are disabled
}

// New opens and migrates the database, creates the first team and token if there are none, and
// listens. Run closes what New opened.
func New(ctx context.Context, cfg config.Config, options Options) (_ *App, err error) {
	a := &App{config: cfg, options: options, log: options.Log, ending: make(chan struct{})}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.close())
		}
	}()
	if cfg.Token != "" && !auth.ValidToken(cfg.Token) {
		return nil, errors.New("the configured token (DMARCD_TOKEN) has a wrong checksum; create a token with `dmarcd token create`")
	}
	keys := secretKeys(cfg)
	if err := keys.Check(); err != nil { // a command that prints them runs now, and not in a transaction
		return nil, err
	}
	a.memory = memory.NewBudget(memory.FindLimit().Reads())
	measured := newStages()
	a.metrics = newMetrics(options.Version, measured)
	if cfg.Zone != "" {
		if a.zone, err = a.listenForZone(ctx); err != nil {
			return nil, err
		}
	}
	if a.store, err = a.awaitStore(ctx, keys, measured.observeQuery(options.Log, slowQuery)); err != nil {
		return nil, err
	}
	a.metrics.watch(a.store)
	if err := a.store.CheckAuditKey(ctx); err != nil { // reports are received all the same
		a.log.ErrorContext(ctx, "secret key missing: users cannot sign in, and changes cannot be saved", "error", err)
	}
	if err := a.store.SetReportDomain(ctx, cfg.ReportDomain); err != nil {
		return nil, fmt.Errorf("record the report domain: %w", err)
	}
	if options.Trace.URL != "" {
		options.Trace.Version, options.Trace.Log = options.Version, options.Log
		a.tracer = trace.New(options.Trace)
	}
	registerTracer(a.metrics.registry, a.tracer)
	a.metrics.registry.MustRegister(spoolCollector{a}, zoneCollector{a})
	a.resolver = NewResolver(cfg, a.metrics.observeDNS, a.recovered)
	if err := a.resolver.Err(); err != nil {
		a.log.Warn("no DNS server configured, all checks will be inconclusive", "error", err)
	}
	a.dialer = newDialer(cfg, a.resolver)
	a.checker = newChecker(cfg, a.resolver, a.log)
	a.authenticator = auth.NewAuthenticator(a.store, time.Now, a.log)
	_ = os.MkdirAll(cfg.Data, 0o700) // without it, temporary files go to the system default
	a.acceptor = a.newAcceptor(cfg)
	a.uploads = upload.NewGate(upload.DefaultLimits())
	if a.atlas, err = OpenAtlas(cfg); err != nil {
		return nil, err
	}
	a.names = senders.NewNames(a.resolver, a.store, time.Now, a.log)
	a.names.Recovered = a.recovered
	if a.insight, err = newInsight(cfg, a.atlas, a.names, a.memory, a.options.Demo); err != nil {
		return nil, err
	}

	if a.listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", cfg.Listen); err != nil {
		return nil, fmt.Errorf("listen for HTTP (is another dmarcd running? set DMARCD_LISTEN to use another address): %w", err)
	}
	a.config = cfg.Listening(a.listener.Addr())
	if err := a.listenForPolicies(); err != nil {
		return nil, err
	}
	if err := a.secure(); err != nil {
		return nil, err
	}
	a.connections = newConnections(maxConnections, maxPerAddress, cfg.TrustedProxies)
	handler, err := a.handler()
	if err != nil {
		return nil, err
	}
	if a.spool, err = a.openSpool(); err != nil {
		return nil, err
	}
	if cfg.SMTPListen != "" {
		if a.mail, err = a.listenForMail(ctx); err != nil {
			return nil, err
		}
	}
	if a.zone != nil {
		if err := a.zone.open(ctx, a.store); err != nil {
			return nil, err
		}
	}
	if err := a.store.SwitchProof(ctx); err != nil {
		return nil, err
	}
	if err := a.greet(ctx); err != nil {
		return nil, err
	}
	a.listener = a.connections.listen(a.listener)
	a.server = newServer(handler, a.serverTLS(), a.log)
	a.server.ConnState = a.connections.state
	return a, nil
}

// databaseRetry is the time between attempts to open the database at the start.
const databaseRetry = 2 * time.Second

// awaitStore opens the database. If a PostgreSQL server is away and there is a snapshot of the zone, it waits
// and DNS queries are answered from the snapshot: the name servers of the zone must not be away with it.
func (a *App) awaitStore(ctx context.Context, keys *secret.Keys, took func(query string, took time.Duration)) (*store.Store, error) {
	for {
		s, err := openStore(ctx, a.config, keys, a.log, took)
		if err == nil || a.zone == nil || !a.zone.restored || !store.IsPostgres(a.config.Database) || !errors.Is(err, dmarcd.ErrTemporary) {
			return s, err
		}
		if !a.zone.answers() {
			a.log.Warn("database unavailable, only DNS queries are answered", "error", err)
			a.log.Info("answering DNS queries from the snapshot", "address", a.zone.server.Addr(), "zone", a.config.Zone, "serial", a.zone.zone.Serial(), "names", a.zone.zone.Size())
			a.zone.start(ctx)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(databaseRetry):
		}
	}
}

// openStore opens and migrates the database. took sees its statements; it may be nil.
func openStore(ctx context.Context, cfg config.Config, keys *secret.Keys, log *slog.Logger, took func(query string, took time.Duration)) (*store.Store, error) {
	if !store.IsPostgres(cfg.Database) {
		if err := os.MkdirAll(cfg.Data, 0o700); err != nil {
			return nil, fmt.Errorf("create the data folder (set by DMARCD_DATA): %w", err)
		}
	}
	s, err := store.Open(ctx, cfg.Database, store.Options{Quota: defaultQuota, DomainProof: cfg.DomainProof == config.ProofOn, Secrets: keys, Log: log, Took: took})
	if err != nil {
		return nil, err
	}
	if _, err := s.Migrate(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// defaultQuota is the quota of a team: far above what a company needs, and low enough for one
// tenant of many. `dmarcd team quota` changes it for a team.
var defaultQuota = dmarcd.Quota{
	dmarcd.QuotaDomains: 10_000, dmarcd.QuotaStored: 10 << 30, dmarcd.QuotaUnreadable: 256 << 20,
	dmarcd.QuotaReports: 20_000, dmarcd.QuotaMailboxes: 20,
}

// maxQuestions limits concurrent DNS queries, per server and in total. It is far above what
// the schedule uses, so that checks on request never wait for it.
const maxQuestions = 1024

// NewResolver returns the DNS client; observe and panics may be nil.
func NewResolver(cfg config.Config, observe func(dns.Outcome, time.Duration), panics recovered.Boundary) *resolver.Resolver {
	return resolver.New(resolver.Config{
		Servers: cfg.DNS, Timeout: cfg.Resolver.Timeout, Observe: observe, Recovered: panics,
		MaxInflight: maxQuestions, MaxInflightPerServer: maxQuestions,
	})
}

// newChecker returns the DNS checker.
func newChecker(cfg config.Config, r *resolver.Resolver, log *slog.Logger) *dnscheck.Checker {
	options := dnscheck.Options{
		Resolver:     r.Fresh(),
		Dialer:       outbound.Dialer{Allow: cfg.Outbound.Allow},
		ReportDomain: cfg.ReportDomain,
		Interval:     cfg.Schedule.Interval,
		FullInterval: cfg.Schedule.FullInterval(),
		Now:          time.Now,
	}
	if cfg.MX.Probe == config.ProbeOn {
		hostname := cmp.Or(cfg.ReportDomain, "localhost")
		options.DialMX = starttls.New(starttls.Options{Dial: newDialer(cfg, r).DialContext, Hostname: hostname, Now: time.Now, Log: log}).Certificates
	}
	return dnscheck.New(options)
}

// newDialer returns the dialer for hosts that outsiders choose.
func newDialer(cfg config.Config, r dns.Resolver) *outbound.Dialer {
	return &outbound.Dialer{Resolver: r, Allow: cfg.Outbound.Allow}
}

func (a *App) handler() (http.Handler, error) {
	provider, err := a.singleSignOn()
	if err != nil {
		return nil, err
	}
	relay, err := newRelay(a.config)
	if err != nil {
		return nil, err
	}
	digest := func(ctx context.Context, team dmarcd.TeamID, e dmarcd.Event) (mailer.Content, error) {
		return a.service.DigestContent(ctx, team, e)
	}
	a.deliveries = newDeliveries(a.store, a.config, a.dialer, relay, digest, a.log)
	a.deliveries.Observe, a.deliveries.Recovered = a.metrics.observeDelivery, a.recovered
	a.service = service.New(a.store, withMail(service.Options{
		Checker: a.checker, DNS: a.resolver.Fresh(), Policies: a.policyService(), Acceptor: a.acceptor, Insight: a.insight, Memory: a.memory, Verifier: a.verifier(),
		Secrets: secretKeys(a.config), Mailboxes: mailboxLogins{a.dialer}, Publisher: publish.New(a.dialer), Outbound: a.dialer, Deliveries: a.deliveries,
		SelfTests: newSelfTests(a.config, a.resolver, func() string {
			if a.mail == nil {
				return ""
			}
			return a.mail.listener.Addr().String()
		}),
		Sample: a.sample(), Retention: a.retention(), OIDC: provider,
		BaseURL: a.config.BaseURL, ReportDomain: a.config.ReportDomain, DomainProof: a.config.DomainProof == config.ProofOn, ReceivesMail: a.config.SMTPListen != "", Stopping: a.ending, Now: time.Now, Log: a.log,
	}, relay))
	interfaceAPI, err := api.New(api.Options{
		Service:       a.service,
		Authenticator: a.authenticator,
		MaxUpload:     int64(a.config.Limit.Upload),
		Uploads:       a.uploads,
		BaseURL:       a.config.BaseURL,
		RateLimit:     a.config.RateLimit,
		CORSOrigins:   a.config.HTTP.CORSOrigins,
		WriteTimeout:  writeTimeout,
		Version:       a.options.Version,
		Now:           time.Now,
		Log:           a.log,
	})
	if err != nil {
		return nil, err
	}
	page, err := a.webPage()
	if err != nil {
		return nil, err
	}
	assistants, err := mcp.New(mcp.Options{
		BaseURL: a.config.BaseURL, Origins: a.config.HTTP.CORSOrigins, ReportDomain: a.config.ReportDomain,
		Version: a.options.Version, Recovered: a.recovered, Log: a.log,
	})
	if err != nil {
		return nil, err
	}
	return clientaddr.Behind(a.config.TrustedProxies, a.strict(a.observed(a.connections.limitStreams(a.policies.handler(a.dispatch(interfaceAPI, assistants.Handler(interfaceAPI.Admit), page)))))), nil
}

// withMail adds the relay, if there is one.
func withMail(options service.Options, relay *mailer.Relay) service.Options {
	if relay != nil {
		options.Mail = relay
	}
	return options
}

// Config returns the configuration with the actual listen address.
func (a *App) Config() config.Config { return a.config }

// Run serves until ctx ends or a component fails. It then drains requests, waits for all
// goroutines, and closes what New opened.
func (a *App) Run(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, a.close()) }()
	limit := memory.FindLimit()
	memory.SetLimit(limit)
	fair.Oversubscribe()
	a.log.Info("memory limit set", "bytes", limit.Bytes, "source", limit.Source, "read_bytes", limit.Reads())
	a.log.Info("serving", "address", a.listener.Addr().String(), "base_url", a.config.BaseURL, "tls", a.config.TLS,
		"database", a.store.Stats().Engine, "version", a.options.Version)
	if a.mail != nil {
		a.log.Info("receiving mail", "address", a.mail.listener.Addr().String(), "report_domain", a.config.ReportDomain)
	}

	// It ends after all others, which may still end spans.
	tracing, end := context.WithCancel(context.WithoutCancel(ctx))
	defer a.runTracer(tracing)() // waits
	defer end()
	group, ctx := errgroup.WithContext(a.tracer.With(ctx))
	group.Go(func() error { return a.serve(ctx) })
	if a.authority != nil {
		group.Go(func() error { return a.authority.Run(ctx) })
	}
	group.Go(func() error { return a.authenticator.Run(ctx) })
	group.Go(func() error { return a.names.Run(ctx) })
	group.Go(func() error { return a.deliveries.Run(ctx) })
	group.Go(func() error { return a.service.SendPosted(ctx) })
	if a.config.Schedule.Rate > 0 {
		group.Go(func() error { return a.checks().Run(ctx) })
	}
	if a.config.Zone != "" {
		group.Go(func() error { return a.refreshSPF().Run(ctx) })
	}
	for _, chore := range a.chores() {
		group.Go(func() error { return chore.Run(ctx) })
	}
	if a.zone != nil {
		a.log.Info("answering DNS queries", "address", a.zone.server.Addr(), "zone", a.config.Zone)
		group.Go(func() error { return a.zone.run(ctx) })
	}
	if a.policies != nil {
		group.Go(func() error { return a.runPolicies(ctx) })
	}
	a.runIntake(ctx, group)
	err = group.Wait()
	a.log.Info("stopped")
	return err
}

// serve serves HTTP until ctx ends, then drains requests.
func (a *App) serve(ctx context.Context) error {
	failed := make(chan error, 1)
	go func() {
		if a.certificate != nil {
			failed <- a.server.ServeTLS(a.listener, "", "")
			return
		}
		failed <- a.server.Serve(a.listener)
	}()
	select {
	case err := <-failed:
		return fmt.Errorf("serve HTTP: %w", err)
	case <-ctx.Done():
	}
	a.stopping.Store(true)
	close(a.ending)
	a.log.Info("stopping")
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	if err := a.server.Shutdown(drain); err != nil {
		a.log.Warn("requests interrupted by shutdown", "error", err)
		_ = a.server.Close() // cut off the rest
	}
	<-failed
	a.requests.Wait() // Close does not wait for handlers
	return nil
}

func (a *App) close() error {
	var errs []error
	if a.listener != nil && a.server == nil {
		errs = append(errs, a.listener.Close()) // else the server closes it
	}
	if a.mail != nil {
		errs = append(errs, a.mail.close())
	}
	if a.zone != nil {
		errs = append(errs, a.zone.close())
	}
	if a.spool != nil {
		errs = append(errs, a.spool.Close())
	}
	if a.resolver != nil {
		a.resolver.Close()
	}
	if a.store != nil {
		errs = append(errs, a.store.Close())
	}
	return errors.Join(errs...)
}
