package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/dmarcd/dmarcd/internal/app"
)

func (p *program) migrateCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "migrate",
		Short:   "Upgrade the database schema to this version; serve does this automatically",
		Example: "  dmarcd migrate",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			// Opening the installation migrates the database.
			return p.withNewInstallation(cmd, func(i *app.Installation) error {
				_, err := fmt.Fprintf(p.out, "The schema of the %s database is up to date.\n", i.Engine)
				return err
			})
		},
	}
}

func (p *program) backupCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "backup FILE",
		Short: "Write a backup of the database to a new SQLite file",
		Long: `Writes a consistent snapshot of the database, SQLite or PostgreSQL, to a new SQLite
file. The daemon can keep running. To restore a backup, stop the daemon and set
DMARCD_DATABASE to the file. The backup does not contain the key that encrypts mailbox
passwords: back up secret.file separately.`,
		Example: `  dmarcd backup dmarcd-2026-11-15.db
  dmarcd backup --database postgres://dmarcd@localhost/dmarcd /var/backups/dmarcd.db`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withInstallation(cmd, func(i *app.Installation) error {
				var progress func(rows int)
				if isTerminal(p.err) {
					progress = func(rows int) { p.notify("\r%d rows written", rows) }
				}
				if err := system(i).Backup(cmd.Context(), args[0], progress); err != nil {
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
