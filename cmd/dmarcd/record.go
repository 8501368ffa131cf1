package main

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/config"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/wire"
)

func (p *program) recordCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "record",
		Short: "Manage records that a domain has by a CNAME record",
		Long: `Manages the records of a domain that dmarcd answers for: dmarc at _dmarc, spf, mta_sts at _mta-sts and mta-sts,
tls_rpt at _smtp._tls and bimi at default._bimi. The domain has CNAME records there that lead to
a name in the zone of this installation (DMARCD_ZONE), and redirect= or include: in its SPF
record; from then on a change takes one command.`,
		Args: noArguments,
		RunE: showHelp,
	}
	cmd.AddCommand(p.recordListCommand(), p.recordHistoryCommand(), p.recordPublishCommand(), p.recordUndoCommand(), p.recordStopCommand(), p.recordApprovalCommand(), p.recordTargetCommand())
	return cmd
}

func (p *program) recordListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list --team NAME DOMAIN",
		Short:   "List the managed records of a domain, whether their CNAME records are there, and what waits for approval",
		Example: "  dmarcd record list --team acme example.com",
		Args:    cobra.ExactArgs(1),
	}
	teamFlag(cmd)
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return p.withTeam(cmd, func(_ config.Config, t *service.Team) error {
			records, err := t.ManagedRecords(cmd.Context(), args[0])
			if err != nil {
				return unknownDomain(err, args[0])
			}
			proposals, err := t.RecordProposals(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			for _, proposal := range proposals {
				records = append(records, service.ManagedRecord{RecordVersion: proposal.RecordVersion, Owner: proposal.Kind.Owner(args[0]), State: dmarcd.RecordProposed})
			}
			return p.printRecords(records, *asJSON)
		})
	}
	return cmd
}

func (p *program) printRecords(records []service.ManagedRecord, asJSON bool) error {
	heading := []string{"KIND", "STATE", "VERSION", "NAME", "CNAME TO", "RECORD", "NOTE", "NEXT"}
	shape := func(r service.ManagedRecord) wire.ManagedRecord {
		return wire.NewManagedRecord(r.RecordVersion, r.Owner, r.Target, r.State, r.Served, r.Note, r.Proposal)
	}
	return printList(p.out, asJSON, convert(records, shape), heading, func(r wire.ManagedRecord) []string {
		names := r.Name
		if r.Kind == string(dmarcd.RecordMTASTS) {
			names = strings.Join(dmarcd.RecordMTASTS.Aliases(strings.TrimPrefix(r.Name, dmarcd.RecordMTASTS.Owner(""))), ", ")
		}
		row := []string{r.Kind, r.State, strconv.FormatInt(r.Version, 10), names, orDash(r.Target), r.Record, orDash(r.Note), orDash(r.Proposal)}
		return convert(row, func(cell string) string { return strings.Join(strings.Fields(cell), " ") }) // policies have lines
	})
}

func (p *program) recordHistoryCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "history --team NAME DOMAIN",
		Short:   "List the versions of the managed records of a domain, the latest first",
		Example: "  dmarcd record history --team acme example.com --json",
		Args:    cobra.ExactArgs(1),
	}
	teamFlag(cmd)
	asJSON := jsonFlag(cmd)
	heading := []string{"KIND", "VERSION", "PUBLISHED", "BY", "REASON", "RECORD"}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return p.withTeam(cmd, func(_ config.Config, t *service.Team) error {
			versions, err := t.RecordVersions(cmd.Context(), args[0])
			if err != nil {
				return unknownDomain(err, args[0])
			}
			return printList(p.out, *asJSON, convert(versions, wire.NewRecordVersion), heading, func(v wire.RecordVersion) []string {
				return []string{v.Kind, strconv.FormatInt(v.Version, 10), v.PublishedAt, v.Author, orDash(v.Reason), v.Record}
			})
		})
	}
	return cmd
}

func (p *program) recordPublishCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "publish --team NAME DOMAIN KIND [RECORD]",
		Short: "Publish a managed record, or begin with the one that is published now",
		Long: `Publishes a version of a record: dmarc, spf, mta_sts, tls_rpt or bimi. The first one gets a name in the zone,
and the command prints the CNAME record to publish for it; without RECORD it is the one that
the domain has now, so that the CNAME record changes nothing.

--base is the version that the new one replaces. If another one was published meanwhile, the
command fails. Without it, the new version replaces whatever is published.`,
		Example: `  dmarcd record publish --team acme example.com dmarc
  dmarcd record publish --team acme example.com dmarc "v=DMARC1; p=quarantine; rua=mailto:dmarc@example.com" --base 1 --reason "all senders pass"`,
		Args:              cobra.RangeArgs(2, 3),
		ValidArgsFunction: completeKind,
	}
	teamFlag(cmd)
	asJSON := jsonFlag(cmd)
	base := cmd.Flags().Int64("base", -1, "version that it is based on, 0 for a record that is not managed yet (default: the published one)")
	reason := cmd.Flags().String("reason", "", "why, for the history")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		v := dmarcd.RecordVersion{Reason: *reason}
		if len(args) == 3 {
			v.Content = args[2]
		}
		return p.changeRecord(cmd, args, *base, *asJSON, func(t *service.Team, base int64, kind dmarcd.RecordKind) (service.ManagedRecord, error) {
			v.Kind = kind
			return t.PublishRecord(cmd.Context(), args[0], base, v)
		})
	}
	return cmd
}

