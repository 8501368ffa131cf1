package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/app"
	"github.com/dmarcd/dmarcd/internal/wire"
)

func (p *program) teamCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "team", Short: "Manage teams and the API whitelist", Args: noArguments, RunE: showHelp}
	cmd.AddCommand(p.teamCreateCommand(), p.teamListCommand(), p.teamAllowCommand(true), p.teamAllowCommand(false), p.teamQuotaCommand())
	return cmd
}

func (p *program) teamCreateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Create a team",
		Example: `  dmarcd team create acme --api
  dmarcd team create "Mail operations"`,
		Args: cobra.ExactArgs(1),
	}
	api := cmd.Flags().Bool("api", false, "add the team to the API whitelist")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return p.withNewInstallation(cmd, func(i *app.Installation) error {
			team, err := system(i).CreateTeam(cmd.Context(), args[0], *api)
			if errors.Is(err, dmarcd.ErrConflict) {
				return explained(err, "the team %q already exists", args[0])
			}
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(p.out, "%s\t%s\n", team.ID, team.Name)
			return err
		})
	}
	return cmd
}

func (p *program) teamListCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List all teams", Example: "  dmarcd team list --json", Args: cobra.NoArgs}
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return p.withInstallation(cmd, func(i *app.Installation) error {
			teams, err := system(i).Teams(cmd.Context())
			if err != nil {
				return err
			}
			heading := []string{"ID", "NAME", "API", "CREATED"}
			return printList(p.out, *asJSON, convert(teams, wire.NewTeam), heading, func(t wire.Team) []string {
				return []string{t.ID, t.Name, yesNo(t.API), t.CreatedAt}
			})
		})
	}
	return cmd
}

func (p *program) teamAllowCommand(allow bool) *cobra.Command {
	cmd := &cobra.Command{Use: "allow NAME", Short: "Add a team to the API whitelist", Example: "  dmarcd team allow acme", Args: cobra.ExactArgs(1)}
	if !allow {
		cmd.Use, cmd.Short, cmd.Example = "deny NAME", "Remove a team from the API whitelist", "  dmarcd team deny acme"
	}
	cmd.ValidArgsFunction = p.completeTeams
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return p.withInstallation(cmd, func(i *app.Installation) error {
			team, err := teamByName(cmd.Context(), system(i), args[0])
			if err != nil {
				return err
			}
			return system(i).SetAPI(cmd.Context(), team.Name, allow)
		})
	}
	return cmd
}
