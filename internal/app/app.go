// Package app puts the daemon together: New wires the store, the resolver, the
// API and the jobs from one configuration, and Run runs them until it is told
// to stop. The command line and the end-to-end tests use it; it decides nothing
// that belongs to one of the parts.
package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/api"
	"github.com/dmarcd/dmarcd/internal/auth"
	"github.com/dmarcd/dmarcd/internal/clientaddr"
	"github.com/dmarcd/dmarcd/internal/config"
	"github.com/dmarcd/dmarcd/internal/dnscheck"
	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/intake"
	"github.com/dmarcd/dmarcd/internal/memory"
	"github.com/dmarcd/dmarcd/internal/notify"
	"github.com/dmarcd/dmarcd/internal/outbound"
	"github.com/dmarcd/dmarcd/internal/recovered"
	"github.com/dmarcd/dmarcd/internal/resolver"
	"github.com/dmarcd/dmarcd/internal/senders"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/upload"
)

// drainTimeout is how long requests may take to end after a stop was asked for.
// The whole stop takes less than 10 s.
const drainTimeout = 8 * time.Second

// Options are what an App needs beside the configuration.
type Options struct {
	Log *slog.Logger
	// Out is where the first start tells the token and what to do next.
	Out io.Writer
	// Version is told by the metrics.
	Version string
	// Known are senders that are recognised before those that everybody knows.
	Known []senders.Sender
	// Invite is a link to tell of at the start, in the place of that of the first
	// user; the zero value is none.
	Invite Invite
}

// Invite is a one-time link.
type Invite struct {
	// Secret is what the link holds, For the name of whom it lets in.
	Secret, For string
}

// App is the daemon.
type App struct {
	config  config.Config // with the address that is listened on
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
	sources       *insight.Service
	memory        *memory.Budget
	mail          *mail // nil where none is received
	deliveries    *notify.Worker
	metrics       *metrics
	listener      net.Listener
	server        *http.Server
	stopping      atomic.Bool
	ending        chan struct{}  // closed when no new requests are taken
	requests      sync.WaitGroup // those that are being served
}

// New opens the database, brings it to the present schema, makes the first team
// and token where there are none, and listens. What it opened is closed by Run.
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
	a.memory = memory.NewBudget(int64(cfg.Limit.ReadMemory))
	if a.store, err = openStore(ctx, cfg, options.Log); err != nil {
		return nil, err
	}
	if err := a.store.SetReportDomain(ctx, cfg.ReportDomain); err != nil {
		return nil, fmt.Errorf("record the report domain: %w", err)
	}
	a.metrics = newMetrics(a.store, options.Version)
	a.resolver = NewResolver(cfg, a.metrics.observeDNS, a.recovered)
	if err := a.resolver.Err(); err != nil {
		a.log.Warn("no DNS server configured, all checks will be inconclusive", "error", err)
	}
	a.dialer = NewDialer(cfg, a.resolver)
	a.checker = NewChecker(cfg, a.resolver)
	a.authenticator = auth.NewAuthenticator(a.store, time.Now, a.log)
	_ = os.MkdirAll(cfg.Data, 0o700) // where that fails, temporary files go to the system's folder
	a.acceptor = NewAcceptor(cfg, a.log)
	a.uploads = upload.NewGate(upload.DefaultLimits())
	a.acceptor.Lanes = intake.NewLanes(runtime.GOMAXPROCS(0))
	a.acceptor.Received = a.metrics.observeReceipts
	if a.atlas, err = OpenAtlas(cfg); err != nil {
		return nil, err
	}
	a.names = senders.NewNames(a.resolver, nameKeeper{a.store}, time.Now, a.log)
	a.names.Recovered = a.recovered
	catalogue, err := OpenCatalogue(cfg, options.Known)
	if err != nil {
		return nil, err
	}
	a.sources = insight.New(a.atlas, catalogue, a.names, a.memory)

	if a.listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", cfg.Listen); err != nil {
		return nil, fmt.Errorf("listen for HTTP (is another dmarcd running? set DMARCD_LISTEN to use another address): %w", err)
	}
	a.config = cfg.Listening(a.listener.Addr())
	handler, err := a.handler()
	if err != nil {
		return nil, err
	}
	if cfg.SMTPListen != "" {
		if a.mail, err = a.listenForMail(ctx); err != nil {
			return nil, err
		}
	}
	if err := a.greet(ctx); err != nil {
		return nil, err
	}
	bound := newConnections(cfg.HTTP.MaxConnections, cfg.HTTP.MaxPerAddress, cfg.TrustedProxies)
	a.listener = bound.listen(a.listener)
	a.server = newServer(handler, a.config.HTTP, a.log)
	a.server.ConnState = bound.state
	return a, nil
}

