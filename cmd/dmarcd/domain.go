package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/config"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// listPart is the page size for listing domains.
const listPart = 1000

func (p *program) domainCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "domain", Short: "Manage the domains of a team", Args: noArguments, RunE: showHelp}
	cmd.AddCommand(p.domainListCommand(), p.domainAddCommand(), p.domainVerifyCommand(),
		p.domainDeleteCommand(), p.domainPurposeCommand(), p.domainTagsCommand(), p.domainSenderCommand(),
		p.domainAnswerCommand(), p.domainForwardingCommand(), p.domainParkedCommand(), p.domainSetupCommand())
	return cmd
}

func (p *program) domainListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list --team NAME",
		Short: "List the domains of a team, with their reporting addresses",
		Example: `  dmarcd domain list --team acme --json
  dmarcd domain list --team acme --tag shop`,
		Args: cobra.NoArgs,
	}
	teamFlag(cmd)
	asJSON, tag := jsonFlag(cmd), tagFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return p.withTeam(cmd, func(cfg config.Config, t *service.Team) error {
			t, err := narrowed(t, *tag)
			if err != nil {
				return err
			}
			domains, err := allDomains(cmd.Context(), t)
			if err != nil {
				return err
			}
			return p.printDomains(domains, cfg.ReportDomain, *asJSON)
		})
	}
	return cmd
}

func allDomains(ctx context.Context, t *service.Team) ([]dmarcd.Domain, error) {
	var all []dmarcd.Domain
	for after := ""; ; {
		part, err := t.Domains(ctx, after, listPart)
		if err != nil {
			return nil, err
		}
		all = append(all, part...)
		if len(part) < listPart {
			return all, nil
		}
		after = part[len(part)-1].Name
	}
}

func (p *program) printDomains(domains []dmarcd.Domain, reportDomain string, asJSON bool) error {
	shapes := convert(domains, func(d dmarcd.Domain) wire.OperatorDomain { return wire.NewOperatorDomain(d, reportDomain) })
	heading := []string{"DOMAIN", "ACTIVE", "POLICY", "PURPOSE", "CHECKED", "REPORTS TO", "RECORD"}
	return printList(p.out, asJSON, shapes, heading, func(d wire.OperatorDomain) []string {
		return []string{
			d.Domain.Domain, yesNo(d.Active), orDash(&d.DMARCPolicy), orDash(d.DomainUsagePurpose),
			orDash(d.CheckedAt), orDash(d.ReportAddress), orDash(&d.DMARCRecord),
		}
	})
}

func (p *program) domainVerifyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "verify --team NAME DOMAIN",
		Short:   "Check the DNS of a domain now; exit status 2 if the check is inconclusive",
		Example: "  dmarcd domain verify --team acme example.com",
		Args:    cobra.ExactArgs(1),
	}
	teamFlag(cmd)
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return p.withDomain(cmd, args[0], func(cfg config.Config, t *service.Team, name string) error {
			domain, check, err := t.Verify(cmd.Context(), name)
			if err != nil {
				return err
			}
			if err := p.printDomains([]dmarcd.Domain{domain}, cfg.ReportDomain, *asJSON); err != nil {
				return err
			}
			if !check.Conclusive {
				return fmt.Errorf("the check was inconclusive, and nothing was changed: %s", check.Reason)
			}
			return nil
		})
	}
	return cmd
}

func (p *program) domainDeleteCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "delete --team NAME DOMAIN",
		Short:   "Delete a domain with its checks, reports and figures",
		Example: "  dmarcd domain delete --team acme example.com",
		Args:    cobra.ExactArgs(1),
	}
	teamFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return p.withDomain(cmd, args[0], func(_ config.Config, t *service.Team, name string) error {
			return t.DeleteDomain(cmd.Context(), name)
		})
	}
	return cmd
}

func (p *program) domainPurposeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "purpose --team NAME DOMAIN WORD",
		Short: "Declare what a domain is used for: business, personal, education, nonprofit or none",
		Example: `  dmarcd domain purpose --team acme example.com business
  dmarcd domain purpose --team acme example.com none`,
		Args: cobra.ExactArgs(2),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return []string{"business", "personal", "education", "nonprofit", "none"}, cobra.ShellCompDirectiveNoFileComp
		},
	}
	teamFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		purpose, err := dmarcd.ParsePurpose(args[1])
		if err != nil {
			return wrongUsage(err)
		}
		return p.withDomain(cmd, args[0], func(_ config.Config, t *service.Team, name string) error {
			return t.SetPurpose(cmd.Context(), name, purpose)
		})
	}
	return cmd
}

func (p *program) domainTagsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tags --team NAME DOMAIN [TAG...]",
		Short: "Set the tags of a domain, by which lists can be filtered; without tags, remove all",
		Example: `  dmarcd domain tags --team acme example.com shop eu
  dmarcd domain tags --team acme example.com`,
		Args: cobra.MinimumNArgs(1),
	}
	teamFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		tags, err := dmarcd.ParseTags(args[1:])
		if err != nil {
			return wrongUsage(err)
		}
		return p.withDomain(cmd, args[0], func(_ config.Config, t *service.Team, name string) error {
			_, err := t.SetTags(cmd.Context(), name, tags)
			return err
		})
	}
	return cmd
}

