package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/client"
)

func (p *program) reportCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "report", Short: "Manage received and rejected reports", Args: noArguments, RunE: showHelp}
	cmd.AddCommand(p.reportListCommand(), p.reportExcludeCommand(), p.reportIncludeCommand(), p.reportDeleteCommand(),
		p.reportRejectedCommand(), p.reportRetryCommand())
	return cmd
}

// defaultReports is the default of --limit.
const defaultReports = 100

func (p *program) reportListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list --team NAME",
		Short: "List the reports of a team, the latest first",
		Long: `Lists the reports of a team, the latest first. The state unclaimed is that of reports
about no domain of the team. They count once the domain is added.`,
		Example: `  dmarcd report list --team acme --domain example.com
  dmarcd report list --team acme --kind tls --limit 10 --json
  dmarcd report list --team acme --state held
  dmarcd report list --team acme --unclaimed`,
		Args: cobra.NoArgs,
	}
	apiFlags(cmd)
	asJSON, tag := jsonFlag(cmd), tagFlag(cmd)
	var filter client.ReportFilter
	flags := cmd.Flags()
	flags.StringVar(&filter.Domain, "domain", "", "only reports about this domain of the team")
	flags.StringVar(&filter.Organization, "org", "", "only reports from this reporter")
	flags.StringVar(&filter.ExternalID, "report-id", "", "only reports with this report id")
	flags.StringVar(&filter.Quirk, "quirk", "", "only reports with this quirk")
	flags.BoolVar(&filter.Unclaimed, "unclaimed", false, "only reports about names without a matching domain of the team")
	flags.StringVar(&filter.Kind, "kind", "", "only aggregate, failure or tls reports")
	flags.StringVar(&filter.State, "state", "", "only counted, excluded, replaced or held reports")
	limit := flags.Int("limit", defaultReports, "maximum number of entries")
	cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		if filter.State != "" && !slices.Contains(dmarcd.ReportStates(), dmarcd.ReportState(filter.State)) {
			return fmt.Errorf("--state %q: must be one of counted, excluded, replaced or held", filter.State)
		}
		if filter.Kind != "" && !slices.Contains(dmarcd.ReportKinds(), dmarcd.ReportKind(filter.Kind)) {
			return fmt.Errorf("--kind %q: must be one of aggregate, failure or tls", filter.Kind)
		}
		if err := checkLimit(*limit); err != nil {
			return err
		}
		if filter.Domain != "" {
			if filter.Domain, err = dmarcd.ParseName(filter.Domain); err != nil {
				return err
			}
		}
		if filter.Tag, err = parseTag(*tag); err != nil {
			return err
		}
		filter.PageSize = min(*limit, listPart)
		return p.withClient(cmd, func(c *client.Client) error {
			reports, err := first(*limit, c.ListReports(cmd.Context(), filter))
			if err != nil {
				return err
			}
			heading := []string{"ID", "KIND", "FROM", "DOMAIN", "BEGIN", "RECORDS", "MESSAGES", "COMPLIANT", "SESSIONS", "STATE", "GENUINE", "AUTHENTICATED", "INTAKE", "RECEIVED"}
			return printList(p.out, *asJSON, reports, heading, func(r client.Report) []string {
				return []string{
					r.ID, r.Kind, orDash(r.Organization), orDash(r.Domain), orDash(r.Begin), strconv.Itoa(r.Records),
					numberOrDash(r.Messages), numberOrDash(r.Compliant), numberOrDash(r.Sessions), stateWord(r), r.Genuine, orDash(r.Authenticated), r.Intake, r.ReceivedAt,
				}
			})
		})
	}
	return cmd
}

// numberOrDash returns a number, "-" for none.
func numberOrDash(number *int64) string {
	if number == nil {
		return "-"
	}
	return strconv.FormatInt(*number, 10)
}

// stateWord returns the state of a report. An included one may still be unclaimed.
func stateWord(r client.Report) string {
	switch {
	case r.Counted && r.Unclaimed:
		return string(dmarcd.Unclaimed)
	case r.Counted:
		return string(dmarcd.ReportCounted)
	case r.Replaced:
		return string(dmarcd.ReportReplaced)
	case r.HeldReason != nil:
		return string(dmarcd.ReportHeld)
	}
	return string(dmarcd.ReportExcluded)
}

