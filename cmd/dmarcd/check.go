package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/app"
	"github.com/dmarcd/dmarcd/internal/dnscheck"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/recordfile"
	"github.com/dmarcd/dmarcd/internal/wire"
)

const (
	// checksAtOnce is the number of domains checked in parallel.
	checksAtOnce = 8
	// checkTimeout bounds the check of one domain.
	checkTimeout = 20 * time.Second
	// manyChecks is the number of domains from which each check is one line.
	manyChecks = 11
	// progressFrom is the number of domains from which a progress bar is shown.
	progressFrom = 4
)

// checkOptions are the flags of the command.
type checkOptions struct {
	json, verbose bool
	selectors     []string
	// files prints the records as files instead of text; nil for text.
	files *checkFiles
}

func (p *program) checkCommand() *cobra.Command {
	var options checkOptions
	cmd := &cobra.Command{
		Use:   "check DOMAIN...",
		Short: "Check the email security of domains: DMARC, SPF, DKIM and more",
		Long: `Checks DMARC, SPF, DKIM, MX, MTA-STS, TLS-RPT, BIMI, DANE and DNSSEC, and reports
what is wrong, why it matters and how to fix it. It needs no database and no server.
The argument - reads names from standard input, one per line. Blank lines and text
after # are ignored.

With --team or --server it queries no DNS: it prints the latest checks of domains of the
team. They list the DKIM keys that reports mention, and --json adds the changes that the
check found.

Exit status: 0 if there are no errors; 1 if there are errors; 2 if a domain could not
be checked or is not a domain name.`,
		Example: `  dmarcd check example.com
  dmarcd check --verbose --selector s1 --selector s2 example.com
  dmarcd check --format bind example.com
  dmarcd check --json - < domains.txt
  dmarcd check --team acme example.com
  dmarcd check --server https://dmarc.example.com/api example.com`,
		Args: cobra.MinimumNArgs(1),
	}
	flags := cmd.Flags()
	flags.BoolVar(&options.json, "json", false, "print JSON")
	flags.BoolVarP(&options.verbose, "verbose", "v", false, "show all findings and all SPF lookups")
	var records recordFlags
	records.addTo(cmd, "json", "verbose")
	flags.StringSliceVar(&options.selectors, "selector", nil, "DKIM selector that the domains use; can be repeated")
	apiFlags(cmd)
	for _, stored := range []string{"team", "server"} {
		onlyOne(cmd, "selector", stored)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		asked, err := records.parse()
		if err != nil {
			return err
		}
		if asked {
			format, _ := recordfile.Parse(records.format) // it is valid
			options.files = &checkFiles{out: p.out, format: format, zone: records.zone}
		}
		inputs, err := p.readNames(args)
		if err != nil {
			return err
		}
		if len(inputs) == 0 {
			return errors.New("standard input contains no domain names")
		}
		names, invalid := p.parseNames(inputs)
		if cmd.Flags().Changed("team") || cmd.Flags().Changed("server") {
			return p.printStoredChecks(cmd, names, invalid, options)
		}
		effective, err := p.configuration(cmd)
		if err != nil {
			return err
		}
		resolver := app.NewResolver(effective.Config, nil, nil)
		defer resolver.Close()
		if err := resolver.Err(); err != nil {
			return err
		}
		checker := dnscheck.New(dnscheck.Options{Resolver: resolver, ReportDomain: effective.Config.ReportDomain, Now: time.Now})
		return p.checkDomains(cmd.Context(), checker, names, invalid, options)
	}
	return cmd
}

// checkDomains checks the names in parallel and prints the results in their order.
func (p *program) checkDomains(ctx context.Context, checker *dnscheck.Checker, names []string, invalid int, options checkOptions) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	printer := p.checkPrinter(len(names), options)
	advance, done := func(int) {}, func() {}
	if !isTerminal(p.out) { // results on a terminal are progress enough
		advance, done = p.progress(len(names), progressFrom, "checking domains")
	}
	result := checkResult{domains: len(names) + invalid, unseen: invalid}
	var failure error
	for check := range examineAll(ctx, checker, names, options.selectors) {
		if failure == nil {
			if failure = printer.print(check); failure != nil {
				stop()
			}
		}
		advance(1)
		result.add(check)
	}
	done()
	if err := errors.Join(failure, printer.end()); err != nil {
		return err
	}
	return result.err()
}

// checkResult counts what decides the exit status.
type checkResult struct {
	domains, unseen int
	bad             bool
}

func (r *checkResult) add(check facts.Check) {
	if !check.Conclusive {
		r.unseen++
	}
	r.bad = r.bad || slices.ContainsFunc(check.Findings, func(f dmarcd.Finding) bool { return f.Level == dmarcd.LevelError })
}

func (r *checkResult) err() error {
	switch {
	case r.unseen > 0:
		return fmt.Errorf("%d of %d domains could not be checked", r.unseen, r.domains)
	case r.bad:
		return errReported
	}
	return nil
}

// examineAll examines the names, at most checksAtOnce at a time, and sends the checks in
// the order of the names. The caller must drain the channel.
func examineAll(ctx context.Context, checker *dnscheck.Checker, names, selectors []string) <-chan facts.Check {
	declared := convert(selectors, func(s string) dnscheck.Selector {
		return dnscheck.Selector{Name: s, From: dnscheck.FromOwner}
	})
	// A promise enters the queue before its check starts, so the length of the queue
	// limits the checks under way.
	promises := make(chan chan facts.Check, checksAtOnce-1)
	go func() {
		defer close(promises)
		for _, name := range names {
			promise := make(chan facts.Check, 1)
			promises <- promise
			go func() {
				ctx, cancel := context.WithTimeout(ctx, checkTimeout)
				defer cancel()
				promise <- checker.Examine(ctx, dnscheck.Request{Domain: name, Selectors: declared})
			}()
		}
	}()
	checks := make(chan facts.Check)
	go func() {
		defer close(checks)
		for promise := range promises {
			checks <- <-promise
		}
	}()
	return checks
}

