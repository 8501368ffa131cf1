package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

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
			heading := []string{"ID", "KIND", "FROM", "DOMAIN", "BEGIN", "RECORDS", "MESSAGES", "COMPLIANT", "STATE", "GENUINE", "AUTHENTICATED", "INTAKE", "RECEIVED"}
			return printList(p.out, *asJSON, convert(reports, wire.NewStoredReport), heading, func(r wire.StoredReport) []string {
				return []string{
					r.ID, r.Kind, orDash(r.Organization), orDash(r.Domain), orDash(r.Begin), strconv.Itoa(r.Records),
					strconv.FormatInt(r.Messages, 10), strconv.FormatInt(r.Compliant, 10), stateWord(r, unclaimed[r.ID]), r.Genuine, orDash(r.Authenticated), r.Intake, r.ReceivedAt,
				}
			})
		})
	}
	return cmd
}

// stateWord returns the state of a report. One that is to be counted may still be unclaimed.
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
