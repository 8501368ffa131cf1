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

// suite is the test binary of a package, with every mutant in it.
type suite struct {
	folder, program string
	environment     []string
	flags           []string
	tests           []test
}

// test is a test function, and the mutants that it reaches.
type test struct {
	name    string
	took    time.Duration
	reaches map[int]bool
}

// buildTests builds the tests of a package with its mutants.
func buildTests(ctx context.Context, p *source, flags []string) (*suite, error) {
	work, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return nil, err
	}
	s := &suite{folder: filepath.Join(p.root, p.folder), program: filepath.Join(work, "tests"), environment: os.Environ(), flags: flags}
	files := map[string][]byte{}
	for name, text := range p.files {
		files[filepath.Join(p.root, name)] = text
	}
	largest := 0
	for _, m := range p.mutants {
		largest = max(largest, m.id)
	}
	helper := strings.NewReplacer("PACKAGE", p.name, "SIZE", strconv.Itoa(largest+2)).Replace(switchSource)
	files[filepath.Join(s.folder, "zz_mutate_switch.go")] = []byte(helper)
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
	build := exec.CommandContext(ctx, "go", "test", "-c", "-overlay", filepath.Join(work, "overlay.json"), "-o", s.program, "./"+p.folder)
	build.Dir = p.root
	if said, err := build.CombinedOutput(); err != nil {
		return nil, errors.Join(fmt.Errorf("build the mutants: %w\n%s", err, said), os.RemoveAll(work))
	}
	return s, nil
}

// remove deletes the binary, and the failures that property tests of mutants have left
// behind. Those of the code itself are not in the repository either.
func (s *suite) remove() {
	_ = os.RemoveAll(filepath.Dir(s.program)) // a temporary folder
	_ = os.RemoveAll(filepath.Join(s.folder, "testdata", "rapid"))
}

// measure runs every test alone, without a mutant, and notes how long it takes and
// which mutants it reaches.
func (s *suite) measure(ctx context.Context) error {
	list := exec.CommandContext(ctx, s.program, append(s.flags, "-test.list=^(Test|Fuzz|Example)")...)
	list.Dir = s.folder
	printed, err := list.Output()
	if err != nil {
		return fmt.Errorf("list the tests: %w", err)
	}
	notes := filepath.Join(filepath.Dir(s.program), "reached")
	for _, name := range strings.Fields(string(printed)) {
		t := test{name: name, reaches: map[int]bool{}}
		began := time.Now()
		if r := s.run(ctx, 10*time.Minute, []string{name}, "MUTANT_REACHED="+notes); r.outcome != survived {
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
	slices.SortFunc(s.tests, func(a, b test) int { return int(a.took - b.took) })
	return ctx.Err()
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

// try runs the tests that reach a mutant, the quick ones first.
func (s *suite) try(ctx context.Context, m mutant) (outcome, error) {
	var quickOnes, slowOnes []string
	var quickTime, slowTime time.Duration
	for _, t := range s.tests {
		switch {
		case !t.reaches[m.id]:
		case t.took < quick:
			quickOnes, quickTime = append(quickOnes, t.name), quickTime+t.took
		default:
			slowOnes, slowTime = append(slowOnes, t.name), slowTime+t.took
		}
	}
	if len(quickOnes)+len(slowOnes) == 0 {
		return unreached, nil
	}
	setting := "MUTANT=" + strconv.Itoa(m.id)
	if len(quickOnes) > 0 {
		if r := s.run(ctx, quickTime*slowdown+patience, quickOnes, setting); r.outcome != survived || ctx.Err() != nil {
			return r.outcome, ctx.Err()
		}
	}
	if len(slowOnes) == 0 {
		return survived, nil
	}
	r := s.run(ctx, slowTime*slowdown+patience, slowOnes, setting)
	return r.outcome, ctx.Err()
}

// result is the end of a test run.
type result struct {
	outcome outcome
	said    string
}

// run runs tests with a setting until one of them fails.
func (s *suite) run(ctx context.Context, limit time.Duration, tests []string, setting string) result {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	args := slices.Concat([]string{"-c", fmt.Sprintf(`ulimit -v %d; exec "$0" "$@"`, maxMemory), s.program}, s.flags,
		[]string{"-test.failfast", "-test.run=^(" + strings.Join(tests, "|") + ")$"})
	command := exec.CommandContext(ctx, "sh", args...)
	command.Dir = s.folder
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
