package main

import (
	"context"
	"errors"
	"fmt"

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
		p.domainAnswerCommand(), p.domainForwardingCommand(), p.domainParkedCommand())
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
		Short:   "Delete a domain with its checks, reports and counters",
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
