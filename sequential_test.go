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
	text := strings.ReplaceAll(string(makefile), "\\\n", "")
	line := regexp.MustCompile(`(?m)^SEQUENTIAL *:=([^$]*)\$\(addprefix (\S+),([^)]*)\)$`).FindStringSubmatch(text)
	if line == nil {
		t.Fatal("the Makefile does not name the sequential packages")
	}
	folders := strings.Fields(line[1])
	for _, name := range strings.Fields(line[3]) {
		folders = append(folders, line[2]+name)
	}
	for _, folder := range folders {
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
