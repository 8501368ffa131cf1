package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/config"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/wire"
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
	teamFlag(cmd)
	asJSON, tag := jsonFlag(cmd), tagFlag(cmd)
	var filter service.ReportFilter
	flags := cmd.Flags()
	flags.StringVar(&filter.Domain, "domain", "", "only reports about this domain of the team")
	flags.StringVar(&filter.Organization, "org", "", "only reports from this reporter")
	flags.StringVar(&filter.ExternalID, "report-id", "", "only reports with this report id")
	flags.StringVar(&filter.Quirk, "quirk", "", "only reports with this quirk")
	flags.BoolVar(&filter.Unclaimed, "unclaimed", false, "only reports about names without a matching domain of the team")
	kind := flags.String("kind", "", "only aggregate, failure or tls reports")
	state := flags.String("state", "", "only counted, excluded, replaced or held reports")
	limit := flags.Int("limit", defaultReports, "maximum number of entries")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		filter.State = dmarcd.ReportState(*state)
		if *state != "" && !slices.Contains(dmarcd.ReportStates(), filter.State) {
			return fmt.Errorf("--state %q: must be one of counted, excluded, replaced or held", *state)
		}
		filter.Kind = dmarcd.ReportKind(*kind)
		if *kind != "" && !slices.Contains(dmarcd.ReportKinds(), filter.Kind) {
			return fmt.Errorf("--kind %q: must be one of aggregate, failure or tls", *kind)
		}
		if err := checkLimit(*limit); err != nil {
			return err
		}
		if filter.Domain != "" {
			name, err := dmarcd.ParseName(filter.Domain)
			if err != nil {
				return err
			}
			filter.Domain = name
		}
		return p.withTeam(cmd, func(_ config.Config, t *service.Team) error {
			t, err := narrowed(t, *tag)
			if err != nil {
				return err
			}
			reports, err := t.Reports(cmd.Context(), filter, 0, *limit)
			if err != nil {
				return err
			}
			unclaimed := make(map[string]bool)
			for _, r := range reports {
				unclaimed[r.ID.String()] = r.Unclaimed
			}
			heading := []string{"ID", "KIND", "FROM", "DOMAIN", "BEGIN", "RECORDS", "MESSAGES", "COMPLIANT", "SESSIONS", "STATE", "GENUINE", "AUTHENTICATED", "INTAKE", "RECEIVED"}
			return printList(p.out, *asJSON, convert(reports, wire.NewStoredReport), heading, func(r wire.StoredReport) []string {
				return []string{
					r.ID, r.Kind, orDash(r.Organization), orDash(r.Domain), orDash(r.Begin), strconv.Itoa(r.Records),
					numberOrDash(r.Messages), numberOrDash(r.Compliant), numberOrDash(r.Sessions), stateWord(r, unclaimed[r.ID]), r.Genuine, orDash(r.Authenticated), r.Intake, r.ReceivedAt,
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
func stateWord(r wire.StoredReport, unclaimed bool) string {
	switch {
	case r.Counted && unclaimed:
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
	cmd := &cobra.Command{Use: "rejected --team NAME", Short: "List rejected reports, the latest first", Example: "  dmarcd report rejected --team acme --json"}
	limit := cmd.Flags().Int("limit", defaultReports, "maximum number of entries")
	list := func(t *service.Team, ctx context.Context) ([]dmarcd.Rejected, error) {
		if err := checkLimit(*limit); err != nil {
			return nil, err
		}
		return t.Rejected(ctx, 0, *limit)
	}
	heading := []string{"ID", "KIND", "INTAKE", "NAME", "MEMBER", "BYTES", "RECEIVED", "REASON"}
	return teamList(p, cmd, list, wire.NewRejected, heading, func(r wire.Rejected) []string {
		return []string{r.ID, orDash(r.Kind), r.Intake, orDash(r.Name), orDash(&r.Member), strconv.FormatInt(r.Size, 10), r.ReceivedAt, r.Reason}
	})
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
	teamFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ids := make([]dmarcd.RejectedID, len(args))
		for i, arg := range args {
			id, err := dmarcd.ParseRejectedID(arg)
			if err != nil {
				return fmt.Errorf("%q: %w", arg, err)
			}
			ids[i] = id
		}
		return p.withTeam(cmd, func(_ config.Config, t *service.Team) error {
			if len(args) == 0 {
				var err error
				if ids, err = allRejected(cmd, t); err != nil {
					return err
				}
			}
			return p.retry(cmd, t, ids)
		})
	}
	return cmd
}

// allRejected returns the ids of all rejected reports.
func allRejected(cmd *cobra.Command, t *service.Team) ([]dmarcd.RejectedID, error) {
	var ids []dmarcd.RejectedID
	last := dmarcd.RejectedID(0)
	for {
		page, err := t.Rejected(cmd.Context(), last, 1000)
		if err != nil || len(page) == 0 {
			return ids, err
		}
		for _, r := range page {
			ids = append(ids, r.ID)
		}
		last = ids[len(ids)-1]
	}
}

func (p *program) retry(cmd *cobra.Command, t *service.Team, ids []dmarcd.RejectedID) error {
	bar, done := p.progress(len(ids), defaultReports, "retrying")
	defer done()
	used := 0
	for _, id := range ids {
		settled, _, err := t.Retry(cmd.Context(), id)
		switch {
		case errors.Is(err, dmarcd.ErrNotFound):
			p.notify("%s: not found, or its original has been deleted\n", id)
		case err != nil:
			return err
		case settled:
			used++
		}
		bar(1)
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
	teamFlag(cmd)
	var selected service.Selection
	flags := cmd.Flags()
	flags.StringVar(&selected.Reporter, "org", "", "all reports from this reporter")
	from := flags.String("from", "", "all reports that begin on this day (YYYY-MM-DD) or later")
	to := flags.String("to", "", "all reports that begin on this day (YYYY-MM-DD) or earlier")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var err error
		if selected.Days.From, err = dayFlag("from", *from); err != nil {
			return err
		}
		if selected.Days.To, err = dayFlag("to", *to); err != nil {
			return err
		}
		if (selected == service.Selection{}) == (len(args) == 0) {
			return errors.New("give either ids, or --org, --from and --to")
		}
		ids, err := reportIDs(args)
		if err != nil {
			return err
		}
		return p.withTeam(cmd, func(_ config.Config, t *service.Team) error {
			if len(ids) == 0 {
				changed, err := t.SetCountedAll(cmd.Context(), selected, counted)
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(p.out, "%s %s\n", number(changed, "report"), done)
				return err
			}
			return p.decide(args, done, func(i int) error {
				_, err := t.SetCounted(cmd.Context(), ids[i], counted)
				return err
			})
		})
	}
	return cmd
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
	teamFlag(cmd)
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
		return p.withTeam(cmd, func(_ config.Config, t *service.Team) error {
			return p.decide(args, "deleted", func(i int) error {
				if id, err := dmarcd.ParseRejectedID(args[i]); err == nil {
					return t.DeleteRejected(cmd.Context(), id)
				}
				id, err := dmarcd.ParseReportID(args[i])
				if err != nil {
					return err
				}
				return t.DeleteReport(cmd.Context(), id)
			})
		})
	}
	return cmd
}

// decide applies f to each id and prints the number of successes. Missing ids are
// reported.
func (p *program) decide(ids []string, done string, f func(i int) error) error {
	changed := 0
	for i, id := range ids {
		err := f(i)
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

func reportIDs(args []string) ([]dmarcd.ReportID, error) {
	ids := make([]dmarcd.ReportID, len(args))
	for i, arg := range args {
		id, err := dmarcd.ParseReportID(arg)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", arg, err)
		}
		ids[i] = id
	}
	return ids, nil
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
