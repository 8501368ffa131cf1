// Command mutate reports changes of the code that no test notices. It puts every
// mutant of a package (a flipped comparison, a negated condition, && for ||, + for -)
// behind a switch, builds the tests of the package once with that source, and runs,
// mutant by mutant, the tests that reach it. An argument "a+b" also runs the tests of b,
// which uses a.
//
// A mutant is killed when a test fails, crashes or takes too long. The mutants that
// mean the same as the code are listed with the reason in docs/testing.md; mutate
// leaves them out and reports entries that match no mutant. Whether a test that
// notices a change checks the right thing is left to its reader.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

// options are the flags of the command.
type options struct {
	sample    int
	seed      uint64
	least     float64
	known     string
	testFlags []string
	verbose   bool
}

func run(ctx context.Context, args []string, out io.Writer) error {
	var o options
	flags := flag.NewFlagSet("mutate", flag.ContinueOnError)
	flags.IntVar(&o.sample, "sample", 0, "how many mutants to try in each package, 0 for all")
	flags.Uint64Var(&o.seed, "seed", 1, "chooses the sample")
	flags.Float64Var(&o.least, "least", 95, "the percentage that tests must kill in each package")
	flags.StringVar(&o.known, "known", "docs/testing.md", "lists the mutants that mean the same as the code")
	flags.BoolVar(&o.verbose, "v", false, "print every mutant")
	short := flags.Bool("short", false, "run the tests with -short")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *short {
		o.testFlags = []string{"-test.short"}
	}
	known, err := readKnown(o.known)
	if err != nil {
		return err
	}
	weak := 0
	for _, folder := range flags.Args() {
		enough, err := tryPackage(ctx, folder, o, known, out)
		if err != nil {
			return fmt.Errorf("%s: %w", folder, err)
		}
		if !enough {
			weak++
		}
	}
	if weak > 0 {
		return fmt.Errorf("%d of %d packages under %g %%", weak, flags.NArg(), o.least)
	}
	return nil
}

// tryPackage reports whether the tests of a package, and of the packages after a "+", kill
// enough of its mutants.
func tryPackage(ctx context.Context, argument string, o options, known []entry, out io.Writer) (enough bool, err error) {
	began := time.Now()
	folders := strings.Split(argument, "+")
	folder := folders[0]
	p, err := load(ctx, folder)
	if err != nil {
		return false, err
	}
	stale := unmatched(known, folder, p.mutants)
	for _, e := range stale {
		_, _ = fmt.Fprintf(out, "%s: no such mutant\n", e)
	}
	equivalent := len(p.mutants)
	p.mutants = slices.DeleteFunc(p.mutants, func(m mutant) bool { return listed(known, m) })
	equivalent -= len(p.mutants)

	suite, err := buildTests(ctx, p, folders[1:], o.testFlags)
	if err != nil {
		return false, err
	}
	defer suite.remove()
	if err := suite.measure(ctx); err != nil {
		return false, err
	}
	chosen := p.mutants
	if o.sample > 0 && o.sample < len(chosen) {
		chosen = slices.Clone(chosen)
		random := rand.New(rand.NewPCG(o.seed, 0))
		random.Shuffle(len(chosen), func(i, j int) { chosen[i], chosen[j] = chosen[j], chosen[i] })
		chosen = chosen[:o.sample]
		slices.SortFunc(chosen, func(a, b mutant) int { return a.id - b.id })
	}
	killed := 0
	for _, m := range chosen {
		how, err := suite.try(ctx, m)
		if err != nil {
			return false, err
		}
		if how.killed() {
			killed++
		}
		if o.verbose || !how.killed() {
			_, _ = fmt.Fprintf(out, "%s:%d: %s: %s\n", m.file, m.line, how, m)
		}
	}
	score := 100.0
	if len(chosen) > 0 {
		score = 100 * float64(killed) / float64(len(chosen))
	}
	_, _ = fmt.Fprintf(out, "%s: killed %d of %d (%.1f %%) in %v; %d mutants in all, %d equivalent\n",
		folder, killed, len(chosen), score, time.Since(began).Round(time.Second), len(p.mutants)+equivalent, equivalent)
	return score >= o.least && len(stale) == 0, nil
}
