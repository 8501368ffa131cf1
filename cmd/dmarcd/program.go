package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/lmittmann/tint"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/app"
	"github.com/dmarcd/dmarcd/internal/config"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/store"
)

// The exit statuses. Where several things were asked, the greatest is told.
const (
	exitDone    = 0
	exitRefused = 1 // refused, or found bad
	exitFailed  = 2 // wrong usage, or could not look
)

// errRefused ends a command that has told its refusals already.
var errRefused = errors.New("refused")

// program is one run of the command line.
type program struct {
	in       io.Reader
	out, err io.Writer
	environ  []string

	begun bool // the command line was right, and its command began
}

// run runs the command that args name and returns the exit status.
func (p *program) run(ctx context.Context, args []string) int {
	root := p.rootCommand()
	root.SetArgs(args)
	root.SetIn(p.in)
	root.SetOut(p.out)
	root.SetErr(p.err)
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && !p.begun {
		err = fmt.Errorf("%w; see %q", err, cmd.CommandPath()+" --help")
	}
	if err != nil && !errors.Is(err, errRefused) {
		p.say("dmarcd: %s\n", strings.ReplaceAll(err.Error(), "\n", "\ndmarcd: "))
	}
	return exitStatus(err)
}

// say tells a person something beside the result.
func (p *program) say(format string, args ...any) {
	_, _ = fmt.Fprintf(p.err, format, args...) // there is no other place to tell it
}

// exitStatus tells a refusal from all that kept us from finding out.
func exitStatus(err error) int {
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, errRefused), errors.Is(err, dmarcd.ErrNotFound), errors.Is(err, dmarcd.ErrConflict),
		errors.Is(err, dmarcd.ErrInvalid), errors.Is(err, dmarcd.ErrForbidden):
		return exitRefused
	}
	return exitFailed
}

