package main

import (
	"context"
	"errors"
	"fmt"
	"io"
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

// withInstallation runs f with the installation of the configuration, which must exist.
func (p *program) withInstallation(cmd *cobra.Command, f func(i *app.Installation) error) error {
	return p.with(cmd, app.OpenInstallation, f)
}

// withNewInstallation is withInstallation for commands that may begin an installation.
func (p *program) withNewInstallation(cmd *cobra.Command, f func(i *app.Installation) error) error {
	return p.with(cmd, app.CreateInstallation, f)
}

func (p *program) with(cmd *cobra.Command, open func(context.Context, config.Config, *slog.Logger) (*app.Installation, error), f func(i *app.Installation) error) error {
	effective, err := p.configuration(cmd)
	if err != nil {
		return err
	}
	i, err := open(cmd.Context(), effective.Config, p.logger(effective.Config.Log))
	if err != nil {
		return err
	}
	return errors.Join(f(i), i.Close())
}

// withTeam is withInstallation for a command with the flag --team.
func (p *program) withTeam(cmd *cobra.Command, f func(cfg config.Config, t *service.Team) error) error {
	name, err := cmd.Flags().GetString("team")
	if err != nil {
		return err
	}
	return p.withInstallation(cmd, func(i *app.Installation) error {
		found, err := teamByName(cmd.Context(), system(i), name)
		if err != nil {
			return err
		}
		return f(i.Config, i.Service.Team(found.ID, service.CommandLine()))
	})
}

// system returns what an operator can do to the installation.
func system(i *app.Installation) *service.System { return i.Service.System(service.CommandLine()) }

func teamByName(ctx context.Context, s *service.System, name string) (dmarcd.Team, error) {
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
