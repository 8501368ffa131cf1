package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/spf13/cobra"

	"github.com/dmarcd/dmarcd/client"
	"github.com/dmarcd/dmarcd/internal/app"
	"github.com/dmarcd/dmarcd/internal/config"
)

func (p *program) migrateCommand() *cobra.Command {
	var distribute bool
	command := &cobra.Command{
		Use:   "migrate",
		Short: "Upgrade the database schema to this version; serve does this automatically",
		Long: `Upgrades the database schema to this version, as serve does when it starts.

With --distribute, the tables of teams are then sharded by team over the workers of a Citus
cluster, with the rows that they have. The database is the coordinator of the cluster; the
table of teams is copied to each server, users, tokens, sessions, mailboxes and the audit log
stay on the coordinator. All tables are distributed or none, and a second run changes nothing.
Stop the daemons before, and start them afterwards. docs/scaling.md has the steps.`,
		Example: `  dmarcd migrate
  dmarcd migrate --distribute --database postgres://dmarcd@coordinator/dmarcd`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			// Opening the installation migrates the database.
			return p.withNewInstallation(cmd, func(i *app.Installation) error {
				_, err := fmt.Fprintf(p.out, "The schema of the %s database is up to date.\n", i.Engine)
				if err != nil || !distribute {
					return err
				}
				return p.distribute(cmd.Context(), i)
			})
		},
	}
	command.Flags().BoolVar(&distribute, "distribute", false, "shard the tables of teams over the workers of a Citus cluster")
	return command
}

func (p *program) distribute(ctx context.Context, i *app.Installation) error {
	var progress func(done, all int, table string)
	if isTerminal(p.err) {
		progress = func(done, all int, table string) {
			p.notify("\r\x1b[Kdistributing %s, %d of %d tables", table, done+1, all)
		}
	}
	tables, err := i.Distribute(ctx, progress)
	if progress != nil && tables > 0 {
		p.notify("\n")
	}
	if err != nil {
		return err
	}
	message := "All tables are distributed already."
	if tables > 0 {
		message = number(tables, "table") + " distributed. Start the daemons again."
	}
	_, err = fmt.Fprintln(p.out, message)
	return err
}

func (p *program) backupCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "backup FILE",
		Short: "Write a backup of an SQLite database, or print the command for PostgreSQL",
		Long: `Writes a consistent snapshot of an SQLite database to a new file. The daemon can keep
running. To restore a backup, stop the daemon and set DMARCD_DATABASE to the file. The
backup does not contain the key that encrypts mailbox passwords: back up secret.file
separately.

For PostgreSQL it prints the pg_dump to run, and fails, since there is no backup yet.`,
		Example: `  dmarcd backup dmarcd-2026-11-15.db
  dmarcd backup --database postgres://dmarcd@localhost/dmarcd dmarcd-2026-11-15.dump`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			effective, err := p.configuration(cmd)
			if err != nil {
				return err
			}
			dump, err := app.DumpCommand(effective.Config.Database, args[0])
			if err != nil {
				return err
			}
			if dump != "" {
				_, err := fmt.Fprintln(p.out, dump)
				return errors.Join(err, errors.New("nothing was backed up: run this command; docs/operating.md says how to restore"))
			}
			return p.withInstallation(cmd, func(i *app.Installation) error {
				if err := system(i).Backup(cmd.Context(), args[0]); err != nil {
					return err
				}
				_, err := fmt.Fprintf(p.out, "Backup written to %s.\n", args[0])
				return err
			})
		},
	}
}

func (p *program) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  dmarcd version",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(p.out, "dmarcd %s (%s, %s/%s)\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}

func (p *program) doctorCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check this installation for problems and show how to fix them",
		Long: `Checks the configuration, the data folder, the database, the teams and DNS. It changes
nothing.

Exit status: 0 if there are no problems; 1 if there are problems; 2 if a check could not
be completed.`,
		Example: `  dmarcd doctor
  dmarcd doctor --config /etc/dmarcd.toml --json`,
		Args: cobra.NoArgs,
	}
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		effective, err := p.configuration(cmd)
		if err != nil {
			return err
		}
		found := app.Diagnose(cmd.Context(), effective.Config, p.environ)
		if *asJSON {
			err = printJSON(p.out, found)
		} else {
			err = p.printDiagnoses(found)
		}
		has := func(state app.DiagnosisState) bool {
			return slices.ContainsFunc(found, func(d app.Diagnosis) bool { return d.State == state })
		}
		switch {
		case err != nil:
			return err
		case has(app.Unseen):
			return errors.New("some checks could not be completed")
		case has(app.Sick):
			return errReported
		}
		return nil
	}
	return cmd
}

func (p *program) printDiagnoses(found []app.Diagnosis) error {
	for _, d := range found {
		if _, err := fmt.Fprintf(p.out, "%-7s %s: %s\n", d.State, d.Part, d.What); err != nil {
			return err
		}
		if d.Fix != "" {
			if _, err := fmt.Fprintf(p.out, "        -> %s\n", d.Fix); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *program) selfTestCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "selftest --team NAME DOMAIN",
		Short: "Send a synthetic report to a domain, and print each stage of its path",
		Long: `Sends a synthetic report to the reporting address of a domain, as a receiver would: it looks
up the mail servers, connects by SMTP, and follows the message until its report is stored.
The report has no messages, so it counts nowhere, and is deleted. The daemon must run.

Exit status: 0 if it was stored; 1 if a stage failed.`,
		Example: "  dmarcd selftest --team acme example.com",
		Args:    cobra.ExactArgs(1),
	}
	apiFlags(cmd)
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return p.withDomain(cmd, args[0], func(c *client.Client, name string) error {
			test, err := c.SelfTest(cmd.Context(), name)
			if err != nil {
				return err
			}
			if *asJSON {
				err = printJSON(p.out, test)
			}
			for i := 0; i < len(test.Stages) && err == nil && !*asJSON; i++ {
				stage, result := test.Stages[i], "failed"
				if stage.Passed {
					result = "passed"
				}
				_, err = fmt.Fprintf(p.out, "%-12s  %s  %6d ms  %s\n", stage.Name, result, stage.DurationMS, stage.Detail)
			}
			if err == nil && !test.Passed {
				err = errReported
			}
			return err
		})
	}
	return cmd
}

func (p *program) configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show the effective configuration and the origin of each value; secrets are masked",
		Example: `  dmarcd config
  dmarcd config --config /etc/dmarcd.toml --json`,
		Args: cobra.NoArgs,
	}
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		effective, err := p.configuration(cmd)
		if err != nil {
			return err
		}
		if *asJSON {
			return printJSON(p.out, convert(effective.Values, func(v config.Value) map[string]string {
				return map[string]string{"key": v.Setting.Key, "value": v.Text, "origin": v.Origin, "environment": v.Setting.Env(), "help": v.Setting.Help}
			}))
		}
		return printTable(p.out, []string{"SETTING", "VALUE", "FROM", "ENVIRONMENT"}, convert(effective.Values, func(v config.Value) []string {
			return []string{v.Setting.Key, orDash(&v.Text), v.Origin, v.Setting.Env()}
		}))
	}
	return cmd
}