// checkPrinter prints checks one at a time.
type checkPrinter interface {
	print(check facts.Check) error
	end() error
}

func (p *program) checkPrinter(count int, options checkOptions) checkPrinter {
	if options.files != nil {
		return options.files
	}
	if options.json {
		return &jsonChecks{jsonArray{out: p.out}}
	}
	page := &checkPage{out: p.out, colours: p.colours(p.out), verbose: options.verbose}
	if count >= manyChecks && !options.verbose {
		return &checkLines{page}
	}
	return page
}

// jsonChecks streams an array, so that a hundred thousand checks need not fit into memory.
type jsonChecks struct{ jsonArray }

func (j *jsonChecks) print(check facts.Check) error {
	if err := j.next(); err != nil {
		return err
	}
	return printJSON(j.out, wire.NewCheck(check))
}

// conclusion returns the one-line summary of a check.
func conclusion(check facts.Check) string {
	f := check.Facts
	if !check.Conclusive {
		return "The check was inconclusive: " + check.Reason + "."
	}
	for _, finding := range check.Findings {
		if finding.ID == "parked.locked" {
			return finding.What
		}
	}
	words := map[string]string{
		"":           "Anyone can send mail as " + f.Domain + ".",
		"none":       "Mail that spoofs " + f.Domain + " is delivered.",
		"quarantine": "Mail that spoofs " + f.Domain + " goes to the spam folder.",
		"reject":     "Mail that spoofs " + f.Domain + " is rejected.",
	}[f.DMARC.Applied]
	errors, warnings := 0, 0
	for _, finding := range check.Findings {
		switch finding.Level {
		case dmarcd.LevelError:
			errors++
		case dmarcd.LevelWarning:
			warnings++
		}
	}
	var counts []string
	for _, c := range []struct {
		n    int
		what string
	}{{errors, "error"}, {warnings, "warning"}} {
		if c.n > 0 {
			counts = append(counts, number(c.n, c.what))
		}
	}
	if len(counts) == 0 {
		return words
	}
	return words + " " + strings.Join(counts, ", ") + "."
}

// partRows returns the parts with their status and most important detail.
func partRows(f facts.Facts) [][3]string {
	return [][3]string{
		{"DMARC", f.DMARC.Status, policyWords(f.DMARC)},
		{"SPF", f.SPF.Status, lookupWords(f.SPF)},
		{"DKIM", dkimState(f.DKIM), dkimKeyWords(f.DKIM)},
		{"MX", f.MX.Status, hostWords(f.MX)},
		{"MTA-STS", f.MTASTS.Status, f.MTASTS.Mode},
		{"TLS-RPT", f.TLSRPT.Status, strings.Join(f.TLSRPT.Destinations, " ")},
		{"BIMI", f.BIMI.Status, f.BIMI.Location},
		{"DANE", f.DANE.Status, ""},
		{"DNSSEC", f.DNSSEC.Status, f.DNSSEC.Zone},
	}
}

// inconclusive is the status of a part whose lookups failed.
const inconclusive = "inconclusive"

func policyWords(f facts.DMARC) string {
	switch {
	case f.Policy == "" && f.Status == inconclusive:
		return "the lookup failed; the policy is unknown"
	case f.Policy == "":
		return "no policy applies"
	case f.Policy != f.Applied:
		return fmt.Sprintf("%s, applied as %s (from %s)", f.Policy, f.Applied, f.RecordDomain)
	}
	return fmt.Sprintf("%s (from %s)", f.Policy, f.RecordDomain)
}

func lookupWords(f facts.SPF) string {
	if f.Record == "" {
		if f.Status == inconclusive {
			return "the lookup failed"
		}
		return ""
	}
	return fmt.Sprintf("%d of 10 lookups", f.Lookups)
}

// dkimState returns the state of the keys. "not found" does not mean that there are none.
func dkimState(f facts.DKIM) string {
	state := "not found"
	switch {
	case f.Namespace == "missing":
		state = "none"
	case f.Probed > 0 && f.Unanswered == f.Probed:
		state = inconclusive
	}
	for _, key := range f.Keys {
		if key.Status == "found" {
			return "ok"
		}
		state = key.Status
	}
	return state
}

func dkimKeyWords(f facts.DKIM) string {
	var words []string
	for _, key := range f.Keys {
		word := key.Selector
		if key.Bits > 0 {
			word += fmt.Sprintf(" (%s %d)", key.Algorithm, key.Bits)
		}
		if key.Status != "found" {
			word += " " + key.Status
		}
		words = append(words, word)
	}
	switch {
	case len(words) > 0 || f.Namespace == "missing":
	case f.Probed > 0 && f.Unanswered == f.Probed:
		return fmt.Sprintf("the lookups of all %d common selectors failed", f.Probed)
	case f.Probed == 0: // of a stored check
		return "there may be others"
	case f.Unanswered > 0:
		return fmt.Sprintf("%d common selectors checked, of which %s failed; there may be others", f.Probed, number(f.Unanswered, "lookup"))
	default:
		return fmt.Sprintf("%d common selectors checked; there may be others", f.Probed)
	}
	return strings.Join(words, ", ")
}

func hostWords(f facts.MX) string {
	var names []string
	for _, host := range f.Hosts {
		name := cmp.Or(host.Name, ".") // a null MX next to others
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}
