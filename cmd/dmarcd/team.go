package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/app"
	"github.com/dmarcd/dmarcd/internal/export"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/wire"
)

func (p *program) teamCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "team", Short: "Manage teams and the API whitelist", Args: noArguments, RunE: showHelp}
	cmd.AddCommand(p.teamCreateCommand(), p.teamListCommand(), p.teamAllowCommand(true), p.teamAllowCommand(false), p.teamQuotaCommand(), p.teamExportCommand(), p.teamDeleteCommand())
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

func (p *program) teamQuotaCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "quota NAME [KEY=VALUE...]",
		Short: "Show or set the quotas of a team",
		Long: `Sets the given quotas of a team and shows all quotas with their usage. The keys are
domains, stored (bytes), unreadable (bytes of rejected content), reports (per day) and
mailboxes. A value is a whole number, for bytes also with KiB, MiB or GiB; "none" means
unlimited, "default" the setting of the installation. The team "default" has no quotas
unless you set them.`,
		Example: `  dmarcd team quota acme
  dmarcd team quota acme stored=50GiB reports=none`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: p.completeTeams,
	}
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return p.withInstallation(cmd, func(i *app.Installation) error {
			team, err := teamByName(cmd.Context(), system(i), args[0])
			if err != nil {
				return err
			}
			quotas, err := parseQuotas(args[1:])
			if err != nil {
				return err
			}
			if err := system(i).SetQuotas(cmd.Context(), team, quotas); err != nil {
				return err
			}
			return p.showQuotas(cmd, i.Service.Team(team.ID, service.CommandLine()), *asJSON)
		})
	}
	return cmd
}

func (p *program) teamExportCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "export NAME --output FILE",
		Short: "Export everything that a team has as a ZIP file",
		Long: `Writes a ZIP file with the domains, checks, reports, records, originals, events, alerts,
senders, members, settings and the audit log of a team. It contains no passwords and no
secrets of tokens and webhooks. docs/export.md describes the files.`,
		Example:           "  dmarcd team export acme --output acme.zip",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: p.completeTeams,
	}
	output := cmd.Flags().String("output", "", "file to write; - is standard output")
	_ = cmd.MarkFlagRequired("output") // it exists
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return p.withInstallation(cmd, func(i *app.Installation) error {
			team, err := teamByName(cmd.Context(), system(i), args[0])
			if err != nil {
				return err
			}
			archive, err := i.Service.Team(team.ID, service.CommandLine()).Archive(cmd.Context())
			if err != nil {
				return err
			}
			return p.writeOutput(*output, func(out io.Writer) error {
				return export.Team(cmd.Context(), archive, out)
			})
		})
	}
	return cmd
}

func (p *program) teamDeleteCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "delete NAME",
		Short: "Delete a team with all its data, for good",
		Long: `Deletes a team with its domains, reports, figures, settings, tokens and audit log. The team
is gone at once, and mail to its reporting addresses is refused, which are never used again.
The server removes the data within minutes. Its members keep their accounts. It cannot be
undone: dmarcd team export saves the data before.`,
		Example:           "  dmarcd team delete acme",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: p.completeTeams,
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return p.withInstallation(cmd, func(i *app.Installation) error {
			team, err := teamByName(cmd.Context(), system(i), args[0])
			if err != nil {
				return err
			}
			return i.Service.Team(team.ID, service.CommandLine()).Delete(cmd.Context(), args[0])
		})
	}
	return cmd
}

// parseQuotas parses all quotas or returns an error.
func parseQuotas(texts []string) (dmarcd.Quota, error) {
	quotas := make(dmarcd.Quota)
	for _, text := range texts {
		name, amount, err := dmarcd.ParseQuota(text)
		if err != nil {
			return nil, err
		}
		quotas[name] = amount
	}
	return quotas, nil
}

// quotaRow is a quota in the output; Max is nil if unlimited.
type quotaRow struct {
	Quota string `json:"quota"`
	Used  int64  `json:"used"`
	Max   *int64 `json:"max"`
}

func (p *program) showQuotas(cmd *cobra.Command, team *service.Team, asJSON bool) error {
	quota, usage, err := team.Quota(cmd.Context())
	if err != nil {
		return err
	}
	var rows []quotaRow
	for _, name := range dmarcd.QuotaNames() {
		row := quotaRow{Quota: string(name), Used: usage[name]}
		if most := quota[name]; most > 0 {
			row.Max = &most
		}
		rows = append(rows, row)
	}
	return printList(p.out, asJSON, rows, []string{"QUOTA", "USED", "LIMIT"}, func(r quotaRow) []string {
		name, most := dmarcd.QuotaName(r.Quota), "none"
		if r.Max != nil {
			most = name.Format(*r.Max)
		}
		return []string{r.Quota, name.Format(r.Used), most}
	})
}
