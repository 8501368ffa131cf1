// Command bench measures the daemon as its users do: the real binary, HTTP over loopback, both
// engines, real DNS messages. Ratios are measured side by side, alternating in one run, because
// the machines are noisy. It prints the tables of docs/performance.md.
//
// `make bench` starts PostgreSQL and runs all suites; `go run ./bench -run list` runs one.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
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

// suite is a group of measurements.
type suite struct {
	name    string
	measure func(ctx context.Context, s settings, e engine) []figure
}

// withDaemon returns a measurement that starts a daemon and stops it.
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
	only := flag.String("run", "", "measure only the suite of that name: reports, list, create, verify, check, schedule, scheduled, parse, import, mail, counters, fairness, pages, advice, demo, zone, day or growth")
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

// failure is a panic value that ends the program after deferred calls.
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
		{"zone", measureZone},
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

// linkNetworks links the databases of networks, as made by `make build`, next to the daemon.
func linkNetworks(folder string) {
	for _, file := range get(filepath.Glob("bin/*.mmdb")) {
		must(os.Symlink(get(filepath.Abs(file)), filepath.Join(folder, filepath.Base(file))))
	}
}

// request returns the bytes of a request. The load generator shares the machine with the
// daemon, so it prepares them and does little else.
func request(method, path, token, body string) []byte {
	text := method + " " + path + " HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer " + token + "\r\n"
	if body != "" {
		text += fmt.Sprintf("Content-Type: application/json\r\nContent-Length: %d\r\n", len(body))
	}
	return []byte(text + "\r\n" + body)
}

// load sends requests over several connections for a duration, and returns how many per second
// were answered with the status. next returns the n-th request.
func load(ctx context.Context, address string, clients int, d time.Duration, status int, next func(n int) []byte) float64 {
	conns, readers := make([]net.Conn, clients), make([]*bufio.Reader, clients)
	for i := range conns {
		conns[i] = get((&net.Dialer{}).DialContext(ctx, "tcp", address))
		defer func() { _ = conns[i].Close() }() // nothing is written any more
		readers[i] = bufio.NewReader(conns[i])
	}
	return repeat(ctx, clients, d, func(client, n int) error { return exchange(conns[client], readers[client], next(n), status) })
}

// repeat has several clients call f for a duration, each with its own numbers, and returns the
// calls per second.
func repeat(ctx context.Context, clients int, d time.Duration, f func(client, n int) error) float64 {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	var done atomic.Int64
	var group sync.WaitGroup
	errs := make([]error, clients)
	began := time.Now()
	for client := range clients {
		group.Go(func() {
			for n := client; ctx.Err() == nil; n += clients {
				if errs[client] = f(client, n); errs[client] != nil {
					return
				}
				done.Add(1)
			}
		})
	}
	group.Wait()
	must(errors.Join(errs...))
	return float64(done.Load()) / time.Since(began).Seconds()
}

func exchange(conn net.Conn, reader *bufio.Reader, request []byte, status int) error {
	if _, err := conn.Write(request); err != nil {
		return err
	}
	response, err := http.ReadResponse(reader, nil)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }() // read to its end
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != status {
		err = fmt.Errorf("got status %d, want %d: %s", response.StatusCode, status, body)
	}
	return err
}

// side is one side of a comparison: it runs once and returns a rate.
type side func() float64

// compare runs both sides alternately, and returns the median rate of each and the median of
// the ratios of neighbouring runs.
func compare(rounds int, ours, theirs side) (ourRate, theirRate, ratio float64) {
	var all [3][]float64
	for range rounds {
		a, b := ours(), theirs()
		for i, v := range []float64{a, b, a / b} {
			all[i] = append(all[i], v)
		}
	}
	return median(all[0]), median(all[1]), median(all[2])
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