func (p *program) reportRejectedCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "rejected --team NAME", Short: "List rejected reports, the latest first", Example: "  dmarcd report rejected --team acme --json", Args: cobra.NoArgs,
	}
	apiFlags(cmd)
	asJSON, limit := jsonFlag(cmd), cmd.Flags().Int("limit", defaultReports, "maximum number of entries")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := checkLimit(*limit); err != nil {
			return err
		}
		return p.withClient(cmd, func(c *client.Client) error {
			rejected, err := first(*limit, c.ListRejected(cmd.Context()))
			if err != nil {
				return err
			}
			heading := []string{"ID", "KIND", "INTAKE", "NAME", "MEMBER", "BYTES", "RECEIVED", "REASON"}
			return printList(p.out, *asJSON, rejected, heading, func(r client.Rejected) []string {
				return []string{r.ID, orDash(r.Kind), r.Intake, orDash(r.Name), orDash(&r.Member), strconv.FormatInt(r.Size, 10), r.ReceivedAt, r.Reason}
			})
		})
	}
	return cmd
}

func (p *program) reportRetryCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "retry --team NAME [ID...]",
		Short: "Retry rejected reports, for example after an upgrade; without ids, all of them",
		Long: `Parses rejected reports again. Reports that can be parsed now are counted and removed
from the list; the others remain, with the current reason.

Exit status: 0 if all were accepted; 1 if some are still rejected.`,
		Example: `  dmarcd report retry --team acme
  dmarcd report retry --team acme rej_1omg`,
	}
	apiFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		for _, arg := range args {
			if _, err := dmarcd.ParseRejectedID(arg); err != nil {
				return fmt.Errorf("%q: %w", arg, err)
			}
		}
		return p.withClient(cmd, func(c *client.Client) error {
			if len(args) == 0 {
				for rejected, err := range c.ListRejected(cmd.Context()) {
					if err != nil {
						return err
					}
					args = append(args, rejected.ID)
				}
			}
			return p.retry(cmd, c, args)
		})
	}
	return cmd
}

// retry retries rejected reports. Those that are accepted are no longer listed.
func (p *program) retry(cmd *cobra.Command, c *client.Client, ids []string) error {
	bar, done := p.progress(len(ids), defaultReports, "retrying")
	defer done()
	open := make(map[string]bool, len(ids))
	for _, id := range ids {
		_, err := c.RetryRejected(cmd.Context(), id)
		switch {
		case errors.Is(err, dmarcd.ErrNotFound):
			p.notify("%s: not found, or its original has been deleted\n", id)
		case err != nil && !errors.Is(err, dmarcd.ErrInvalid): // rejected again
			return err
		default:
			open[id] = true
		}
		bar(1)
	}
	used := len(open)
	for rejected, err := range c.ListRejected(cmd.Context()) {
		if err != nil {
			return err
		}
		if open[rejected.ID] {
			used--
		}
	}
	if _, err := fmt.Fprintf(p.out, "%d of %d accepted\n", used, len(ids)); err != nil {
		return err
	}
	if used < len(ids) {
		return errReported
	}
	return nil
}

func (p *program) reportExcludeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "exclude --team NAME [ID...] [--org NAME] [--from DAY] [--to DAY]",
		Short: "Exclude reports from all counters",
		Long: `Excludes the reports with these ids, or all reports from a reporter or a range of days,
from all counters. The reports remain stored, and later versions of them are excluded too.

Exit status: 0 if all were excluded; 1 if some were not found.`,
		Example: `  dmarcd report exclude --team acme rep_5k2w9x0c7h1f
  dmarcd report exclude --team acme --org receiver.example --from 2026-11-01 --to 2026-11-30`,
	}
	return p.countedCommand(cmd, false, "excluded")
}

