package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dmarcd/dmarcd/internal/app"
)

func (p *program) secretCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "secret",
		Short: "Manage the key that encrypts the secrets in the database",
		Args:  noArguments,
		RunE:  showHelp,
	}
	cmd.AddCommand(p.secretRotateCommand())
	return cmd
}

func (p *program) secretRotateCommand() *cobra.Command {
	var present bool
	cmd := &cobra.Command{
		Use:   "rotate",
		Short: "Encrypt all secrets with a new key",
		Long: `Puts a new key into the first line of secret.file, and encrypts all secrets with it: mailbox
passwords and the secrets of webhooks. The daemon can keep running, and uses the new key at
once. The old key stays in the next line, for backups from before: remove it when you no
longer need them.

With --present it creates no key and uses the first one, for installations where you set the
keys yourself: with secret.key, secret.command, or a copy of the file on each host. First put
the new key behind the old one everywhere, then before it, each time restart the daemons
(unless the keys are in a file), then run this command once.`,
		Example: `  dmarcd secret rotate
  dmarcd secret rotate --present`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.withInstallation(cmd, func(i *app.Installation) error {
				if !present {
					if err := i.AddKey(); err != nil {
						return err
					}
				}
				result, err := system(i).RotateSecrets(cmd.Context())
				if err != nil {
					return err
				}
				if _, err := fmt.Fprintf(p.out, "%s encrypted with the first key.\n", number(result.Sealed, "secret")); err != nil {
					return err
				}
				if result.Lost > 0 {
					return fmt.Errorf("%s can be decrypted with none of the keys; restore the key, or enter those of mailboxes and webhooks again (`dmarcd mailbox list` and `dmarcd webhook list` name them)", number(result.Lost, "secret"))
				}
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&present, "present", false, "create no key, and use the first of those that are set")
	return cmd
}
