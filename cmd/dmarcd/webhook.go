package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/config"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/wire"
)

func (p *program) webhookCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "webhook",
		Short: "Manage the channels that the events of a team are sent to",
		Long: `A channel is what the API and this command call a webhook: a program of yours, which gets
events as Standard Webhooks 1.0 describes it, or Slack, Microsoft Teams, Discord, PagerDuty
or an email address. A running daemon sends each event within seconds, and retries for a day.`,
		Args: noArguments,
		RunE: showHelp,
	}
	cmd.AddCommand(p.webhookAddCommand(), p.webhookListCommand(), p.webhookTestCommand(), p.webhookRemoveCommand())
	return cmd
}

func (p *program) webhookAddCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "add --team NAME URL",
		Short: "Add a channel, and print its id and its secret",
		Long: `Adds a channel, and prints its id and its secret, which is not shown again. Receivers
verify the signature of deliveries with the secret.

The URL of a chat service is itself a secret: it is stored encrypted, and listed without
its path. For PagerDuty, add the integration key to the URL.`,
		Example: `  dmarcd webhook add --team acme https://example.com/hooks/dmarc
  dmarcd webhook add --team acme --kind policy.weakened --domain example.org https://example.com/hooks/dmarc
  dmarcd webhook add --team acme --format slack https://hooks.slack.com/services/T000/B000/XXXX
  dmarcd webhook add --team acme --format pagerduty 'https://events.pagerduty.com/v2/enqueue?routing_key=KEY'
  dmarcd webhook add --team acme --format email --kind digest.weekly mailto:ann@example.com`,
		Args: cobra.ExactArgs(1),
	}
	teamFlag(cmd)
	asJSON := jsonFlag(cmd)
	format := cmd.Flags().String("format", string(dmarcd.FormatStandard), "standard, json, slack, teams, discord, pagerduty or email")
	kinds := cmd.Flags().StringSlice("kind", nil, "only events of this kind; may be repeated")
	domains := cmd.Flags().StringSlice("domain", nil, "only events of this domain; may be repeated")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		wanted := dmarcd.Webhook{URL: args[0], Format: dmarcd.WebhookFormat(*format), Domains: *domains}
		for _, kind := range *kinds {
			wanted.Kinds = append(wanted.Kinds, dmarcd.EventKind(kind))
		}
		return p.withTeam(cmd, func(_ config.Config, t *service.Team) error {
			for _, domain := range wanted.Domains {
				if _, err := t.Domain(cmd.Context(), domain); err != nil {
					return unknownDomain(err, domain)
				}
			}
			added, secret, err := t.AddWebhook(cmd.Context(), wanted)
			if err != nil {
				return err
			}
			if *asJSON {
				return printJSON(p.out, wire.NewWebhookWithSecret(added, secret))
			}
			if secret == "" {
				_, err = fmt.Fprintln(p.out, added.ID)
				return err
			}
			_, err = fmt.Fprintf(p.out, "%s\t%s\n", added.ID, secret)
			return err
		})
	}
	return cmd
}

func (p *program) webhookListCommand() *cobra.Command {
	heading := []string{"ID", "FORMAT", "URL", "KINDS", "DOMAINS", "ENABLED", "FAILING SINCE", "DISABLED BECAUSE"}
	return teamList(p, &cobra.Command{
		Use:     "list --team NAME",
		Short:   "List the channels of a team",
		Example: "  dmarcd webhook list --team acme --json",
	}, (*service.Team).Webhooks, wire.NewWebhook, heading, func(w wire.Webhook) []string {
		return []string{w.ID, w.Format, w.URL, orAll(w.Kinds), orAll(w.Domains), yesNo(w.Enabled), orDash(w.FailingSince), orDash(w.DisabledReason)}
	})
}

// orAll joins a list; an empty one means all.
func orAll(list []string) string {
	if list == nil {
		return "all"
	}
	return strings.Join(list, ",")
}

func (p *program) webhookTestCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "test ID",
		Short:   "Send a test to a channel now, and print the result; exit status 1 if it failed",
		Example: "  dmarcd webhook test whk_1omg",
		Args:    cobra.ExactArgs(1),
	}
	asJSON := jsonFlag(cmd)
	cmd.RunE = withItem(p, "webhook", dmarcd.ParseWebhookID, (*service.System).TeamOfWebhook, func(cmd *cobra.Command, cfg config.Config, t *service.Team, id dmarcd.WebhookID) error {
		delivery, err := t.TestWebhook(cmd.Context(), id)
		if err != nil {
			return err
		}
		switch {
		case *asJSON:
			err = printJSON(p.out, wire.NewWebhookDelivery(delivery, cfg.BaseURL))
		case delivery.Problem != "":
			_, err = fmt.Fprintln(p.out, "not sent: "+delivery.Problem)
		default:
			_, err = fmt.Fprintf(p.out, "delivered: the channel answered with status %d after %v\n", delivery.Status, delivery.Took)
		}
		if err == nil && delivery.Problem != "" {
			err = errReported
		}
		return err
	})
	return cmd
}

func (p *program) webhookRemoveCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "remove ID",
		Short:   "Remove a channel with its deliveries",
		Example: "  dmarcd webhook remove whk_1omg",
		Args:    cobra.ExactArgs(1),
		RunE: withItem(p, "webhook", dmarcd.ParseWebhookID, (*service.System).TeamOfWebhook, func(cmd *cobra.Command, _ config.Config, t *service.Team, id dmarcd.WebhookID) error {
			return t.RemoveWebhook(cmd.Context(), id)
		}),
	}
}