func (p *program) reportIncludeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "include --team NAME [ID...] [--org NAME] [--from DAY] [--to DAY]",
		Short: "Include excluded reports in the counters again, or release held ones",
		Long: `Includes the reports with these ids in the counters, or all excluded reports from a
reporter or a range of days. Held reports are released by id only.

Exit status: 0 if all were included; 1 if some were not found.`,
		Example: `  dmarcd report include --team acme rep_5k2w9x0c7h1f
  dmarcd report include --team acme --org receiver.example`,
	}
	return p.countedCommand(cmd, true, "included")
}

// countedCommand completes a command that includes or excludes reports; done is the
// participle to print.
func (p *program) countedCommand(cmd *cobra.Command, counted bool, done string) *cobra.Command {
	apiFlags(cmd)
	selected := client.Selection{Counted: counted}
	flags := cmd.Flags()
	org := flags.String("org", "", "all reports from this reporter")
	from := flags.String("from", "", "all reports that begin on this day (YYYY-MM-DD) or later")
	to := flags.String("to", "", "all reports that begin on this day (YYYY-MM-DD) or earlier")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		for name, day := range map[string]*string{"from": from, "to": to} {
			if _, err := dayFlag(name, *day); err != nil {
				return err
			}
		}
		if (*org+*from+*to == "") == (len(args) == 0) {
			return errors.New("give either ids, or --org, --from and --to")
		}
		selected.Reporter, selected.From, selected.To = given(org), given(from), given(to)
		for _, id := range args {
			if _, err := dmarcd.ParseReportID(id); err != nil {
				return fmt.Errorf("%q: %w", id, err)
			}
		}
		return p.withClient(cmd, func(c *client.Client) error {
			if len(args) == 0 {
				changed, err := c.SetReportsCounted(cmd.Context(), selected)
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(p.out, "%s %s\n", number(changed, "report"), done)
				return err
			}
			return p.decide(args, done, func(id string) error {
				_, err := c.SetReportCounted(cmd.Context(), id, counted)
				return err
			})
		})
	}
	return cmd
}

// given returns nil for a flag that is empty.
func given(flag *string) *string {
	if *flag == "" {
		return nil
	}
	return flag
}

func (p *program) reportDeleteCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "delete --team NAME ID...",
		Short: "Delete reports or rejected reports with their originals",
		Long: `Deletes reports (rep_...) and rejected reports (rej_...). The original file or message is
deleted with the last report from it. A deleted report that arrives again is stored again.

Exit status: 0 if all were deleted; 1 if some were not found.`,
		Example: "  dmarcd report delete --team acme rep_5k2w9x0c7h1f rej_1omg",
		Args:    cobra.MinimumNArgs(1),
	}
	apiFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		for _, arg := range args {
			_, err := dmarcd.ParseReportID(arg)
			if strings.HasPrefix(arg, "rej_") {
				_, err = dmarcd.ParseRejectedID(arg)
			}
			if err != nil {
				return fmt.Errorf("%q: %w", arg, err)
			}
		}
		return p.withClient(cmd, func(c *client.Client) error {
			return p.decide(args, "deleted", func(id string) error {
				if strings.HasPrefix(id, "rej_") {
					return c.DeleteRejected(cmd.Context(), id)
				}
				return c.DeleteReport(cmd.Context(), id)
			})
		})
	}
	return cmd
}

// decide applies f to each id and prints the number of successes. Missing ids are
// reported.
func (p *program) decide(ids []string, done string, f func(id string) error) error {
	changed := 0
	for _, id := range ids {
		err := f(id)
		switch {
		case errors.Is(err, dmarcd.ErrNotFound):
			p.notify("%s: report not found\n", id)
		case err != nil:
			return err
		default:
			changed++
		}
	}
	if _, err := fmt.Fprintf(p.out, "%d of %d %s\n", changed, len(ids), done); err != nil {
		return err
	}
	if changed < len(ids) {
		return errReported
	}
	return nil
}

// dayFlag parses a day; nil if the flag is empty.
func dayFlag(name, text string) (*dmarcd.Day, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // nil means any day
	}
	day, err := dmarcd.ParseDay(text)
	if err != nil {
		return nil, fmt.Errorf("--%s %q: must be a day such as 2026-11-15", name, text)
	}
	return &day, nil
}