func (p *program) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "dmarcd",
		Short: "The DMARC daemon: watches the DNS of mail domains and tells how they stand",
		Long: `dmarcd watches the DNS of a team's mail domains, takes in the reports that mail
receivers send about them, and tells who sends mail as them and whether it passes: on a
web page, and as JSON.

    dmarcd serve                runs the daemon; the first start makes a team and a token
    dmarcd demo                 shows it with a year of made-up reports
    dmarcd check DOMAIN         says what is wrong with a domain, without a server
    dmarcd doctor               says what is wrong with an installation

Every setting can be given in a file (--config, TOML or YAML), in the environment
or as a flag, and the later wins; "dmarcd config" shows what holds.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noArguments,
	}
	root.RunE = showHelp
	root.Flags().SortFlags = false
	flags := root.PersistentFlags()
	flags.SortFlags = false
	flags.String("config", "", "the configuration file, TOML or YAML")
	for _, s := range config.Settings() {
		flags.String(s.Flag(), "", fmt.Sprintf("%s (%s; default: %s)", s.Help, s.Env(), s.Default))
	}
	root.AddCommand(
		p.serveCommand(), p.demoCommand(), p.checkCommand(), p.parseCommand(), p.importCommand(), p.teamCommand(), p.tokenCommand(), p.domainCommand(),
		p.reportCommand(), p.mailboxCommand(), p.userCommand(),
		p.configCommand(), p.migrateCommand(), p.backupCommand(), p.doctorCommand(), p.versionCommand(),
	)
	// The settings belong to every command; told once, they do not bury a
	// command's own flags.
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(),
		"{{.InheritedFlags.FlagUsages | trimTrailingWhitespaces}}", `  those of the settings: see "dmarcd --help" or "dmarcd config"`))
	p.complete(root)
	p.noteBeginnings(root)
	return root
}

// noteBeginnings has each command note that it was called rightly: what goes wrong
// before is about the usage, and its help is what to read next.
func (p *program) noteBeginnings(cmd *cobra.Command) {
	if run := cmd.RunE; run != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			p.begun = true
			return run(cmd, args)
		}
	}
	for _, sub := range cmd.Commands() {
		p.noteBeginnings(sub)
	}
}

// showHelp is what a command does that only leads to others.
func showHelp(cmd *cobra.Command, _ []string) error { return cmd.Help() }

// wrongUsage makes an error of a word that the command line does not know: not
// something refused, but something that cannot be meant.
func wrongUsage(err error) error { return errors.New(err.Error()) }

// noArguments refuses words that no command takes.
func noArguments(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("unknown command %q", args[0])
	}
	return nil
}

// configuration returns the effective configuration of a command.
func (p *program) configuration(cmd *cobra.Command) (config.Effective, error) {
	given := map[string]string{}
	cmd.Flags().Visit(func(f *pflag.Flag) { given[f.Name] = f.Value.String() })
	return config.Load(config.Input{File: given["config"], Environ: p.environ, Flags: given})
}

// withStore runs f with the database of the configuration, which must exist: a command
// that runs in the wrong folder must not leave an empty database there.
func (p *program) withStore(cmd *cobra.Command, f func(cfg config.Config, s *store.Store) error) error {
	effective, err := p.configuration(cmd)
	if err != nil {
		return err
	}
	database := effective.Config.Database
	if _, err := os.Stat(database); errors.Is(err, fs.ErrNotExist) && !store.IsPostgres(database) {
		return fmt.Errorf("there is no database %s; run the command where the daemon runs, or name its data folder with --data (DMARCD_DATA); `dmarcd serve` creates a new one", database)
	}
	return p.withNewStore(cmd, f)
}

// withNewStore is withStore for commands that may begin an installation: they create
// the database if there is none.
func (p *program) withNewStore(cmd *cobra.Command, f func(cfg config.Config, s *store.Store) error) error {
	effective, err := p.configuration(cmd)
	if err != nil {
		return err
	}
	cfg := effective.Config
	s, err := app.OpenStore(cmd.Context(), cfg, p.logger(cfg.Log))
	if err != nil {
		return err
	}
	if cfg.ReportDomain, err = reportDomain(cmd.Context(), s, cfg.ReportDomain); err == nil {
		err = f(cfg, s)
	}
	return errors.Join(err, s.Close())
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
		return "", fmt.Errorf("the daemon of this database has report_domain = %q, and this command %q; set DMARCD_REPORT_DOMAIN to the daemon's, or restart the daemon with the new one first", daemons, configured)
	}
	return daemons, nil
}

// withTeam is withStore for a command with the flag --team.
func (p *program) withTeam(cmd *cobra.Command, f func(cfg config.Config, t team) error) error {
	name, err := cmd.Flags().GetString("team")
	if err != nil {
		return err
	}
	return p.withStore(cmd, func(cfg config.Config, s *store.Store) error {
		found, err := teamByName(cmd.Context(), s, name)
		if err != nil {
			return err
		}
		return f(cfg, team{s.Team(found.ID), p.useCases(cfg, s).Team(found.ID, service.CommandLine())})
	})
}

// team is the team of a command: what it has, and what can be changed of it.
type team struct {
	*store.Team
	change *service.Team
}

// useCases returns what can be done to an installation without a running daemon.
func (p *program) useCases(cfg config.Config, s *store.Store) *service.Service {
	return service.New(s, app.WithMailboxes(service.Options{
		Acceptor: app.NewAcceptor(cfg, p.logger(cfg.Log)), BaseURL: cfg.BaseURL, ReportDomain: cfg.ReportDomain,
		Log: p.logger(cfg.Log),
	}, cfg))
}

// system returns what an operator can do to the installation.
func (p *program) system(cfg config.Config, s *store.Store) *service.System {
	return p.useCases(cfg, s).System(service.CommandLine())
}

func teamByName(ctx context.Context, s *store.Store, name string) (dmarcd.Team, error) {
	team, err := s.TeamByName(ctx, name)
	if errors.Is(err, dmarcd.ErrNotFound) {
		return team, fmt.Errorf("there is no team %q; `dmarcd team list` shows all: %w", name, err)
	}
	return team, err
}

// logger writes to standard error: coloured text for a person, JSON otherwise.
func (p *program) logger(cfg config.Log) *slog.Logger {
	terminal := isTerminal(p.err)
	if cfg.Format == config.FormatJSON || cfg.Format == config.FormatAuto && !terminal {
		return slog.New(slog.NewJSONHandler(p.err, &slog.HandlerOptions{Level: cfg.Level}))
	}
	colours := terminal && !slices.ContainsFunc(p.environ, func(v string) bool { return strings.HasPrefix(v, "NO_COLOR=") && v != "NO_COLOR=" })
	return slog.New(tint.NewTextHandler(p.err, &tint.Options{Level: cfg.Level, NoColor: !colours}))
}

func isTerminal(w any) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
