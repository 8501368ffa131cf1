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
		Short:   "Bring the database to the schema of this version; serve does so too",
		Example: "  dmarcd migrate",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			// Opening migrates.
			return p.withNewInstallation(cmd, func(i *app.Installation) error {
				_, err := fmt.Fprintf(p.out, "The %s database has the schema of this version.\n", i.Engine)
				return err
			})
		},
	}
}

func (p *program) backupCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "backup FILE",
		Short: "Write the whole database into a new SQLite file, while the daemon runs",
		Long: `Writes the whole database, as it is at one moment, into a new SQLite file, from
SQLite and from PostgreSQL alike. The daemon may run meanwhile. To restore it,
stop the daemon and let DMARCD_DATABASE name the file. The key that seals the
passwords of mailboxes is not in it: keep a copy of secret.file elsewhere.`,
		Example: `  dmarcd backup dmarcd-2026-11-15.db
  dmarcd backup --database postgres://dmarcd@localhost/dmarcd /var/backups/dmarcd.db`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withInstallation(cmd, func(i *app.Installation) error {
				var progress func(rows int)
				if isTerminal(p.err) {
					progress = func(rows int) { p.say("\r%d rows written", rows) }
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
