package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/client"
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
	apiFlags(cmd)
	asJSON, tag := jsonFlag(cmd), tagFlag(cmd)
	limit := cmd.Flags().Int("limit", defaultAdvised, "maximum number of domains that are listed")
	var flags recordFlags
	flags.addTo(cmd, "json", "tag")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		asked, err := flags.parse()
		if err != nil {
			return err
		}
		switch {
		case asked && len(args) == 0:
			return errors.New("--format needs a domain")
		case len(args) > 0 && *tag != "":
			return errors.New("--tag selects domains of the list: give a domain or a tag, not both")
		case len(args) == 0:
			return p.listAdvice(cmd, *tag, *limit, *asJSON)
		}
		return p.withInsight(cmd, ofDomain(cmd, args[0], func(c *client.Client, name string) error {
			if asked {
				return printText(p.out)(c.GetAdviceFile(cmd.Context(), name, flags.format, flags.zone))
			}
			advice, err := client.Collect(c.ListAdvice(cmd.Context(), client.AdviceFilter{Domain: name}))
			if err != nil {
				return err
			}
			if *asJSON {
				return printJSON(p.out, advice[0])
			}
			simulation, err := c.SimulatePolicy(cmd.Context(), name, client.PolicyChange{})
			if err != nil {
				return err
			}
			return printAdvice(p.out, advice[0], simulation)
		}))
	}
	return cmd
}

// listAdvice lists the next actions of the domains with a tag, "" for all.
func (p *program) listAdvice(cmd *cobra.Command, tag string, limit int, asJSON bool) error {
	tag, err := parseTag(tag)
	if err != nil {
		return err
	}
	if err := checkLimit(limit); err != nil {
		return err
	}
	return p.withInsight(cmd, func(c *client.Client) error {
		all, err := first(limit, c.ListAdvice(cmd.Context(), client.AdviceFilter{Tag: tag, PageSize: min(limit, listPart)}))
		if err != nil {
			return err
		}
		return printList(p.out, asJSON, all, []string{"DOMAIN", "STAGE", "NEXT ACTION", "REASON"}, func(a client.Advice) []string {
			if a.NextAction == nil {
				return []string{a.Domain, a.Stage, "-", "-"}
			}
			return []string{a.Domain, a.Stage, a.NextAction.Title, a.NextAction.Reason}
		})
	})
}

// printAdvice prints advice and the senders behind it. It replaces control characters:
// names come from reports and the DNS.
func printAdvice(out io.Writer, advice client.Advice, s client.Simulation) error {
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
			facts = append(facts, []string{"Answer with:", fmt.Sprintf("dmarcd domain answer --team NAME -- %s %s yours|not-yours", advice.Domain, next.Question.Key)})
		}
	}
	if err := printTable(out, []string{"Domain:", advice.Domain}, facts); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(out); err != nil {
		return err
	}
	steps := convert(advice.Steps, func(step client.Step) []string { return []string{step.State, step.Title, step.Reason} })
	if err := printTable(out, []string{"STEP", "TITLE", "REASON"}, steps); err != nil || len(s.Senders) == 0 {
		return err
	}
	senders := s.Senders[:min(len(s.Senders), advisedSenders)]
	rows := convert(senders, func(sender client.SimulatedSender) []string {
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
		if sender.Cause == nil {
			continue
		}
		text := fmt.Sprintf("\n%s\n  %s\n", printable(sender.Name), printable(*sender.Cause))
		if sender.Fix != nil {
			text += fmt.Sprintf("  %s\n", printable(*sender.Fix))
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
	apiFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var class *string
		if args[2] != automatic {
			if _, err := dmarcd.ParseSenderClass(args[2]); err != nil {
				return fmt.Errorf("the class must be yours, forwarder, unknown, spoofing or automatic%s", didYouMean(args[2], classes))
			}
			class = &args[2]
		}
		return p.withInsight(cmd, ofDomain(cmd, args[0], func(c *client.Client, name string) error {
			_, err := c.SetSenderClass(cmd.Context(), name, args[1], class)
			return err
		}))
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
	apiFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if args[2] != "yours" && args[2] != "not-yours" {
			return fmt.Errorf("the answer must be yours or not-yours%s", didYouMean(args[2], []string{"yours", "not-yours"}))
		}
		return p.withInsight(cmd, ofDomain(cmd, args[0], func(c *client.Client, name string) error {
			_, err := c.AnswerQuestion(cmd.Context(), name, args[1], strings.ReplaceAll(args[2], "-", "_"))
			return err
		}))
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
	apiFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		messages, err := strconv.ParseInt(args[1], 10, 64)
		if err != nil {
			return errors.New("the number of messages must be a whole number")
		}
		return p.withDomain(cmd, args[0], func(c *client.Client, name string) error {
			var accepted *int64
			if messages != 0 {
				accepted = &messages
			}
			_, err := c.AcceptForwarding(cmd.Context(), name, accepted)
			return err
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
	apiFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if args[1] != "yes" && args[1] != "no" {
			return fmt.Errorf("the mark must be yes or no%s", didYouMean(args[1], []string{"yes", "no"}))
		}
		return p.withDomain(cmd, args[0], func(c *client.Client, name string) error {
			_, err := c.SetParked(cmd.Context(), name, args[1] == "yes")
			return err
		})
	}
	return cmd
}
