package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/app"
	"github.com/dmarcd/dmarcd/internal/config"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/wire"
)

func (p *program) tokenCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Manage the API tokens of a team",
		Long:  "Manages the API tokens of a team. To rotate a token, create a new one, then revoke the old one.",
		Args:  noArguments,
		RunE:  showHelp,
	}
	cmd.AddCommand(p.tokenCreateCommand(), p.tokenListCommand(), p.tokenRevokeCommand())
	return cmd
}

// teamFlag adds the required flag --team.
func teamFlag(cmd *cobra.Command) {
	cmd.Flags().String("team", "", "name of the team")
	_ = cmd.MarkFlagRequired("team") // the flag exists
}

func (p *program) tokenCreateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "create --team NAME",
		Short: "Create a token and print it; it is not shown again",
		Example: `  dmarcd token create --team acme
  dmarcd token create --team acme --name ci --scope read --expires 30d --network 192.0.2.0/24`,
		Args: cobra.NoArgs,
	}
	teamFlag(cmd)
	name := cmd.Flags().String("name", "", "description of the token")
	scope := cmd.Flags().String("scope", string(dmarcd.ScopeWrite), "read, write (which includes read), admin (which includes write, and manages tokens, members, mailboxes, retention and the audit log) or publish (which includes read, and publishes managed records)")
	networks := cmd.Flags().StringSlice("network", nil, "an address or network that it may be used from (default: everywhere); may be repeated")
	expires := durationFlag(cmd, "expires", "validity, such as 30d, 12w or 720h (default: unlimited)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		parsed, err := dmarcd.ParseScope(*scope)
		if err != nil {
			return wrongUsage(err)
		}
		if *expires < 0 || cmd.Flags().Changed("expires") && *expires == 0 {
			return errors.New("--expires must be positive, such as 30d")
		}
		allowed, err := dmarcd.ParseTokenNetworks(*networks)
		if err != nil {
			return wrongUsage(err)
		}
		token := service.NewToken{Name: *name, Scope: parsed, Networks: allowed}
		if *expires > 0 {
			token.ExpiresAt = time.Now().Add(*expires)
		}
		return p.withInstallation(cmd, func(i *app.Installation) error {
			team, err := teamByName(cmd.Context(), system(i), cmd.Flag("team").Value.String())
			if err != nil {
				return err
			}
			_, secret, err := i.Service.Team(team.ID, service.CommandLine()).CreateToken(cmd.Context(), token)
			if err != nil {
				return err
			}
			if !team.API {
				p.notify("The team %q may not use the API yet. `dmarcd team allow %[1]q` allows it.\n", team.Name)
			}
			_, err = fmt.Fprintln(p.out, secret)
			return err
		})
	}
	return cmd
}

// duration is the value of a flag in the form of the settings.
type duration time.Duration

func (d *duration) String() string { return time.Duration(*d).String() }
func (d *duration) Type() string   { return "duration" }

func (d *duration) Set(text string) error {
	parsed, err := config.ParseDuration(text)
	*d = duration(parsed)
	return err
}

// durationFlag adds a flag with a duration.
func durationFlag(cmd *cobra.Command, name, usage string) *time.Duration {
	value := new(time.Duration)
	cmd.Flags().Var((*duration)(value), name, usage)
	return value
}

func (p *program) tokenListCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "list --team NAME", Short: "List the tokens of a team", Example: "  dmarcd token list --team acme --json"}
	heading := []string{"ID", "NAME", "SCOPE", "CREATED", "CREATED BY", "EXPIRES", "LAST USE", "FROM", "REVOKED"}
	return teamList(p, cmd, (*service.Team).Tokens, wire.NewToken, heading, func(t wire.Token) []string {
		return []string{t.ID, orDash(&t.Name), t.Scope, t.CreatedAt, orDash(t.CreatedBy), orDash(t.ExpiresAt), orDash(t.UsedAt), orDash(t.UsedFrom), orDash(t.RevokedAt)}
	})
}

func (p *program) tokenRevokeCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "revoke ID",
		Short:   "Revoke a token permanently, with those that it created",
		Example: "  dmarcd token revoke tok_1omg",
		Args:    cobra.ExactArgs(1),
		RunE: withItem(p, "token", dmarcd.ParseTokenID, (*service.System).TeamOfToken,
			func(cmd *cobra.Command, _ config.Config, t *service.Team, id dmarcd.TokenID) error {
				return t.RevokeToken(cmd.Context(), id)
			}),
	}
}
