package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/dmarcd/dmarcd/internal/app"
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
