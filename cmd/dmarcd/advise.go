package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/app"
	"github.com/dmarcd/dmarcd/internal/config"
	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// advisedSenders is how many senders are printed.
const advisedSenders = 20

// defaultAdvised is how many domains are listed by default.
const defaultAdvised = 25

func (p *program) adviseCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "advise --team NAME [DOMAIN]",
		Short: "Print the next action for a domain, and who sends mail as it",
		Long: `Prints how well a domain is protected, the steps on the way to reject with the one to take
now, its reason and the record to publish, and the senders of the last 30 days: what each is
to the domain, how much of its mail the current policy affects, why it fails, and how to fix it.

With --format it prints only the record to publish, as a file for the tool that manages the zone.

A question that only a person can answer is answered by "dmarcd domain answer".

Without a domain it lists the next actions of all domains, or of those with a tag, the most
urgent first.`,
		Example: `  dmarcd advise --team acme example.com
  dmarcd advise --team acme --format bind example.com
  dmarcd advise --team acme --tag shop`,
		Args: cobra.MaximumNArgs(1),
	}
	teamFlag(cmd)
	asJSON, tag := jsonFlag(cmd), tagFlag(cmd)
	limit := cmd.Flags().Int("limit", defaultAdvised, "maximum number of domains that are listed")
	var flags recordFlags
	flags.addTo(cmd, "json", "tag")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		format, asked, err := flags.parse()
		if err != nil {
			return err
		}
		if asked && len(args) == 0 {
			return errors.New("--format needs a domain")
		}
		if len(args) > 0 && *tag != "" {
			return errors.New("--tag selects domains of the list: give a domain or a tag, not both")
		}
		return p.withInsight(cmd, func(t *service.Team) error {
			if len(args) == 0 {
				return p.listAdvice(cmd, t, *tag, *limit, *asJSON)
			}
			name, err := knownDomain(cmd.Context(), t, args[0])
			if err != nil {
				return err
			}
			advice, err := t.Advice(cmd.Context(), name)
			if err != nil {
				return err
			}
			if asked {
				return flags.print(cmd.Context(), p.out, t, format, name, advice.DNSRecords())
			}
			if *asJSON {
				return printJSON(p.out, wire.NewAdvice(advice))
			}
			simulation, err := t.Simulate(cmd.Context(), name, dmarcd.Days{}, service.PolicyChange{})
			if err != nil {
				return err
			}
			return printAdvice(p.out, wire.NewAdvice(advice), simulation)
		})
	}
	return cmd
}

// listAdvice lists the next actions of the domains with a tag, "" for all.
func (p *program) listAdvice(cmd *cobra.Command, t *service.Team, tag string, limit int, asJSON bool) error {
	t, err := narrowed(t, tag)
	if err != nil {
		return err
	}
	if err := checkLimit(limit); err != nil {
		return err
	}
	all, _, err := t.AllAdvice(cmd.Context(), 0, limit)
	if err != nil {
		return err
	}
	return printList(p.out, asJSON, convert(all, wire.NewAdvice), []string{"DOMAIN", "STAGE", "NEXT ACTION", "REASON"}, func(a wire.Advice) []string {
		if a.NextAction == nil {
			return []string{a.Domain, a.Stage, "-", "-"}
		}
		return []string{a.Domain, a.Stage, a.NextAction.Title, a.NextAction.Reason}
	})
}

// withInsight is withTeam for a use case that reads who sends mail.
func (p *program) withInsight(cmd *cobra.Command, f func(t *service.Team) error) error {
	return p.withTeamOf(cmd, (*app.Installation).OpenInsight, func(_ config.Config, t *service.Team) error { return f(t) })
}

// printAdvice prints advice and the senders behind it. It replaces control characters:
// names come from reports and the DNS.
func printAdvice(out io.Writer, advice wire.Advice, s service.Simulation) error {
	facts := [][]string{{"Stage:", advice.Stage}, {"Conclusion:", advice.Conclusion}, {"Done:", fmt.Sprintf("%d %%", advice.Done)}}
	if next := advice.NextAction; next == nil {
		facts = append(facts, []string{"Next action:", "none"})
	} else {
		facts = append(facts, []string{"Next action:", next.Title}, []string{"Reason:", next.Reason})
		for _, effect := range []struct {
			name     string
			messages int64
		}{
			{"Legitimate messages affected:", next.LegitimateAffected},
			{"Forwarded messages affected:", next.ForwarderAffected},
			{"Unknown messages affected:", next.UnknownAffected},
			{"Spoofed messages stopped:", next.SpoofingStopped},
		} {
			facts = append(facts, []string{effect.name, strconv.FormatInt(effect.messages, 10)})
		}
		if next.Record != nil {
			facts = append(facts, []string{"Record:", fmt.Sprintf("%s %s %q", next.Record.Name, next.Record.Type, next.Record.Value)})
		}
		if next.Question != nil {
			facts = append(facts, []string{"Answer with:", fmt.Sprintf("dmarcd domain answer --team NAME %s %s yours|not-yours", advice.Domain, next.Question.Key)})
		}
	}
	if err := printTable(out, []string{"Domain:", advice.Domain}, facts); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(out); err != nil {
		return err
	}
	steps := convert(advice.Steps, func(step wire.Step) []string { return []string{step.State, step.Title, step.Reason} })
	if err := printTable(out, []string{"STEP", "TITLE", "REASON"}, steps); err != nil || len(s.Senders) == 0 {
		return err
	}
	senders := s.Senders[:min(len(s.Senders), advisedSenders)]
	rows := convert(senders, func(sender insight.SimulatedSender) []string {
		return []string{
			sender.Name, sender.Key, string(sender.Class), strconv.FormatInt(sender.Messages, 10), strconv.FormatInt(sender.Affected, 10),
		}
	})
	if _, err := fmt.Fprintln(out); err != nil {
		return err
	}
	if err := printTable(out, []string{"SENDER", "KEY", "CLASS", "MESSAGES", "AFFECTED"}, rows); err != nil {
		return err
	}
	for _, sender := range senders {
		if sender.Cause == "" {
			continue
		}
		text := fmt.Sprintf("\n%s\n  %s\n", printable(sender.Name), printable(sender.Cause))
		if sender.Fix != "" {
			text += fmt.Sprintf("  %s\n", printable(sender.Fix))
		}
		if _, err := io.WriteString(out, text); err != nil {
			return err
		}
	}
	return nil
}

