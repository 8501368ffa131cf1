package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"github.com/dmarcd/dmarcd/internal/config"
	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/memory"
	"github.com/dmarcd/dmarcd/internal/resolver"
	"github.com/dmarcd/dmarcd/internal/senders"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/store"
)

// Installation is what commands work on, whether a daemon runs or not. It must be closed.
type Installation struct {
	// Config has the report domain of the daemon that uses the database.
	Config config.Config
	// Service has no full checks, and knows who sends mail only after OpenInsight.
	Service *service.Service
	// Engine is the name of the database engine.
	Engine string

	store    *store.Store
	resolver *resolver.Resolver
	options  service.Options
	log      *slog.Logger
}

// OpenInstallation opens the installation of a configuration, and brings its database to
// the present schema. The database must exist: a command that runs in the wrong folder must
// not leave an empty one there.
func OpenInstallation(ctx context.Context, cfg config.Config, log *slog.Logger) (*Installation, error) {
	if !databaseExists(cfg) {
		return nil, fmt.Errorf("the database %s does not exist; run the command where the daemon runs, or set its data folder with --data (DMARCD_DATA); `dmarcd serve` creates a new one", cfg.Database)
	}
	return CreateInstallation(ctx, cfg, log)
}

// databaseExists reports whether a database in a file is there. A server is asked later.
func databaseExists(cfg config.Config) bool {
	_, err := os.Stat(cfg.Database)
	return store.IsPostgres(cfg.Database) || !errors.Is(err, fs.ErrNotExist)
}

// CreateInstallation is OpenInstallation, but makes the database if there is none.
func CreateInstallation(ctx context.Context, cfg config.Config, log *slog.Logger) (_ *Installation, err error) {
	s, err := openStore(ctx, cfg, log)
	if err != nil {
		return nil, err
	}
	if cfg.ReportDomain, err = reportDomain(ctx, s, cfg.ReportDomain); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	asks := NewResolver(cfg, nil, nil)
	dialer := NewDialer(cfg, asks)
	options := withMailboxes(service.Options{
		Checker: NewChecker(cfg, asks), Acceptor: NewAcceptor(cfg, log),
		BaseURL: cfg.BaseURL, ReportDomain: cfg.ReportDomain, Log: log,
	}, cfg, dialer)
	options = withWebhooks(options, cfg, dialer, newDeliveries(s, cfg, dialer, log))
	return &Installation{
		Config: cfg, Service: service.New(s, options), Engine: s.Stats().Engine,
		store: s, resolver: asks, options: options, log: log,
	}, nil
}

// OpenInsight opens what tells who sends mail: the databases of networks, the catalogue,
// and the names of addresses that the daemon has found.
func (i *Installation) OpenInsight() error {
	atlas, err := OpenAtlas(i.Config)
	if err != nil {
		return err
	}
	catalogue, err := OpenCatalogue(i.Config, nil)
	if err != nil {
		return err
	}
	names := senders.NewNames(i.resolver, nameKeeper{i.store}, time.Now, i.log)
	i.options.Insight = insight.New(atlas, catalogue, names, memory.NewBudget(int64(i.Config.Limit.ReadMemory)))
	i.Service = service.New(i.store, i.options)
	return nil
}

// Close releases the database.
func (i *Installation) Close() error {
	i.resolver.Close()
	return i.store.Close()
}

// reportDomain returns the report domain of the daemon that uses the database. A command
// with another one would show wrong reporting addresses, and judge domains by them.
func reportDomain(ctx context.Context, s *store.Store, configured string) (string, error) {
	daemons, recorded, err := s.ReportDomain(ctx)
	switch {
	case err != nil:
		return "", err
	case !recorded:
		return configured, nil
	case configured != "" && configured != daemons:
		return "", fmt.Errorf("the daemon of this database has report_domain = %q, but this command has %q; set DMARCD_REPORT_DOMAIN to the daemon's, or restart the daemon with the new one first", daemons, configured)
	}
	return daemons, nil
}

// TeamNames returns the names of the teams of an installation, none where it has no
// database. It makes no database, and does not migrate one.
func TeamNames(ctx context.Context, cfg config.Config) (_ []string, err error) {
	if !databaseExists(cfg) {
		return nil, nil
	}
	s, err := store.Open(ctx, cfg.Database, store.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	teams, err := s.Teams(ctx)
	names := make([]string, len(teams))
	for i, team := range teams {
		names[i] = team.Name
	}
	return names, err
}
