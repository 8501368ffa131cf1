package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/internal/musttest"
)

const sampleCode = `package sample

type meters int64

func Max(a, b int) int {
	if a > b {
		return a
	}
	return b
}

func Both(a, b bool) bool { return a && b }

func Next(n int) int { return n + 1 }

// Sum uses every operator that has mutants, in types of all sorts.
func Sum(lengths []meters, skip func(i int) bool) (sum meters, names string) {
	for i := 0; i < len(lengths); i++ {
		if skip != nil && (skip(i) || !(lengths[i] >= 0)) ||
			lengths[i] <= -1 {
			continue
		}
		sum += lengths[i]
		sum -= 2
		sum = sum+1-(-1)
		names += "x" + "y"
	}
	left := 3
	left--
	var mask uint64 = 1<<left - 1<<1 // has no mutants
	return sum + meters(left) + meters(mask) - 2, names
}
`

const sampleTest = `package sample

import "testing"

func TestMax(t *testing.T) {
	if Max(1, 2) != 2 || Max(2, 1) != 2 {
		t.Error("wrong")
	}
}

func TestBoth(t *testing.T) {
	if !Both(true, true) {
		t.Error("wrong")
	}
}

func TestSum(t *testing.T) {
	sum, names := Sum([]meters{5, 0, 7, -1, -9}, func(i int) bool { return i == 2 })
	if sum != 7 || names != "xyxy" {
		t.Error("wrong", sum, names)
	}
	if sum, _ := Sum([]meters{-1, 3}, nil); sum != 5 {
		t.Error("wrong", sum)
	}
}
`

const sampleUser = `package user

import (
	"testing"

	"sample.example/p"
)

func TestNext(t *testing.T) {
	if sample.Next(1) != 2 {
		t.Error("wrong")
	}
}
`

const sampleKnown = "# Known\n\n- `p/sample.go` Max: `a > b` → `a >= b`: both are the larger one.\n" +
	"- `p/sample.go` Max: `a < b` → `a <= b`: this line has gone.\n- `other/other.go` F: `a` → `!a`: of another package.\n"

func TestSurvivors(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"go.mod": "module sample.example\n\ngo 1.26\n", "known.md": sampleKnown,
		"p/sample.go": sampleCode, "p/sample_test.go": sampleTest, "user/user_test.go": sampleUser,
	} {
		musttest.Do(t, os.MkdirAll(filepath.Dir(name), 0o700))
		musttest.Do(t, os.WriteFile(name, []byte(text), 0o600))
	}
	t.Setenv("GOWORK", "off")
	t.Setenv("GOFLAGS", "")
	for _, test := range []struct {
		name string
		args []string
		want []string // the lines but the last
		last string
		err  string
	}{
		{
			name: "all", args: []string{"-known", "known.md", "p"},
			want: []string{
				"`p/sample.go` Max: `a < b` → `a <= b`: no such mutant",
				"p/sample.go:12: survived: `p/sample.go` Both: `a && b` → `a || b`",
				"p/sample.go:14: not reached: `p/sample.go` Next: `n + 1` → `n - 1`",
			},
			last: `^p: killed 24 of 26 \(92\.3 %\) in \d+s; 27 mutants in all, 1 equivalent$`,
			err:  "1 of 1 packages under 95 %",
		},
		{
			name: "a stale entry", args: []string{"-known", "known.md", "-least", "91", "p"},
			want: []string{
				"`p/sample.go` Max: `a < b` → `a <= b`: no such mutant",
				"p/sample.go:12: survived: `p/sample.go` Both: `a && b` → `a || b`",
				"p/sample.go:14: not reached: `p/sample.go` Next: `n + 1` → `n - 1`",
			},
			last: `^p: killed 24 of 26 `,
			err:  "1 of 1 packages under 91 %",
		},
		{
			name: "with the tests of a user", args: []string{"-known", "go.mod", "-least", "0", "p+user"},
			want: []string{
				"p/sample.go:6: survived: `p/sample.go` Max: `a > b` → `a >= b`",
				"p/sample.go:12: survived: `p/sample.go` Both: `a && b` → `a || b`",
			},
			last: `^p: killed 25 of 27 `,
		},
		{name: "a sample", args: []string{"-known", "go.mod", "-sample", "1", "-seed", "3", "-least", "0", "p"}, last: ` of 1 `},
	} {
		var out bytes.Buffer
		err := run(t.Context(), test.args, &out)
		if got := errorText(err); got != test.err {
			t.Errorf("%s: got the error %q want %q", test.name, got, test.err)
		}
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		last := lines[len(lines)-1]
		if test.want != nil && strings.Join(lines[:len(lines)-1], "\n") != strings.Join(test.want, "\n") || !regexp.MustCompile(test.last).MatchString(last) {
			t.Errorf("%s: got\n%s\nwant\n%s\n%s", test.name, &out, strings.Join(test.want, "\n"), test.last)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