func (p *program) domainSenderCommand() *cobra.Command {
	const automatic = "automatic"
	classes := []string{string(dmarcd.ClassYours), string(dmarcd.ClassForwarder), string(dmarcd.ClassUnknown), string(dmarcd.ClassSpoofing), automatic}
	cmd := &cobra.Command{
		Use:   "sender --team NAME DOMAIN KEY CLASS",
		Short: "Set the class of a sender for a domain: yours, forwarder, unknown, spoofing or automatic",
		Long: `Overrides the class of a sender for a domain. "dmarcd advise" prints the keys of senders.
The class automatic removes the override.`,
		Example: `  dmarcd domain sender --team acme example.com AS64496:others yours
  dmarcd domain sender --team acme example.com 192.0.2.0/24 yours
  dmarcd domain sender --team acme example.com sendgrid automatic`,
		Args: cobra.ExactArgs(3),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) < 2 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return classes, cobra.ShellCompDirectiveNoFileComp
		},
	}
	teamFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var class dmarcd.Class
		if args[2] != automatic {
			var err error
			if class, err = dmarcd.ParseSenderClass(args[2]); err != nil {
				return fmt.Errorf("the class must be yours, forwarder, unknown, spoofing or automatic%s", didYouMean(args[2], classes))
			}
		}
		return p.withInsight(cmd, func(t *service.Team) error {
			name, err := knownDomain(cmd.Context(), t, args[0])
			if err != nil {
				return err
			}
			return t.SetSenderClass(cmd.Context(), name, args[1], class)
		})
	}
	return cmd
}

func (p *program) domainAnswerCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "answer --team NAME DOMAIN KEY yours|not-yours",
		Short: "Answer the question whether a sender sends for you",
		Long: `Answers a question of "dmarcd advise", which prints the key of the sender. The answer is the
class of the sender for the domain, and the next action follows from it.`,
		Example: `  dmarcd domain answer --team acme example.com sendgrid:rest yours`,
		Args:    cobra.ExactArgs(3),
	}
	teamFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if args[2] != "yours" && args[2] != "not-yours" {
			return fmt.Errorf("the answer must be yours or not-yours%s", didYouMean(args[2], []string{"yours", "not-yours"}))
		}
		return p.withInsight(cmd, func(t *service.Team) error {
			name, err := knownDomain(cmd.Context(), t, args[0])
			if err != nil {
				return err
			}
			_, err = t.Answer(cmd.Context(), name, args[1], args[2] == "yours")
			return err
		})
	}
	return cmd
}

func (p *program) domainForwardingCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "forwarding --team NAME DOMAIN MESSAGES",
		Short: "Accept how many forwarded messages a stricter policy affects",
		Long: `Accepts that a stricter policy affects that many forwarded messages in 30 days. Above 2 % of the
forwarded mail, "dmarcd advise" proposes the policy only then. 0 withdraws it.`,
		Example: `  dmarcd domain forwarding --team acme example.com 290`,
		Args:    cobra.ExactArgs(2),
	}
	teamFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		messages, err := strconv.ParseInt(args[1], 10, 64)
		if err != nil {
			return errors.New("the number of messages must be a whole number")
		}
		return p.withDomain(cmd, args[0], func(_ config.Config, t *service.Team, name string) error {
			return t.AcceptForwarding(cmd.Context(), name, messages)
		})
	}
	return cmd
}

func (p *program) domainParkedCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "parked --team NAME DOMAIN yes|no",
		Short: "Mark a domain as not used for mail",
		Long: `Marks a domain that is not used for mail, or removes the mark. For a parked domain, "dmarcd advise"
proposes a record with p=reject at once.`,
		Example: `  dmarcd domain parked --team acme old.example yes`,
		Args:    cobra.ExactArgs(2),
	}
	teamFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if args[1] != "yes" && args[1] != "no" {
			return errors.New("the mark must be yes or no")
		}
		return p.withDomain(cmd, args[0], func(_ config.Config, t *service.Team, name string) error {
			return t.SetParked(cmd.Context(), name, args[1] == "yes")
		})
	}
	return cmd
}
