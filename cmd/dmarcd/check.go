package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/app"
	"github.com/dmarcd/dmarcd/internal/dnscheck"
	"github.com/dmarcd/dmarcd/internal/wire"
)

const (
	// checksAtOnce is how many domains are looked at at the same time.
	checksAtOnce = 8
	// checkTimeout is how long one domain may take.
	checkTimeout = 20 * time.Second
	// manyChecks is from how many domains on each is told in one line.
	manyChecks = 11
	// progressFrom is from how many domains on a person wonders.
	progressFrom = 4
)

// checkOptions are the flags of the command.
type checkOptions struct {
	json, verbose bool
	selectors     []string
}

func (p *program) checkCommand() *cobra.Command {
	var options checkOptions
	cmd := &cobra.Command{
		Use:   "check DOMAIN...",
		Short: "Look at everything that decides whether mail as a domain is trusted",
		Long: `Looks at DMARC, SPF, DKIM, MX, MTA-STS, TLS-RPT, BIMI, DANE and DNSSEC of domains
and says what is wrong, why it matters and how to mend it. It needs neither a
database nor a server. The argument - reads names from standard input, one a
line; blank lines and what follows a # are passed over.

0: nothing of level error; 1: something is; 2: a domain could not be looked at,
or is no domain name.`,
		Example: `  dmarcd check example.com
  dmarcd check --verbose --selector s1 --selector s2 example.com
  dmarcd check --json - < domains.txt`,
		Args: cobra.MinimumNArgs(1),
	}
	flags := cmd.Flags()
	flags.BoolVar(&options.json, "json", false, "print JSON for machines")
	flags.BoolVarP(&options.verbose, "verbose", "v", false, "show every finding and the whole tree of SPF look-ups")
	flags.StringSliceVar(&options.selectors, "selector", nil, "a DKIM selector that the domains use; may be repeated")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		effective, err := p.configuration(cmd)
		if err != nil {
			return err
		}
		inputs, err := p.readNames(args)
		if err != nil {
			return err
		}
		if len(inputs) == 0 {
			return errors.New("there is no name to check on standard input")
		}
		names, refused := p.parseNames(inputs)
		resolver := app.NewResolver(effective.Config, nil, nil)
		defer resolver.Close()
		if err := resolver.Err(); err != nil {
			return err
		}
		checker := dnscheck.New(dnscheck.Options{Resolver: resolver, ReportDomain: effective.Config.ReportDomain, Now: time.Now})
		return p.checkDomains(cmd.Context(), checker, names, refused, options)
	}
	return cmd
}

// checkDomains checks the names, several at a time, and tells the results in their
// order.
func (p *program) checkDomains(ctx context.Context, checker *dnscheck.Checker, names []string, refused int, options checkOptions) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	teller := p.checkTeller(len(names), options)
	advance, done := func(int) {}, func() {}
	if !isTerminal(p.out) { // where the results scroll by, they are progress enough
		advance, done = p.progress(len(names), progressFrom, "checking domains")
	}
	unseen, bad := refused, false
	var failure error
	for check := range examineAll(ctx, checker, names, options.selectors) {
		if failure == nil {
			if failure = teller.tell(check); failure != nil {
				stop()
			}
		}
		advance(1)
		if !check.Conclusive {
			unseen++
		}
		bad = bad || slices.ContainsFunc(check.Findings, func(f dmarcd.Finding) bool { return f.Level == dmarcd.LevelError })
	}
	done()
	if err := errors.Join(failure, teller.end()); err != nil {
		return err
	}
	switch {
	case unseen > 0:
		return fmt.Errorf("%d of %d domains could not be looked at", unseen, len(names)+refused)
	case bad:
		return errRefused
	}
	return nil
}

// examineAll examines the names, at most checksAtOnce at a time, and sends the
// checks in the order of the names. The channel must be read to its end.
func examineAll(ctx context.Context, checker *dnscheck.Checker, names, selectors []string) <-chan dmarcd.Check {
	declared := convert(selectors, func(s string) dnscheck.Selector {
		return dnscheck.Selector{Name: s, From: dnscheck.FromOwner}
	})
	// A promise takes its place in the queue before its check begins, so that
	// no more than the length of the queue are under way.
	promises := make(chan chan dmarcd.Check, checksAtOnce-1)
	go func() {
		defer close(promises)
		for _, name := range names {
			promise := make(chan dmarcd.Check, 1)
			promises <- promise
			go func() {
				ctx, cancel := context.WithTimeout(ctx, checkTimeout)
				defer cancel()
				promise <- checker.Examine(ctx, dnscheck.Request{Domain: name, Selectors: declared})
			}()
		}
	}()
	checks := make(chan dmarcd.Check)
	go func() {
		defer close(checks)
		for promise := range promises {
			checks <- <-promise
		}
	}()
	return checks
}

// checkTeller tells checks one after the other.
type checkTeller interface {
	tell(check dmarcd.Check) error
	end() error
}

func (p *program) checkTeller(count int, options checkOptions) checkTeller {
	if options.json {
		return &jsonChecks{out: p.out}
	}
	page := &checkPage{out: p.out, colours: p.colours(), verbose: options.verbose}
	if count >= manyChecks && !options.verbose {
		return &checkLines{page}
	}
	return page
}

// jsonChecks prints an array, element by element: a hundred thousand checks are
// not held in memory.
type jsonChecks struct {
	out  io.Writer
	some bool
}

func (j *jsonChecks) tell(check dmarcd.Check) error {
	separator := "[\n"
	if j.some {
		separator = ",\n"
	}
	j.some = true
	if _, err := io.WriteString(j.out, separator); err != nil {
		return err
	}
	return printJSON(j.out, wire.NewCheck(check))
}

func (j *jsonChecks) end() error {
	closing := "]\n"
	if !j.some {
		closing = "[]\n"
	}
	_, err := io.WriteString(j.out, closing)
	return err
}