// tagFlag adds the flag that narrows a list to the domains with a tag.
func tagFlag(cmd *cobra.Command) *string {
	return cmd.Flags().String("tag", "", "only domains with this tag")
}

// narrowed returns the use cases for the domains with a tag, "" for all.
func narrowed(t *service.Team, tag string) (*service.Team, error) {
	if tag == "" {
		return t, nil
	}
	tag, err := dmarcd.ParseTag(tag)
	if err != nil {
		return nil, wrongUsage(err)
	}
	return t.Tagged(tag), nil
}

// withDomain is withTeam for commands with a domain of the team.
func (p *program) withDomain(cmd *cobra.Command, input string, f func(cfg config.Config, t *service.Team, name string) error) error {
	return p.withTeam(cmd, func(cfg config.Config, t *service.Team) error {
		name, err := knownDomain(cmd.Context(), t, input)
		if err != nil {
			return err
		}
		return f(cfg, t, name)
	})
}

// knownDomain returns the canonical name of a domain of the team.
func knownDomain(ctx context.Context, t *service.Team, input string) (string, error) {
	name, err := dmarcd.ParseName(input)
	if err != nil {
		return "", err
	}
	_, err = t.Domain(ctx, name)
	if errors.Is(err, dmarcd.ErrNotFound) {
		return "", explained(err, "the team has no domain %s; `dmarcd domain list` lists its domains", name)
	}
	return name, err
}

// domainFlag is knownDomain for a flag, where "" means all domains.
func domainFlag(ctx context.Context, t *service.Team, input string) (string, error) {
	if input == "" {
		return "", nil
	}
	return knownDomain(ctx, t, input)
}

const (
	// addPart is the number of domains added per transaction.
	addPart = 500
	// fewNames is the number of names below which existing ones are listed.
	fewNames = 20
)

func (p *program) domainAddCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "add --team NAME DOMAIN...",
		Short: "Add domains; - reads names from standard input, one per line",
		Long: `Adds domains without DNS queries; a running daemon checks them soon after. The
argument - reads names from standard input, one per line. Blank lines and text after #
are ignored. Invalid and existing names are reported on standard error, all others are
added.

Exit status: 0 if all domains were added; 1 if some names were invalid or existing.`,
		Example: `  dmarcd domain add --team acme example.com example.org
  dmarcd domain add --team acme - < domains.txt`,
		Args: cobra.MinimumNArgs(1),
	}
	teamFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		inputs, err := p.readNames(args)
		if err != nil {
			return err
		}
		names, invalid := p.parseNames(inputs)
		return p.withTeam(cmd, func(_ config.Config, t *service.Team) error {
			known, err := p.addDomains(cmd.Context(), t, names)
			if err != nil {
				return err
			}
			if invalid+known > 0 {
				return errReported
			}
			return nil
		})
	}
	return cmd
}

// readNames expands the arguments; "-" reads standard input.
func (p *program) readNames(args []string) ([]string, error) {
	var names []string
	for _, arg := range args {
		if arg != "-" {
			names = append(names, arg)
			continue
		}
		lines := bufio.NewScanner(p.in)
		for lines.Scan() {
			line, _, _ := strings.Cut(lines.Text(), "#")
			if line = strings.TrimSpace(line); line != "" {
				names = append(names, line)
			}
		}
		if err := lines.Err(); err != nil {
			return nil, fmt.Errorf("read names from standard input: %w", err)
		}
	}
	return names, nil
}

// parseNames returns the distinct valid names and the number of invalid ones.
func (p *program) parseNames(inputs []string) (names []string, invalid int) {
	seen := make(map[string]bool, len(inputs))
	for _, input := range inputs {
		name, err := dmarcd.ParseName(input)
		if err != nil {
			p.notify("%s: %v\n", printable(input), err)
			invalid++
			continue
		}
		if !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	return names, invalid
}

// addDomains adds the names in batches and returns how many already existed.
func (p *program) addDomains(ctx context.Context, t *service.Team, names []string) (known int, err error) {
	bar, done := p.progress(len(names), 2*addPart, "adding domains")
	defer done()
	total := 0
	few := len(names) < fewNames
	for part := range slices.Chunk(names, addPart) {
		if few {
			for _, name := range part {
				if _, err := t.Domain(ctx, name); err == nil {
					p.notify("%s: the team already has this domain\n", name)
				}
			}
		}
		added, err := t.AddDomains(ctx, part)
		if err != nil {
			return known, fmt.Errorf("stopped after %d domains added: %w", total, err)
		}
		total += added
		known += len(part) - added
		bar(len(part))
	}
	if !few && known > 0 {
		p.notify("%d domains already existed\n", known)
	}
	_, err = fmt.Fprintf(p.out, "%s added\n", number(total, "domain"))
	return known, err
}
