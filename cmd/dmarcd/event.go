package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/client"
	"github.com/dmarcd/dmarcd/internal/phrase"
)

func (p *program) eventCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "event", Short: "Show what happened to the domains of a team", Args: noArguments, RunE: showHelp}
	cmd.AddCommand(p.eventListCommand())
	return cmd
}

func (p *program) eventListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list --team NAME",
		Short: "List the latest events of a team, oldest first; --follow waits for new ones",
		Long: `Lists the latest events of a team, oldest first. With --follow it then waits for new
events until it is interrupted; --json then prints one event per line.`,
		Example: `  dmarcd event list --team acme --kind policy.weakened
  dmarcd event list --team acme --follow --json`,
		Args: cobra.NoArgs,
	}
	apiFlags(cmd)
	asJSON, tag := jsonFlag(cmd), tagFlag(cmd)
	flags := cmd.Flags()
	limit := flags.Int("limit", 50, "maximum number of events")
	follow := flags.Bool("follow", false, "wait for new events")
	var filter client.EventFilter
	flags.StringVar(&filter.Domain, "domain", "", "only events of this domain")
	flags.StringVar(&filter.Kind, "kind", "", "only events of this kind")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := checkEventFlags(filter.Kind, *limit); err != nil {
			return err
		}
		var err error
		if filter.Tag, err = parseTag(*tag); err != nil {
			return err
		}
		return p.withClient(cmd, func(c *client.Client) (err error) {
			if filter.Domain, err = domainFlag(cmd.Context(), c, filter.Domain); err != nil {
				return err
			}
			filter.PageSize = min(*limit, listPart)
			events, err := first(*limit, c.ListEvents(cmd.Context(), filter))
			if err != nil {
				return err
			}
			slices.Reverse(events)
			if *follow {
				return p.followEvents(cmd, c, filter, events, *asJSON)
			}
			return printList(p.out, *asJSON, events, []string{"SEQ", "TIME", "KIND", "DOMAIN", "SUMMARY"}, eventRow)
		})
	}
	return cmd
}

// checkEventFlags validates the flags of a list of events.
func checkEventFlags(kind string, limit int) error {
	if kind != "" {
		if err := dmarcd.EventKind(kind).Validate("kind"); err != nil {
			return wrongUsage(err)
		}
	}
	return checkLimit(limit)
}

// checkLimit validates --limit.
func checkLimit(limit int) error {
	if limit < 1 {
		return errors.New("--limit must be at least 1")
	}
	return nil
}

func eventRow(e client.Event) []string {
	return []string{fmt.Sprint(e.Seq), e.At, e.Kind, orDash(e.Domain), e.Summary}
}

// followEvents prints events, and then those that happen until the command is interrupted.
func (p *program) followEvents(cmd *cobra.Command, c *client.Client, filter client.EventFilter, events []client.Event, asJSON bool) error {
	encoder := json.NewEncoder(p.out)
	encoder.SetEscapeHTML(false)
	show := func(e client.Event) error {
		if asJSON {
			return encoder.Encode(e)
		}
		row := convert(eventRow(e), printable)
		_, err := fmt.Fprintf(p.out, "%s  %s  %s\n", row[0], row[1], row[4])
		return err
	}
	since := int64(0)
	for _, e := range events {
		if err := show(e); err != nil {
			return err
		}
		since = e.Seq
	}
	for e, err := range c.FollowEvents(cmd.Context(), since, filter) {
		if cmd.Context().Err() != nil {
			return nil // interrupted
		}
		if err == nil {
			err = show(e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *program) alertCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "alert", Short: "Show the alerts of a team, and send a test alert", Args: noArguments, RunE: showHelp}
	cmd.AddCommand(p.alertListCommand(), p.alertTestCommand())
	return cmd
}

func (p *program) alertListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list --team NAME",
		Short: "List the latest alerts of a team, newest first",
		Long: `Lists the latest alerts of a team, newest first: every event with its state: delivered,
retrying, not sent, waiting, grouped or suppressed, and why.`,
		Example: `  dmarcd alert list --team acme --open
  dmarcd alert list --team acme --kind spoofing.burst --json`,
		Args: cobra.NoArgs,
	}
	apiFlags(cmd)
	asJSON := jsonFlag(cmd)
	flags := cmd.Flags()
	limit := flags.Int("limit", 50, "maximum number of alerts")
	var filter client.AlertFilter
	flags.StringVar(&filter.Domain, "domain", "", "only alerts of this domain")
	flags.StringVar(&filter.Kind, "kind", "", "only alerts of this kind")
	flags.BoolVar(&filter.Open, "open", false, "omit acknowledged alerts and digests")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := checkEventFlags(filter.Kind, *limit); err != nil {
			return err
		}
		return p.withClient(cmd, func(c *client.Client) (err error) {
			if filter.Domain, err = domainFlag(cmd.Context(), c, filter.Domain); err != nil {
				return err
			}
			filter.PageSize = min(*limit, listPart)
			alerts, err := first(*limit, c.ListAlerts(cmd.Context(), filter))
			if err != nil {
				return err
			}
			heading := []string{"SEQ", "TIME", "LEVEL", "STATE", "KIND", "SUMMARY", "REASON"}
			return printList(p.out, *asJSON, alerts, heading, func(a client.Alert) []string {
				return []string{fmt.Sprint(a.Seq), a.Event.At, a.Level, phrase.State(a.State), a.Event.Kind, a.Event.Summary, a.Reason}
			})
		})
	}
	return cmd
}

func (p *program) alertTestCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "test --team NAME",
		Short: "Send a test alert to all channels of a team",
		Long: `Sends a test to each channel of the team that is on; those that get only digests are left
out. The rules do not apply. A running daemon sends it within seconds, and "dmarcd alert list"
shows whether it was delivered.`,
		Example: "  dmarcd alert test --team acme",
		Args:    cobra.NoArgs,
	}
	apiFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return p.withClient(cmd, func(c *client.Client) error {
			alert, err := c.TestAlert(cmd.Context())
			if err != nil {
				return err
			}
			enabled := 0
			for webhook, err := range c.ListWebhooks(cmd.Context()) {
				if err != nil {
					return err
				}
				if webhook.Enabled && !webhook.IsDigest() {
					enabled++
				}
			}
			if enabled == 0 {
				_, err = fmt.Fprintf(p.out, "not sent: no channel of the team is on; `dmarcd webhook add` adds one (event %d)\n", alert.Seq)
				return err
			}
			_, err = fmt.Fprintf(p.out, "waiting: event %d will be sent to %s\n", alert.Seq, number(enabled, "channel"))
			return err
		})
	}
	return cmd
}
