// Command dmarcd is the DMARC daemon and its command line tool. Each command is one file
// and delegates to internal packages.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	_ "time/tzdata" // for quiet hours where the system has no time zones

	"github.com/lmittmann/tint"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	// Fallback roots for systems without any, such as an image from scratch.
	_ "golang.org/x/crypto/x509roots/fallback"
	"golang.org/x/term"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/app"
	"github.com/dmarcd/dmarcd/internal/config"
	"github.com/dmarcd/dmarcd/internal/service"
)

// version is set at build time.
var version = "unknown"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	program := &program{in: os.Stdin, out: os.Stdout, err: os.Stderr, environ: os.Environ()}
	status := program.run(ctx, os.Args[1:])
	stop()
	os.Exit(status)
}

// The exit statuses. If several apply, the greatest wins.
const (
	exitDone    = 0
	exitProblem = 1 // rejected input, or problems found
	exitFailed  = 2 // wrong usage, or an incomplete check
)

// errReported ends a command that has already reported its problems.
var errReported = errors.New("problems reported")

// program is one run of the command line.
type program struct {
	in       io.Reader
	out, err io.Writer
	environ  []string

	begun bool // the command line was valid and the command started
}

// run runs a command line and returns the exit status.
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
	if err != nil && !errors.Is(err, errReported) {
		p.notify("dmarcd: %s\n", strings.ReplaceAll(err.Error(), "\n", "\ndmarcd: "))
	}
	return exitStatus(err)
}

// notify prints a message on standard error.
func (p *program) notify(format string, args ...any) {
	_, _ = fmt.Fprintf(p.err, format, args...) // nowhere else to report it
}

// exitStatus distinguishes problems found from failures to find out.
func exitStatus(err error) int {
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, errReported), errors.Is(err, dmarcd.ErrNotFound), errors.Is(err, dmarcd.ErrConflict),
		errors.Is(err, dmarcd.ErrInvalid), errors.Is(err, dmarcd.ErrForbidden):
		return exitProblem
	}
	return exitFailed
}