// openStore opens the database of a configuration and brings it to the present schema.
func openStore(ctx context.Context, cfg config.Config, log *slog.Logger) (*store.Store, error) {
	if !store.IsPostgres(cfg.Database) {
		if err := os.MkdirAll(cfg.Data, 0o700); err != nil {
			return nil, fmt.Errorf("create the data folder (set by DMARCD_DATA): %w", err)
		}
	}
	s, err := store.Open(ctx, cfg.Database, store.Options{Quota: quotas(cfg.Quota), Log: log})
	if err != nil {
		return nil, err
	}
	if _, err := s.Migrate(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// quotas returns what a team may have that has no quota of its own.
func quotas(cfg config.Quota) dmarcd.Quota {
	return dmarcd.Quota{
		dmarcd.QuotaDomains: int64(cfg.Domains), dmarcd.QuotaStored: int64(cfg.Stored), dmarcd.QuotaUnreadable: int64(cfg.Unreadable),
		dmarcd.QuotaReports: int64(cfg.Reports), dmarcd.QuotaMailboxes: int64(cfg.Mailboxes),
	}
}

// maxQuestions is how many DNS questions are under way at once, to one server
// and in all: far more than the schedule has, so that a verification that
// somebody waits for never stands in its line.
const maxQuestions = 1024

// NewResolver returns the DNS client of a configuration; observe and panics may be nil.
func NewResolver(cfg config.Config, observe func(dns.Outcome, time.Duration), panics recovered.Boundary) *resolver.Resolver {
	return resolver.New(resolver.Config{
		Servers: cfg.DNS, Timeout: cfg.Resolver.Timeout, Observe: observe, Recovered: panics,
		MaxInflight: maxQuestions, MaxInflightPerServer: maxQuestions,
	})
}

// NewChecker returns the checker of a configuration.
func NewChecker(cfg config.Config, r *resolver.Resolver) *dnscheck.Checker {
	return dnscheck.New(dnscheck.Options{
		Resolver:     r.Fresh(),
		Dialer:       outbound.Dialer{Allow: cfg.Outbound.Allow},
		ReportDomain: cfg.ReportDomain,
		Interval:     cfg.Schedule.Interval,
		FullInterval: cfg.Schedule.FullInterval,
		Now:          time.Now,
	})
}

// NewDialer returns the dialer of a configuration for hosts that outsiders choose.
func NewDialer(cfg config.Config, r dns.Resolver) *outbound.Dialer {
	return &outbound.Dialer{Resolver: r, Allow: cfg.Outbound.Allow}
}

// handler returns all that is served by HTTP.
func (a *App) handler() (http.Handler, error) {
	provider, err := a.singleSignOn()
	if err != nil {
		return nil, err
	}
	a.deliveries = newDeliveries(a.store, a.config, a.dialer, a.log)
	a.deliveries.Observe, a.deliveries.Recovered = a.metrics.observeDelivery, a.recovered
	options := withMailboxes(service.Options{
		Checker: a.checker, Acceptor: a.acceptor, Insight: a.sources, Memory: a.memory, Verify: a.uploadVerdict,
		Examine: a.examineOnRequest(), Retention: a.retention(), OIDC: provider,
		BaseURL: a.config.BaseURL, ReportDomain: a.config.ReportDomain, Stopping: a.ending, Now: time.Now, Log: a.log,
	}, a.config, a.dialer)
	a.service = service.New(a.store, withWebhooks(options, a.config, a.dialer, a.deliveries))
	interfaceAPI, err := api.New(api.Options{
		Service:       a.service,
		Authenticator: a.authenticator,
		Acceptor:      a.acceptor,
		MaxUpload:     int64(a.config.Limit.Upload),
		Uploads:       a.uploads,
		BaseURL:       a.config.BaseURL,
		RateLimit:     a.config.RateLimit,
		CORSOrigins:   a.config.HTTP.CORSOrigins,
		WriteTimeout:  a.config.HTTP.WriteTimeout,
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
	return clientaddr.Behind(a.config.TrustedProxies, a.observed(a.dispatch(interfaceAPI, page))), nil
}

// Config returns the configuration with the address that is listened on.
func (a *App) Config() config.Config { return a.config }

// Run serves until ctx ends or something breaks. It then lets requests end,
// waits for all that it started, and closes what New opened.
func (a *App) Run(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, a.close()) }()
	limit := memory.FindLimit(int64(a.config.Limit.Memory))
	memory.SetLimit(limit)
	a.log.Info("memory limit set", "bytes", limit.Bytes, "source", limit.Source, "read_bytes", a.config.Limit.ReadMemory)
	a.log.Info("serving", "address", a.listener.Addr().String(), "base_url", a.config.BaseURL,
		"database", a.store.Stats().Engine, "version", a.options.Version)
	if a.mail != nil {
		a.log.Info("receiving mail", "address", a.mail.listener.Addr().String(), "report_domain", a.config.ReportDomain)
	}

	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return a.serve(ctx) })
	group.Go(func() error { return a.authenticator.Run(ctx) })
	group.Go(func() error { return a.names.Run(ctx) })
	group.Go(func() error { return a.deliveries.Run(ctx) })
	if a.config.Schedule.Rate > 0 {
		group.Go(func() error { return a.checks().Run(ctx) })
	}
	for _, chore := range a.chores() {
		group.Go(func() error { return chore.Run(ctx) })
	}
	a.runIntake(ctx, group)
	err = group.Wait()
	a.log.Info("stopped")
	return err
}

// serve serves HTTP until ctx ends, and then until the last request has.
func (a *App) serve(ctx context.Context) error {
	failed := make(chan error, 1)
	go func() { failed <- a.server.Serve(a.listener) }()
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
		_ = a.server.Close() // what did not end is cut
	}
	<-failed
	a.requests.Wait() // the server does not wait for those that it cut
	return nil
}

// close closes what New opened.
func (a *App) close() error {
	var errs []error
	if a.listener != nil && a.server == nil {
		errs = append(errs, a.listener.Close()) // else the server closes it
	}
	if a.mail != nil {
		errs = append(errs, a.mail.close())
	}
	if a.resolver != nil {
		a.resolver.Close()
	}
	if a.store != nil {
		errs = append(errs, a.store.Close())
	}
	return errors.Join(errs...)
}
