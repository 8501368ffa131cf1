package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// switchSource holds the switch of the mutants, and the operators that ask it.
//
//go:embed switch.go.txt
var switchSource string

const (
	// maxMemory bounds the address space of a mutant in KiB: one that loops may
	// allocate without end.
	maxMemory = 8 << 20
	// A mutant may take slowdown times as long as the code, and patience more.
	slowdown = 10
	patience = 10 * time.Second
	// quick is the time of a test that runs before the slower ones.
	quick = 200 * time.Millisecond
)

// suite is the tests of a package, and of others that use it, with every mutant in them.
type suite struct {
	work        string // a temporary folder
	binaries    []binary
	environment []string
	flags       []string
	tests       []test
}

// binary is the test binary of one package.
type binary struct {
	folder, program string
}

// test is a test function, and the mutants that it reaches.
type test struct {
	name    string
	in      int // the index of its binary
	took    time.Duration
	reaches map[int]bool
}

// buildTests builds the tests of a package with its mutants, and those of the folders in users.
func buildTests(ctx context.Context, p *source, users, flags []string) (*suite, error) {
	work, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return nil, err
	}
	s := &suite{work: work, environment: os.Environ(), flags: flags}
	files := map[string][]byte{}
	for name, text := range p.files {
		files[filepath.Join(p.root, name)] = text
	}
	largest := 0
	for _, m := range p.mutants {
		largest = max(largest, m.id)
	}
	helper := strings.NewReplacer("PACKAGE", p.name, "SIZE", strconv.Itoa(largest+2)).Replace(switchSource)
	files[filepath.Join(p.root, p.folder, "zz_mutate_switch.go")] = []byte(helper)
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for name, text := range files {
		copied := filepath.Join(work, strconv.Itoa(len(overlay.Replace))+".go")
		if err := os.WriteFile(copied, text, 0o600); err != nil {
			return nil, errors.Join(err, os.RemoveAll(work))
		}
		overlay.Replace[name] = copied
	}
	list, err := json.Marshal(overlay)
	if err == nil {
		err = os.WriteFile(filepath.Join(work, "overlay.json"), list, 0o600)
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(work))
	}
	for i, folder := range append([]string{p.folder}, users...) {
		b := binary{filepath.Join(p.root, folder), filepath.Join(work, "tests"+strconv.Itoa(i))}
		build := exec.CommandContext(ctx, "go", "test", "-c", "-overlay", filepath.Join(work, "overlay.json"), "-o", b.program, "./"+folder)
		build.Dir = p.root
		if said, err := build.CombinedOutput(); err != nil {
			return nil, errors.Join(fmt.Errorf("build the mutants: %w\n%s", err, said), os.RemoveAll(work))
		}
		s.binaries = append(s.binaries, b)
	}
	return s, nil
}

// remove deletes the binaries, and the failures that property tests of mutants have left
// behind. Those of the code itself are not in the repository either.
func (s *suite) remove() {
	_ = os.RemoveAll(s.work) // a temporary folder
	for _, b := range s.binaries {
		_ = os.RemoveAll(filepath.Join(b.folder, "testdata", "rapid"))
	}
}

// measure runs every test alone, without a mutant, and notes how long it takes and
// which mutants it reaches.
func (s *suite) measure(ctx context.Context) error {
	for i, b := range s.binaries {
		list := exec.CommandContext(ctx, b.program, append(slices.Clone(s.flags), "-test.list=^(Test|Fuzz|Example)")...)
		list.Dir = b.folder
		printed, err := list.Output()
		if err != nil {
			return fmt.Errorf("list the tests: %w", err)
		}
		if err := s.measureTests(ctx, i, strings.Fields(string(printed))); err != nil {
			return err
		}
	}
	slices.SortStableFunc(s.tests, func(a, b test) int { return int(a.took - b.took) })
	return ctx.Err()
}

// measureTests is measure for tests of one binary.
func (s *suite) measureTests(ctx context.Context, in int, names []string) error {
	notes := filepath.Join(s.work, "reached")
	for _, name := range names {
		t := test{name: name, in: in, reaches: map[int]bool{}}
		began := time.Now()
		if r := s.run(ctx, s.binaries[in], 10*time.Minute, []string{name}, "MUTANT_REACHED="+notes); r.outcome != survived {
			return fmt.Errorf("%s without a mutant: %s\n%s", name, r.outcome, r.said)
		}
		t.took = time.Since(began)
		reached, err := os.ReadFile(notes)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		for _, field := range strings.Fields(string(reached)) {
			id, err := strconv.Atoi(field)
			if err != nil {
				return err
			}
			t.reaches[id] = true
		}
		if err := os.Remove(notes); err != nil {
			return err
		}
		s.tests = append(s.tests, t)
	}
	return nil
}

// outcome is what became of a mutant.
type outcome string

const (
	survived  outcome = "survived"
	unreached outcome = "not reached"
	failed    outcome = "killed"
	outOfTime outcome = "killed by its time limit"
)

func (o outcome) killed() bool { return o == failed || o == outOfTime }

// try runs the tests that reach a mutant until one fails: of each binary the quick ones
// together, then the slow ones one by one, so that one that does not end costs no more than
// its own time limit.
func (s *suite) try(ctx context.Context, m mutant) (outcome, error) {
	var batches []batch
	for in := range s.binaries {
		var together batch
		for _, t := range s.tests {
			if t.in == in && t.reaches[m.id] && t.took < quick {
				together = batch{in, append(together.names, t.name), together.took + t.took}
			}
		}
		if together.names != nil {
			batches = append(batches, together)
		}
	}
	for _, t := range s.tests {
		if t.reaches[m.id] && t.took >= quick {
			batches = append(batches, batch{t.in, []string{t.name}, t.took})
		}
	}
	reached := unreached
	for _, b := range batches {
		reached = s.run(ctx, s.binaries[b.in], b.took*slowdown+patience, b.names, "MUTANT="+strconv.Itoa(m.id)).outcome
		if reached != survived || ctx.Err() != nil {
			break
		}
	}
	return reached, ctx.Err()
}

// batch is tests of a binary that run together, and how long they take.
type batch struct {
	in    int
	names []string
	took  time.Duration
}

// result is the end of a test run.
type result struct {
	outcome outcome
	said    string
}

// run runs tests of a binary with a setting until one of them fails.
func (s *suite) run(ctx context.Context, b binary, limit time.Duration, tests []string, setting string) result {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	args := slices.Concat([]string{"-c", fmt.Sprintf(`ulimit -v %d; exec "$0" "$@"`, maxMemory), b.program}, s.flags,
		[]string{"-test.failfast", "-test.run=^(" + strings.Join(tests, "|") + ")$"})
	command := exec.CommandContext(ctx, "sh", args...)
	command.Dir = b.folder
	command.Env = append(slices.Clone(s.environment), setting)
	command.WaitDelay = time.Second // a process that a test started may hold the pipe
	var said bytes.Buffer
	command.Stdout, command.Stderr = &said, &said
	err := command.Run()
	switch {
	case ctx.Err() != nil:
		return result{outOfTime, said.String()}
	case err != nil:
		return result{failed, said.String()}
	}
	return result{survived, said.String()}
}