func (p *program) recordUndoCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:               "undo --team NAME DOMAIN KIND",
		Short:             "Publish the version before the last one again, as a new version",
		Example:           "  dmarcd record undo --team acme example.com dmarc",
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: completeKind,
	}
	teamFlag(cmd)
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return p.changeRecord(cmd, args, -1, *asJSON, func(t *service.Team, base int64, kind dmarcd.RecordKind) (service.ManagedRecord, error) {
			return t.UndoRecord(cmd.Context(), args[0], kind, base)
		})
	}
	return cmd
}

func (p *program) recordApprovalCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "approval --team NAME required|optional",
		Short: "Set whether another user has to approve what is published",
		Long: `Sets whether a team requires approval. With it, publish and undo only propose a version, and
another user of the team approves exactly that on the page of the domain.`,
		Example:   "  dmarcd record approval --team acme required",
		Args:      cobra.ExactArgs(1),
		ValidArgs: []string{"required", "optional"},
	}
	teamFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !slices.Contains(cmd.ValidArgs, args[0]) {
			return wrongUsage(&dmarcd.InvalidError{Message: "Approval is required or optional."})
		}
		return p.withTeam(cmd, func(_ config.Config, t *service.Team) error {
			return t.RequireApproval(cmd.Context(), args[0] == "required")
		})
	}
	return cmd
}

// changeRecord makes a change to the record of args, a domain and a kind, and prints what it came to. A
// base below 0 is the published version.
func (p *program) changeRecord(cmd *cobra.Command, args []string, base int64, asJSON bool, change func(t *service.Team, base int64, kind dmarcd.RecordKind) (service.ManagedRecord, error)) error {
	kind, err := dmarcd.ParseRecordKind(args[1])
	if err != nil {
		return wrongUsage(err)
	}
	return p.withTeam(cmd, func(_ config.Config, t *service.Team) error {
		if base < 0 {
			versions, err := t.RecordVersions(cmd.Context(), args[0])
			if err != nil {
				return unknownDomain(err, args[0])
			}
			base = 0
			if at := slices.IndexFunc(versions, func(v dmarcd.RecordVersion) bool { return v.Kind == kind }); at >= 0 {
				base = versions[at].Version
			}
		}
		record, err := change(t, base, kind)
		if errors.Is(err, dmarcd.ErrConflict) {
			return explained(err, "another version than %d is published: see `dmarcd record list`, and decide again", base)
		}
		if err != nil {
			return unknownDomain(err, args[0])
		}
		if err := p.printRecords([]service.ManagedRecord{record}, asJSON); err != nil || record.State == dmarcd.RecordManaged {
			return err
		}
		if record.State == dmarcd.RecordProposed {
			p.notify("The team requires approval: another user approves it on the page.\n")
			return nil
		}
		for _, r := range record.Setup(args[0], record.Target) {
			p.notify("Publish this record: %s\n", r)
		}
		return nil
	})
}

func (p *program) recordStopCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "stop --team NAME DOMAIN KIND",
		Short: "Stop managing a record; its name answers for 90 more days",
		Long: `Stops managing a record and removes its versions. Its name in the zone answers unchanged for
90 more days, and never again after that: replace the CNAME record with a record of your own
before. An SPF name stays current for that time, and an MTA-STS policy becomes mode: none at
once.`,
		Example:           "  dmarcd record stop --team acme example.com dmarc",
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: completeKind,
	}
	teamFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		kind, err := dmarcd.ParseRecordKind(args[1])
		if err != nil {
			return wrongUsage(err)
		}
		return p.withTeam(cmd, func(_ config.Config, t *service.Team) error {
			records, err := t.ManagedRecords(cmd.Context(), args[0])
			if err != nil {
				return unknownDomain(err, args[0])
			}
			at := slices.IndexFunc(records, func(r service.ManagedRecord) bool { return r.Kind == kind })
			if at < 0 {
				return explained(dmarcd.ErrNotFound, "%s has no managed record of the kind %s; `dmarcd record list` lists them", args[0], kind)
			}
			if err := t.StopRecord(cmd.Context(), args[0], kind); err != nil {
				return err
			}
			if records[at].Target == "" {
				p.notify("The record stays at %s as it is.\n", records[at].Owner)
				return nil
			}
			p.notify("%s\n", kind.Ending())
			if len(kind.Aliases(args[0])) == 1 {
				p.notify("The published record: %s. 300 IN TXT %q\n", records[at].Owner, records[at].Content)
			}
			return nil
		})
	}
	return cmd
}

// completeKind completes the kind of a record, after a domain.
func completeKind(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) != 1 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return convert(dmarcd.RecordKinds(), func(k dmarcd.RecordKind) string { return string(k) }), cobra.ShellCompDirectiveNoFileComp
}
