package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/config"
	"github.com/dmarcd/dmarcd/internal/service"
)

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
