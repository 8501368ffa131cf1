package dmarcd_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/internal/musttest"
)

// TestSequentialPackages checks that the packages which `make test` runs without
// the race detector start no goroutines and synchronize nothing.
func TestSequentialPackages(t *testing.T) {
	t.Parallel()
	makefile := musttest.Get(os.ReadFile("Makefile"))(t)
	line := regexp.MustCompile(`(?m)^SEQUENTIAL *:=(.*)$`).FindSubmatch(makefile)
	if line == nil {
		t.Fatal("the Makefile does not name the sequential packages")
	}
	for _, folder := range strings.Fields(string(line[1])) {
		files, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil || len(files) == 0 {
			t.Errorf("%s has no Go files: %v", folder, err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			checkSequential(t, file)
		}
	}
}

func checkSequential(t *testing.T, file string) {
	t.Helper()
	parsed := musttest.Get(parser.ParseFile(token.NewFileSet(), file, nil, 0))(t)
	for _, imported := range parsed.Imports {
		if strings.HasPrefix(imported.Path.Value, `"sync`) {
			t.Errorf("%s imports %s: test its package with the race detector", file, imported.Path.Value)
		}
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		if _, starts := n.(*ast.GoStmt); starts {
			t.Errorf("%s starts a goroutine: test its package with the race detector", file)
		}
		return true
	})
}
