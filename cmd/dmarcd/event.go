package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/config"
	"github.com/dmarcd/dmarcd/internal/phrase"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/wire"
)

func (p *program) eventCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "event", Short: "Show what happened to the domains of a team", Args: noArguments, RunE: showHelp}
	cmd.AddCommand(p.eventListCommand())
	return cmd
}

// followWait is how long one query of a command that follows events waits.
const followWait = time.Minute

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
	teamFlag(cmd)
	asJSON, tag := jsonFlag(cmd), tagFlag(cmd)
	flags := cmd.Flags()
	limit := flags.Int("limit", 50, "maximum number of events")
	follow := flags.Bool("follow", false, "wait for new events")
	var filter service.EventFilter
	flags.StringVar(&filter.Domain, "domain", "", "only events of this domain")
	kind := flags.String("kind", "", "only events of this kind")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := checkEventFlags(dmarcd.EventKind(*kind), *limit); err != nil {
			return err
		}
		if *kind != "" {
			filter.Kinds = []dmarcd.EventKind{dmarcd.EventKind(*kind)}
		}
		return p.withTeam(cmd, func(cfg config.Config, t *service.Team) error {
			t, err := narrowed(t, *tag)
			if err != nil {
				return err
			}
			if filter.Domain, err = domainFlag(cmd.Context(), t, filter.Domain); err != nil {
				return err
			}
			events, err := t.Events(cmd.Context(), filter, service.Cursor{}, *limit)
			if err != nil {
				return err
			}
			slices.Reverse(events)
			shape := func(e dmarcd.Event) wire.Event { return wire.NewEvent(e, cfg.BaseURL) }
			if *follow {
				return p.followEvents(cmd, t, filter, events, *asJSON, shape)
			}
			heading := []string{"SEQ", "TIME", "KIND", "DOMAIN", "SUMMARY"}
			return printList(p.out, *asJSON, convert(events, shape), heading, eventRow)
		})
	}
	return cmd
}

// checkEventFlags validates the flags of a list of events.
func checkEventFlags(kind dmarcd.EventKind, limit int) error {
	if kind != "" {
		if err := kind.Validate("kind"); err != nil {
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

func eventRow(e wire.Event) []string {
	return []string{fmt.Sprint(e.Seq), e.At, e.Kind, orDash(e.Domain), e.Summary}
}

// followEvents prints events, and then those that happen until the command is interrupted.
func (p *program) followEvents(cmd *cobra.Command, t *service.Team, filter service.EventFilter, events []dmarcd.Event, asJSON bool, shape func(dmarcd.Event) wire.Event) error {
	encoder := json.NewEncoder(p.out)
	encoder.SetEscapeHTML(false)
	ctx := cmd.Context()
	since := int64(0)
	for ctx.Err() == nil {
		for _, e := range events {
			since = e.Seq
			var err error
			if asJSON {
				err = encoder.Encode(shape(e))
			} else {
				row := convert(eventRow(shape(e)), printable)
				_, err = fmt.Fprintf(p.out, "%s  %s  %s\n", row[0], row[1], row[4])
			}
			if err != nil {
				return err
			}
		}
		var err error
		events, err = t.EventsSince(ctx, filter, since, 100, followWait)
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil // interrupted
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
				_, err = fmt.Fprintf(p.out, "not sent: no channel of the team is on; `dmarcd webhook add` adds one (event %d)\n", alert.Event.Seq)
				return err
			}
			_, err = fmt.Fprintf(p.out, "waiting: event %d will be sent to %s\n", alert.Event.Seq, number(enabled, "channel"))
			return err
		})
	}
	return cmd
}
