// Command bench measures the daemon as its users meet it: the real binary, HTTP
// over loopback, both engines, DNS messages on the wire. Each figure that is
// told as a ratio was measured side by side in one run, turn by turn, because
// the machines it runs on are noisy. It prints the tables of
// docs/performance.md.
//
//	make bench            # PostgreSQL is started for it
//	go run ./bench -run list
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// settings are the flags.
type settings struct {
	binary   string
	rounds   int
	duration time.Duration
	clients  int
	domains  int
	records  int
	day      time.Duration
	speed    float64
	entrance string
}

// suite is a group of figures.
type suite struct {
	name    string
	measure func(ctx context.Context, s settings, e engine) []figure
}

// withDaemon returns a measurement of a daemon that runs for it.
func withDaemon(measure func(ctx context.Context, s settings, d *daemon) []figure) func(context.Context, settings, engine) []figure {
	return func(ctx context.Context, s settings, e engine) []figure {
		d := startDaemon(ctx, s, e)
		defer d.close()
		return measure(ctx, s, d)
	}
}

// figure is one line of the result.
type figure struct {
	what, value, goal string
}

func main() {
	var s settings
	only := flag.String("run", "", "measure only the suite of that name: reports, list, create, verify, check, schedule, scheduled, parse, import, mail, counters, fairness, pages, advice, demo, day or growth")
	engineName := flag.String("engine", "", "measure only on SQLite or PostgreSQL")
	flag.IntVar(&s.rounds, "rounds", 5, "turns of each side of a comparison")
	flag.DurationVar(&s.duration, "duration", 2*time.Second, "length of a turn")
	flag.IntVar(&s.clients, "clients", 8, "connections that ask at once")
	flag.IntVar(&s.domains, "domains", 100_000, "domains of the large team")
	flag.IntVar(&s.records, "records", 10_000_000, "records of the large database")
	flag.DurationVar(&s.day, "day", 24*time.Hour, "part of the day that the suite day simulates")
	flag.Float64Var(&s.speed, "speed", 12, "how many times as fast as a real day the suite day is")
	flag.StringVar(&s.entrance, "entrance", "", "attack only that entrance in the suite fairness, such as exports")
	attacking := flag.Bool("attack", false, "attack a daemon as the standard input says; used by the suite fairness")
	flag.Parse()
	defer func() {
		if failed := recover(); failed != nil {
			err, ok := failed.(failure)
			if !ok {
				panic(failed)
			}
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
	}()
	switch {
	case *attacking:
		must(runAttack(context.Background(), os.Stdin, os.Stdout))
	case flag.Arg(0) == parseXML:
		parseWithXML(os.Stdout, flag.Args()[1:])
	default:
		run(context.Background(), s, *only, *engineName)
	}
}

// failure is an error that ends the program. What is deferred is still done.
type failure struct{ error }

// must ends the program with an error.
func must(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// get returns a value, or ends the program with an error.
func get[T any](value T, err error) T {
	must(err)
	return value
}

func run(ctx context.Context, s settings, only, engineName string) {
	folder := get(os.MkdirTemp("", "dmarcd-bench-"))
	defer func() { _ = os.RemoveAll(folder) }() // scratch
	s.binary = filepath.Join(folder, "dmarcd")
	build := exec.CommandContext(ctx, "go", "build", "-o", s.binary, "./cmd/dmarcd") //nolint:gosec // our own program
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		must(fmt.Errorf("build the daemon (run it from the root of the repository): %w", err))
	}
	linkNetworks(folder)
	for _, suite := range []suite{
		{"reports", measureReports},
		{"list", withDaemon(measureList)},
		{"create", withDaemon(measureCreate)},
		{"verify", withDaemon(measureVerify)},
		{"check", measureChecks},
		{"schedule", measureSchedule},
		{"scheduled", measureScheduled},
		{"parse", measureParse},
		{"import", measureImport},
		{"mail", withDaemon(measureMail)},
		{"counters", measureCounters},
		{"fairness", withDaemon(measureFairness)},
		{"pages", withDaemon(measurePages)},
		{"advice", withDaemon(measureAdvice)},
		{"demo", measureDemo},
		{"day", measureDay},
		{"growth", withDaemon(measureGrowth)},
	} {
		long := suite.name == "day" || suite.name == "growth" // only by their names
		if only != suite.name && (only != "" || long) {
			continue
		}
		fmt.Printf("\n## %s\n\n| engine | what | measured | goal |\n|---|---|---|---|\n", suite.name)
		for _, engine := range []engine{sqliteEngine{folder}, postgresEngine{}} {
			if engineName != "" && engineName != engine.name() {
				continue
			}
			for _, f := range suite.measure(ctx, s, engine) {
				fmt.Println("|", strings.Join([]string{engine.name(), f.what, f.value, f.goal}, " | "), "|")
			}
		}
	}
}

// linkNetworks puts the databases of networks beside the daemon, where `make build`
// has made them.
func linkNetworks(folder string) {
	for _, file := range get(filepath.Glob("bin/*.mmdb")) {
		must(os.Symlink(get(filepath.Abs(file)), filepath.Join(folder, filepath.Base(file))))
	}
}
