package main

import (
	"bufio"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/config"
	"github.com/dmarcd/dmarcd/internal/service"
)

const (
	// addPart is how many domains are added in one transaction.
	addPart = 500
	// fewNames is below how many it is said which of them are known already.
	fewNames = 20
)

func (p *program) domainAddCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "add --team NAME DOMAIN...",
		Short: "Add domains; - reads names from standard input, one a line",
		Long: `Adds domains without asking the DNS; a running daemon looks at them next.
The argument - reads names from standard input, one a line; blank lines and
what follows a # are passed over. Names that are refused (no domain name, or
known already) are told on standard error, the others are added; the exit
status is then 1.`,
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
		names, refused := p.parseNames(inputs)
		return p.withTeam(cmd, func(_ config.Config, t *service.Team) error {
			known, err := p.addDomains(cmd.Context(), t, names)
			if err != nil {
				return err
			}
			if refused+known > 0 {
				return errRefused
			}
			return nil
		})
	}
	return cmd
}

// readNames returns the names that the arguments stand for.
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

// parseNames returns the names, each once, and how many it had to refuse.
func (p *program) parseNames(inputs []string) (names []string, refused int) {
	seen := make(map[string]bool, len(inputs))
	for _, input := range inputs {
		name, err := dmarcd.ParseName(input)
		if err != nil {
			p.say("%s: %v\n", printable(input), err)
			refused++
			continue
		}
		if !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	return names, refused
}

// addDomains adds the names in parts and returns how many the team had already.
func (p *program) addDomains(ctx context.Context, t *service.Team, names []string) (known int, err error) {
	bar, done := p.progress(len(names), 2*addPart, "adding domains")
	defer done()
	total := 0
	few := len(names) < fewNames
	for part := range slices.Chunk(names, addPart) {
		if few {
			for _, name := range part {
				if _, err := t.Domain(ctx, name); err == nil {
					p.say("%s: the team has this domain already\n", name)
				}
			}
		}
		added, err := t.AddDomains(ctx, part)
		if err != nil {
			return known, fmt.Errorf("%d domains added, then no more: %w", total, err)
		}
		total += added
		known += len(part) - added
		bar(len(part))
	}
	if !few && known > 0 {
		p.say("%d domains were there already\n", known)
	}
	_, err = fmt.Fprintf(p.out, "%s added\n", number(total, "domain"))
	return known, err
}