func (p *program) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "dmarcd",
		Short: "DMARC reporting and DNS monitoring for mail domains",
		Long: `dmarcd monitors the DNS of mail domains, receives DMARC and TLS reports about them,
and shows who sends mail as these domains and whether it passes DMARC: in a web
interface and through a JSON API.

    dmarcd serve                run the daemon; the first start creates a team and a token
    dmarcd demo                 run it with a year of sample reports
    dmarcd check DOMAIN         check the DNS records of a domain, without a server
    dmarcd doctor               check an installation for problems

Settings come from a file (--config, TOML or YAML), the environment and flags. Flags
override the environment, which overrides the file. "dmarcd config" shows the result.
"dmarcd serve" and "dmarcd config" have a flag for each setting.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noArguments,
	}
	root.RunE = showHelp
	root.Flags().SortFlags = false
	flags := root.PersistentFlags()
	flags.SortFlags = false
	flags.String("config", "", "configuration file, TOML or YAML")
	offer(root, "config", cobra.FixedCompletions([]string{"toml", "yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt))
	settingFlags(root, flags, ofEveryCommand)
	root.AddCommand(
		withSettings(p.serveCommand(), ofServe), withSettings(p.demoCommand(), only("listen")), withSettings(p.checkCommand(), only("dns")), p.adviseCommand(), p.selfTestCommand(),
		withSettings(p.parseCommand(), ofReading), withSettings(p.importCommand(), ofReading), p.exportCommand(), p.teamCommand(), p.tokenCommand(), p.domainCommand(), p.recordCommand(), p.zoneCommand(),
		p.reportCommand(), p.mailboxCommand(), p.eventCommand(), p.alertCommand(), p.webhookCommand(), p.senderCommand(), p.userCommand(), p.mcpCommand(),
		withSettings(p.configCommand(), ofServe), p.migrateCommand(), p.backupCommand(), p.secretCommand(), p.doctorCommand(), p.manCommand(), p.versionCommand(),
	)
	root.SetFlagErrorFunc(wrongFlag)
	p.completeCommand(root)
	p.noteBeginnings(root)
	return root
}

// wrongFlag explains an error about a flag that follows an unknown command, belongs, or belonged, to a
// setting, or is similar to one of the command.
func wrongFlag(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return err
	}
	if before := cmd.Flags().Args(); cmd.HasSubCommands() && len(before) > 0 {
		return noArguments(cmd, before) // the flag may be one of the command that was meant
	}
	name := unknown.GetSpecifiedName()
	for _, s := range config.Settings() {
		if s.Flag() == name {
			return fmt.Errorf("%w; set %s instead", err, s.Env())
		}
	}
	if removed := config.RemovedFlag(name); removed != nil {
		return removed
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	if meant := config.Meant(name, names); meant != "" {
		return fmt.Errorf("%w (did you mean --%s?)", err, meant)
	}
	return err
}

// didYouMean returns a suggestion to append to an error about a word, "" if none of words is similar.
func didYouMean(word string, words []string) string {
	if meant := config.Meant(word, words); meant != "" && meant != word {
		return fmt.Sprintf(" (did you mean %q?)", meant)
	}
	return ""
}

// ofEveryCommand reports whether every command has a flag for the setting.
func ofEveryCommand(key string) bool { return key == "data" || key == "database" }

// ofServe reports whether only some commands have a flag for the setting.
func ofServe(key string) bool { return !ofEveryCommand(key) }

// ofReading reports whether a setting limits what is read of files.
func ofReading(key string) bool { return strings.HasPrefix(key, "limit.") }

// settingFlags adds flags for the settings that are used.
func settingFlags(cmd *cobra.Command, flags *pflag.FlagSet, used func(key string) bool) {
	for _, s := range config.Settings() {
		if !used(s.Key) {
			continue
		}
		flags.String(s.Flag(), "", fmt.Sprintf("%s (%s; default: %s)", s.Help, s.Env(), s.Default))
		files := cobra.ShellCompDirectiveNoFileComp
		if s.Kind == "text" { // which may be a file path
			files = cobra.ShellCompDirectiveDefault
		}
		offer(cmd, s.Flag(), cobra.FixedCompletions(s.Words, files))
		noteChoices(cmd, s.Flag(), s.Words)
	}
}

// withSettings returns a command with flags for the settings that it uses.
func withSettings(cmd *cobra.Command, used func(key string) bool) *cobra.Command {
	settingFlags(cmd, cmd.Flags(), used)
	return cmd
}

// only returns a function that selects a setting.
func only(key string) func(string) bool { return func(k string) bool { return k == key } }

// noteBeginnings makes each command record that it started. Errors before that are usage
// errors and refer to the help.
func (p *program) noteBeginnings(cmd *cobra.Command) {
	if run := cmd.RunE; run != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			if err := explainChoices(cmd); err != nil {
				return err
			}
			p.begun = true
			return run(cmd, args)
		}
	}
	for _, sub := range cmd.Commands() {
		p.noteBeginnings(sub)
	}
}

// choices is the annotation of a flag with its valid words. A word that ends with a colon is the prefix
// of values.
const choices = "choices"

// noteChoices stores the valid words of a flag, so that an error can suggest a similar one.
func noteChoices(cmd *cobra.Command, flag string, words []string) {
	if len(words) > 0 {
		_ = cmd.Flags().SetAnnotation(flag, choices, words) // the flag exists
	}
}

// explainChoices returns an error for a flag whose value is similar to a valid word. The command rejects
// other values itself.
func explainChoices(cmd *cobra.Command) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		words := f.Annotations[choices]
		for value := range strings.SplitSeq(strings.Trim(f.Value.String(), "[]"), ",") {
			valid := slices.ContainsFunc(words, func(word string) bool {
				return strings.TrimSuffix(word, ":") == value || strings.HasSuffix(word, ":") && strings.HasPrefix(value, word)
			})
			if meant := didYouMean(value, words); !valid && meant != "" && err == nil {
				err = fmt.Errorf("--%s %q is not valid%s", f.Name, value, meant)
			}
		}
	})
	return err
}

// explainedError is an error with a text that replaces its own.
type explainedError struct {
	error
	text string
}

func (e explainedError) Error() string { return e.text }
func (e explainedError) Unwrap() error { return e.error }

// explained returns an error of the kind of err, with a text for users.
func explained(err error, format string, args ...any) error {
	return explainedError{err, fmt.Sprintf(format, args...)}
}

// showHelp is the RunE of commands that only group others.
func showHelp(cmd *cobra.Command, _ []string) error { return cmd.Help() }

// wrongUsage strips the kind of err, so that an invalid flag value is a usage error.
func wrongUsage(err error) error { return errors.New(err.Error()) }

// noArguments rejects unknown subcommands.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		names := convert(cmd.Commands(), (*cobra.Command).Name)
		return fmt.Errorf("unknown command %q%s", args[0], didYouMean(args[0], names))
	}
	return nil
}

// onlyOne rejects a command line with more than one of these flags.
func onlyOne(cmd *cobra.Command, names ...string) {
	cmd.MarkFlagsMutuallyExclusive(names...) // for completion; its error is not for users
	before := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		given := 0
		for _, name := range names {
			if cmd.Flags().Changed(name) {
				given++
			}
		}
		last := len(names) - 1
		switch {
		case given > 1:
			return fmt.Errorf("use only one of --%s and --%s", strings.Join(names[:last], ", --"), names[last])
		case before != nil:
			return before(cmd, args)
		}
		return nil
	}
}

// configuration loads the effective configuration of a command.
func (p *program) configuration(cmd *cobra.Command) (config.Effective, error) {
	given := map[string]string{}
	cmd.Flags().Visit(func(f *pflag.Flag) { given[f.Name] = f.Value.String() })
	return config.Load(config.Input{File: given["config"], Environ: p.environ, Flags: given})
}

// withInstallation opens the existing installation and runs f.
func (p *program) withInstallation(cmd *cobra.Command, f func(i *app.Installation) error) error {
	return p.with(cmd, app.OpenInstallation, f)
}

// withNewInstallation is withInstallation for commands that may create the installation.
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

// withTeam is withInstallation for commands with --team.
func (p *program) withTeam(cmd *cobra.Command, f func(cfg config.Config, t *service.Team) error) error {
	return p.withTeamOf(cmd, func(*app.Installation) error { return nil }, f)
}

// withTeamOf is withTeam for an installation that needs preparation.
func (p *program) withTeamOf(cmd *cobra.Command, prepare func(*app.Installation) error, f func(cfg config.Config, t *service.Team) error) error {
	name, err := cmd.Flags().GetString("team")
	if err != nil {
		return err
	}
	return p.withInstallation(cmd, func(i *app.Installation) error {
		found, err := teamByName(cmd.Context(), system(i), name)
		if err != nil {
			return err
		}
		if err := prepare(i); err != nil {
			return err
		}
		return f(i.Config, i.Service.Team(found.ID, service.CommandLine()))
	})
}

// teamList completes a command that lists items of a team.
func teamList[Item, Shape any](
	p *program, cmd *cobra.Command, list func(*service.Team, context.Context) ([]Item, error), shape func(Item) Shape, heading []string, row func(Shape) []string,
) *cobra.Command {
	cmd.Args = cobra.NoArgs
	teamFlag(cmd)
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return p.withTeam(cmd, func(_ config.Config, t *service.Team) error {
			items, err := list(t, cmd.Context())
			if err != nil {
				return err
			}
			return printList(p.out, *asJSON, convert(items, shape), heading, row)
		})
	}
	return cmd
}

// withItem returns the RunE of a command with the id of an item, such as a token, of some team.
func withItem[ID fmt.Stringer](
	p *program, item string, parse func(string) (ID, error), teamOf func(*service.System, context.Context, ID) (dmarcd.TeamID, error),
	f func(cmd *cobra.Command, cfg config.Config, t *service.Team, id ID) error,
) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		id, err := parse(args[0])
		if err != nil {
			return err
		}
		return p.withInstallation(cmd, func(i *app.Installation) error {
			team, err := teamOf(system(i), cmd.Context(), id)
			if err == nil {
				err = f(cmd, i.Config, i.Service.Team(team, service.CommandLine()), id)
			}
			if errors.Is(err, dmarcd.ErrNotFound) {
				return explained(err, "there is no %[1]s %[2]s; `dmarcd %[1]s list` lists those of a team", item, id)
			}
			return err
		})
	}
}

// system returns the operator's use cases.
func system(i *app.Installation) *service.System { return i.Service.System(service.CommandLine()) }

func teamByName(ctx context.Context, s *service.System, name string) (dmarcd.Team, error) {
	team, err := s.TeamByName(ctx, name)
	if errors.Is(err, dmarcd.ErrNotFound) {
		return team, explained(err, "there is no team %q; `dmarcd team list` lists all teams", name)
	}
	return team, err
}

// logger writes to standard error: coloured text on a terminal, else JSON.
func (p *program) logger(cfg config.Log) *slog.Logger {
	if !isTerminal(p.err) {
		return slog.New(slog.NewJSONHandler(p.err, &slog.HandlerOptions{Level: cfg.Level}))
	}
	return slog.New(tint.NewTextHandler(p.err, &tint.Options{Level: cfg.Level, NoColor: !p.colours(p.err)}))
}

func isTerminal(w any) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
