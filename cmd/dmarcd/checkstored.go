package main

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/client"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// printStoredChecks prints the latest stored check of each domain of a team.
func (p *program) printStoredChecks(cmd *cobra.Command, names []string, invalid int, options checkOptions) error {
	return p.withClient(cmd, func(c *client.Client) error {
		printer, result := p.checkPrinter(len(names), options), checkResult{domains: len(names) + invalid, unseen: invalid}
		array := &jsonArray{out: p.out}
		for _, name := range names {
			stored, err := c.GetLatestCheck(cmd.Context(), name)
			if err != nil {
				return uncheckedDomain(cmd.Context(), c, name, err)
			}
			check := checkOf(stored)
			result.add(check)
			switch {
			case options.json:
				if err = array.next(); err == nil {
					err = printJSON(p.out, stored)
				}
			case options.files != nil:
				err = printText(p.out)(c.GetCheckFile(cmd.Context(), name, options.files.format.ID, options.files.zone))
			default:
				err = printer.print(check)
			}
			if err != nil {
				return err
			}
		}
		if options.json {
			return errors.Join(array.end(), result.err())
		}
		return result.err()
	})
}

// uncheckedDomain explains that there is no check of a domain.
func uncheckedDomain(ctx context.Context, c *client.Client, name string, err error) error {
	if !errors.Is(err, dmarcd.ErrNotFound) {
		return err
	}
	if _, unknown := knownDomain(ctx, c, name); unknown != nil {
		return unknown
	}
	return errors.New(name + " has not been checked yet; try again in a few seconds")
}

// checkOf returns what the command prints of a stored check.
func checkOf(c client.Check) facts.Check {
	f := &facts.Facts{
		Domain: c.Domain,
		DMARC: facts.DMARC{
			Status: c.DMARC.Status, Policy: string(c.DMARC.Policy), Applied: string(c.DMARC.EffectivePolicy), RecordDomain: string(c.DMARC.RecordDomain),
		},
		SPF:    facts.SPF{Status: c.SPF.Status, Record: string(c.SPF.Record), Lookups: c.SPF.Lookups, Tree: convert(c.SPF.Tree, spfTermOf)},
		MX:     facts.MX{Status: "no hosts", Hosts: convert(c.MX, func(h wire.MXHost) facts.MXHost { return facts.MXHost{Name: h.Host} })},
		MTASTS: facts.MTASTS{Status: c.MTASTS.Status, Mode: string(c.MTASTS.Mode)},
		TLSRPT: facts.TLSRPT{Status: c.TLSRPT.Status, Destinations: c.TLSRPT.Destinations},
		BIMI:   facts.BIMI{Status: c.BIMI.Status, Location: string(c.BIMI.Location)},
		DANE:   facts.DANE{Status: c.DANE.Status},
		DNSSEC: facts.DNSSEC{Status: c.DNSSEC.Status, Zone: string(c.DNSSEC.Zone)},
	}
	if len(c.MX) > 0 {
		f.MX.Status = "ok"
	}
	for _, k := range c.DKIM {
		f.DKIM.Keys = append(f.DKIM.Keys, facts.DKIMKey{Selector: k.Selector, Status: k.Status, Algorithm: string(k.Algorithm), Bits: k.Bits})
	}
	check := facts.Check{
		Conclusive: c.DMARC.Status != inconclusive, Reason: string(c.DMARC.Reason), Facts: f, Grade: string(c.Grade), Findings: convert(c.Findings, findingOf),
	}
	if c.NextStep != nil {
		check.Next = new(findingOf(*c.NextStep))
	}
	return check
}

func spfTermOf(t wire.SPFTerm) facts.SPFTerm {
	return facts.SPFTerm{
		Term: t.Term, Provider: string(t.Provider), Cost: t.Cost, Lookups: t.Lookups, Note: string(t.Note), Terms: convert(t.Terms, spfTermOf),
	}
}

// findingOf returns a finding. The API has its record as text, also at the end of the fix.
func findingOf(f wire.Finding) dmarcd.Finding {
	finding := dmarcd.Finding{ID: f.ID, Level: dmarcd.Level(f.Level), What: f.What, Why: f.Why, RFC: f.RFC, Points: f.Points}
	finding.Fix = strings.TrimSpace(strings.TrimSuffix(string(f.Fix), string(f.Record)))
	if name, rest, found := strings.Cut(string(f.Record), ". "); found {
		finding.Record.Name = name
		finding.Record.Type, finding.Record.Data, _ = strings.Cut(rest, " ")
		if finding.Record.Type == "TXT" {
			finding.Record.Data = zoneText.Replace(strings.TrimSuffix(strings.TrimPrefix(finding.Record.Data, `"`), `"`))
		}
	}
	return finding
}

// zoneText returns the text of the strings of a TXT record in zone file syntax.
var zoneText = strings.NewReplacer(`\\`, `\`, `\"`, `"`, `" "`, "")
