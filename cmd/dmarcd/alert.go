package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/config"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/wire"
)

func (p *program) alertCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "alert", Short: "Show the alerts of a team, and send a test alert", Args: noArguments, RunE: showHelp}
	cmd.AddCommand(p.alertListCommand(), p.alertTestCommand())
	return cmd
}

func (p *program) alertListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list --team NAME",
		Short: "List the latest alerts of a team, newest first",
		Long: `Lists the latest alerts of a team, newest first: every event with what the rules decided,
and why.`,
		Example: `  dmarcd alert list --team acme --open
  dmarcd alert list --team acme --kind spoofing.burst --json`,
		Args: cobra.NoArgs,
	}
	teamFlag(cmd)
	asJSON := jsonFlag(cmd)
	flags := cmd.Flags()
	limit := flags.Int("limit", 50, "maximum number of alerts")
	var filter dmarcd.AlertFilter
	flags.StringVar(&filter.Domain, "domain", "", "only alerts of this domain")
	flags.StringVar((*string)(&filter.Kind), "kind", "", "only alerts of this kind")
	flags.BoolVar(&filter.Open, "open", false, "omit acknowledged alerts and digests")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := checkEventFlags(filter.Kind, *limit); err != nil {
			return err
		}
		return p.withTeam(cmd, func(cfg config.Config, t *service.Team) (err error) {
			if filter.Domain, err = domainFlag(cmd.Context(), t, filter.Domain); err != nil {
				return err
			}
			alerts, err := t.Alerts(cmd.Context(), filter, 0, *limit)
			if err != nil {
				return err
			}
			shape := func(a dmarcd.Alert) wire.Alert { return wire.NewAlert(a, cfg.BaseURL) }
			heading := []string{"SEQ", "TIME", "LEVEL", "STATE", "KIND", "SUMMARY", "REASON"}
			return printList(p.out, *asJSON, convert(alerts, shape), heading, func(a wire.Alert) []string {
				return []string{fmt.Sprint(a.Seq), a.Event.At, a.Level, a.State, a.Event.Kind, a.Event.Summary, a.Reason}
			})
		})
	}
	return cmd
}

func (p *program) alertTestCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "test --team NAME",
		Short: "Send a test alert to all enabled webhooks of a team",
		Long: `Writes an event that a running daemon sends to all enabled webhooks of the team within
seconds, except those of digests, whatever the rules and the webhooks select.`,
		Example: "  dmarcd alert test --team acme",
		Args:    cobra.NoArgs,
	}
	teamFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return p.withTeam(cmd, func(_ config.Config, t *service.Team) error {
			alert, err := t.TestAlert(cmd.Context())
			if err != nil {
				return err
			}
			enabled, err := t.EnabledWebhooks(cmd.Context())
			if err != nil {
				return err
			}
			if enabled == 0 {
				_, err = fmt.Fprintf(p.out, "event %d is sent to no webhook: the team has none that is enabled; `dmarcd webhook add` adds one\n", alert.Event.Seq)
				return err
			}
			_, err = fmt.Fprintf(p.out, "event %d is sent to %s\n", alert.Event.Seq, number(enabled, "webhook"))
			return err
		})
	}
	return cmd
}
