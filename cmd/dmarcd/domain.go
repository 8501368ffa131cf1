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
	"github.com/dmarcd/dmarcd/client"
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
	apiFlags(cmd)
	asJSON, tag := jsonFlag(cmd), tagFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		tag, err := parseTag(*tag)
		if err != nil {
			return err
		}
		return p.withClient(cmd, func(c *client.Client) error {
			domains, err := client.Collect(c.ListDomains(cmd.Context(), tag))
			if err != nil {
				return err
			}
			shown := make(map[string]client.DomainPosture, len(domains))
			for posture, err := range c.ListDomainPostures(cmd.Context(), client.PostureFilter{Tag: tag, PageSize: listPart}) {
				if err != nil {
					return err
				}
				shown[posture.Domain] = posture
			}
			return p.printDomains(convert(domains, func(d client.Domain) operatorDomain {
				return operatorDomain{d, shown[d.Domain].ReportAddress, shown[d.Domain].CheckedAt}
			}), *asJSON)
		})
	}
	return cmd
}

// operatorDomain is what an operator sees of a domain: the record, and where its reports go.
type operatorDomain struct {
	client.Domain

	ReportAddress *string `json:"report_address"` // null without a report domain
	CheckedAt     *string `json:"checked_at"`
}

func (p *program) printDomains(domains []operatorDomain, asJSON bool) error {
	heading := []string{"DOMAIN", "ACTIVE", "POLICY", "PURPOSE", "CHECKED", "REPORTS TO", "RECORD"}
	return printList(p.out, asJSON, domains, heading, func(d operatorDomain) []string {
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
	apiFlags(cmd)
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return p.withDomain(cmd, args[0], func(c *client.Client, name string) error {
			verified, err := c.VerifyDomain(cmd.Context(), name)
			if err != nil {
				return err
			}
			setup, err := c.GetSetup(cmd.Context(), name)
			if err != nil {
				return err
			}
			if err := p.printDomains([]operatorDomain{{verified.Domain, setup.ReportAddress, setup.CheckedAt}}, *asJSON); err != nil {
				return err
			}
			if !verified.Conclusive {
				return fmt.Errorf("the check was inconclusive, and nothing was changed: %s", verified.Reason)
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
	apiFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return p.withDomain(cmd, args[0], func(c *client.Client, name string) error {
			return c.DeleteDomain(cmd.Context(), name)
		})
	}
	return cmd
}

func (p *program) domainPurposeCommand() *cobra.Command {
	purposes := []string{"business", "personal", "education", "nonprofit", "none"}
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
			return purposes, cobra.ShellCompDirectiveNoFileComp
		},
	}
	apiFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		purpose, err := dmarcd.ParsePurpose(args[1])
		if err != nil {
			return fmt.Errorf("the purpose must be business, personal, education, nonprofit or none%s", didYouMean(args[1], purposes))
		}
		return p.withDomain(cmd, args[0], func(c *client.Client, name string) error {
			_, err := c.SetPurpose(cmd.Context(), name, string(purpose))
			return err
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
	apiFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		tags, err := dmarcd.ParseTags(args[1:])
		if err != nil {
			return wrongUsage(err)
		}
		return p.withDomain(cmd, args[0], func(c *client.Client, name string) error {
			_, err := c.SetTags(cmd.Context(), name, tags)
			return err
		})
	}
	return cmd
}

// tagFlag adds the flag that narrows a list to the domains with a tag.
func tagFlag(cmd *cobra.Command) *string {
	return cmd.Flags().String("tag", "", "only domains with this tag")
}

// parseTag returns the canonical form of a tag of --tag, "" for none.
func parseTag(tag string) (string, error) {
	if tag == "" {
		return "", nil
	}
	tag, err := dmarcd.ParseTag(tag)
	if err != nil {
		err = wrongUsage(err)
	}
	return tag, err
}

// knownDomain returns the canonical name of a domain of the team.
func knownDomain(ctx context.Context, c *client.Client, input string) (string, error) {
	name, err := dmarcd.ParseName(input)
	if err != nil {
		return "", err
	}
	_, err = c.GetDomain(ctx, name)
	return name, unknownDomain(err, name)
}

// unknownDomain explains the error of a domain that the team does not have.
func unknownDomain(err error, name string) error {
	if errors.Is(err, dmarcd.ErrNotFound) {
		return explained(err, "the team has no domain %s; `dmarcd domain list` lists its domains", name)
	}
	return err
}

// domainFlag is knownDomain for a flag, where "" means all domains.
func domainFlag(ctx context.Context, c *client.Client, input string) (string, error) {
	if input == "" {
		return "", nil
	}
	return knownDomain(ctx, c, input)
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
	apiFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		inputs, err := p.readNames(args)
		if err != nil {
			return err
		}
		names, invalid := p.parseNames(inputs)
		return p.withClient(cmd, func(c *client.Client) error {
			known, err := p.addDomains(cmd.Context(), c, names)
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
func (p *program) addDomains(ctx context.Context, c *client.Client, names []string) (known int, err error) {
	bar, done := p.progress(len(names), 2*addPart, "adding domains")
	defer done()
	total := 0
	few := len(names) < fewNames
	for part := range slices.Chunk(names, addPart) {
		results, err := c.ChangeDomains(ctx, part, nil)
		if err != nil {
			return known, fmt.Errorf("stopped after %d domains added: %w", total, err)
		}
		for _, r := range results {
			if r.Result == "added" {
				total++
				continue
			}
			known++
			if few {
				p.notify("%s: the team already has this domain\n", r.Domain)
			}
		}
		bar(len(part))
	}
	if !few && known > 0 {
		p.notify("%d domains already existed\n", known)
	}
	_, err = fmt.Fprintf(p.out, "%s added\n", number(total, "domain"))
	return known, err
}
