package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd/internal/config"
	"github.com/dmarcd/dmarcd/internal/demo"
	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/memory"
	"github.com/dmarcd/dmarcd/internal/publish"
	"github.com/dmarcd/dmarcd/internal/resolver"
	"github.com/dmarcd/dmarcd/internal/secret"
	"github.com/dmarcd/dmarcd/internal/senders"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/store"
)

// Installation gives commands access to the use cases, whether a daemon runs or not. Close it
// after use.
type Installation struct {
	// Config has the report domain of the daemon that uses the database.
	Config config.Config
	// Service cannot run full checks, and identifies senders only after OpenInsight.
	Service *service.Service
	Engine  string

	store    *store.Store
	resolver *resolver.Resolver
	options  service.Options
	log      *slog.Logger
}

// OpenInstallation opens and migrates the database of a configuration. The database must
// exist, so that a command in the wrong folder does not create an empty one.
func OpenInstallation(ctx context.Context, cfg config.Config, log *slog.Logger) (*Installation, error) {
	if !databaseExists(cfg) {
		return nil, fmt.Errorf("the database %s does not exist; run the command where the daemon runs, or set its data folder with --data (DMARCD_DATA); `dmarcd serve` creates a new one", cfg.Database)
	}
	return CreateInstallation(ctx, cfg, log)
}

// databaseExists reports whether a database file exists. Servers are checked on connection.
func databaseExists(cfg config.Config) bool {
	_, err := os.Stat(cfg.Database)
	return store.IsPostgres(cfg.Database) || !errors.Is(err, fs.ErrNotExist)
}

// CreateInstallation is OpenInstallation, but creates a missing database.
func CreateInstallation(ctx context.Context, cfg config.Config, log *slog.Logger) (_ *Installation, err error) {
	s, err := openStore(ctx, cfg, secretKeys(cfg), log, nil)
	if err != nil {
		return nil, err
	}
	if cfg.ReportDomain, err = reportDomain(ctx, s, cfg.ReportDomain); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	asks := NewResolver(cfg, nil, nil)
	dialer := newDialer(cfg, asks)
	relay, err := newRelay(cfg)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	options := withMail(service.Options{
		Checker: newChecker(cfg, asks, log), DNS: asks.Fresh(), Acceptor: NewAcceptor(cfg, log), Policies: newPolicies(cfg, newPolicyCertificates(cfg, s, nil, log)),
		Secrets: secretKeys(cfg), Mailboxes: mailboxLogins{dialer}, Publisher: publish.New(dialer), Outbound: dialer,
		Deliveries: newDeliveries(s, cfg, dialer, relay, nil, log),
		SelfTests:  newSelfTests(cfg, asks, func() string { return cfg.SMTPListen }),
		Memory:     memory.NewBudget(memory.FindLimit().Reads()),
		BaseURL:    cfg.BaseURL, ReportDomain: cfg.ReportDomain, Log: log,
	}, relay)
	return &Installation{
		Config: cfg, Service: service.New(s, options), Engine: s.Stats().Engine,
		store: s, resolver: asks, options: options, log: log,
	}, nil
}

// OpenInsight opens the network databases, the sender catalogue and the stored reverse names.
func (i *Installation) OpenInsight() error {
	atlas, err := OpenAtlas(i.Config)
	if err != nil {
		return err
	}
	names := senders.NewNames(i.resolver, i.store, time.Now, i.log)
	budget := memory.NewBudget(memory.FindLimit().Reads())
	if i.options.Insight, err = newInsight(i.Config, atlas, names, budget, false); err != nil {
		return err
	}
	i.Service = service.New(i.store, i.options)
	return nil
}

// Distribute shards the tables of teams over the workers of a Citus cluster; see
// store.Store.Distribute.
func (i *Installation) Distribute(ctx context.Context, progress func(done, all int, table string)) (tables int, err error) {
	return i.store.Distribute(ctx, progress)
}

// Close closes the database.
func (i *Installation) Close() error {
	i.resolver.Close()
	return i.store.Close()
}

// reportDomain returns the report domain of the daemon that uses the database. With another
// one, a command would show wrong addresses and check domains with them.
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

// TeamNames returns the names of all teams; none without a database. It neither creates nor
// migrates one.
func TeamNames(ctx context.Context, cfg config.Config) (_ []string, err error) {
	if !databaseExists(cfg) {
		return nil, nil
	}
	s, err := store.Open(ctx, cfg.Database, store.Options{Secrets: secretKeys(cfg), Log: slog.New(slog.DiscardHandler)})
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

// OpenAtlas opens the network and country databases in the data folder or next to the program.
func OpenAtlas(cfg config.Config) (*senders.Atlas, error) {
	folders := []string{cfg.Data}
	if program, err := os.Executable(); err == nil {
		folders = append(folders, filepath.Dir(program))
	}
	return senders.OpenAtlas(senders.FindFiles(folders...))
}

// openCatalogue returns the sender catalogue: the operator's file, then the built-in senders,
// then more.
func openCatalogue(cfg config.Config, more ...senders.Sender) (*senders.Catalogue, error) {
	var own []senders.Sender
	if cfg.Senders.Catalogue != "" {
		var err error
		if own, err = senders.ReadSenders(cfg.Senders.Catalogue); err != nil {
			return nil, err
		}
	}
	return senders.NewCatalogue(slices.Concat(own, senders.Known(), more)), nil
}

// newInsight returns what recognizes senders. The networks and senders of sample data, which
// use addresses that others use in examples, are known in teams with sample data only, and in
// the demo.
func newInsight(cfg config.Config, atlas *senders.Atlas, names insight.Names, budget *memory.Budget, isDemo bool) (*insight.Service, error) {
	catalogue, err := openCatalogue(cfg, demo.Senders()...)
	if err != nil {
		return nil, err
	}
	sample := insight.New(atlas.Preferring(demo.Locate), catalogue, names, budget)
	if isDemo {
		return sample, nil
	}
	if catalogue, err = openCatalogue(cfg); err != nil {
		return nil, err
	}
	plain := insight.New(atlas, catalogue, names, budget)
	plain.SetSample(sample)
	return plain, nil
}

// dumpParameters are the parameters of a database URL that pg_dump needs to connect as dmarcd
// does. pg_dump rejects those of dmarcd's driver, and the password must not be in the list of
// processes.
var dumpParameters = []string{
	"host", "port", "user", "dbname", "passfile", "sslmode", "sslcert", "sslkey", "sslrootcert", "sslnegotiation", "target_session_attrs",
}

// DumpCommand returns the command that backs up a PostgreSQL database to a file, without the spool,
// whose failure reports are not redacted yet. It is "" for SQLite.
func DumpCommand(database, file string) (string, error) {
	if !store.IsPostgres(database) {
		return "", nil
	}
	u, err := url.Parse(database)
	if err != nil {
		return "", err
	}
	if u.User != nil {
		u.User = url.User(u.User.Username())
	}
	query := u.Query()
	for name := range query {
		if !slices.Contains(dumpParameters, name) {
			query.Del(name)
		}
	}
	u.RawQuery = query.Encode()
	return "pg_dump --format=custom --exclude-table-data='spool*' --file=" + shellQuoted(file) + " --dbname=" + shellQuoted(u.String()), nil
}

func shellQuoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// AddKey puts a new key before those that encrypt secrets. Only a file can be changed.
func (i *Installation) AddKey() error {
	if c := i.Config.Secret; c.Key != "" || c.Command != "" {
		return errors.New("the keys are in secret.key or secret.command: put the new one before the old one there, restart the daemons, and run this command with --present")
	}
	return secret.AddKey(i.Config.Secret.File)
}
