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
