package dmarcd_test

import (
	"go/ast"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/internal/musttest"
)

// maxWords limits the documents that have to stay short to be read.
var maxWords = map[string]int{"README.md": 1000, "ARCHITECTURE.md": 1500, "CONTRIBUTING.md": 1500, "docs/design.md": 2500, "docs/performance.md": 1500, "docs/managed.md": 1500}

func TestDocumentsAreShort(t *testing.T) {
	t.Parallel()
	for name, limit := range maxWords {
		if n := len(strings.Fields(string(musttest.Get(os.ReadFile(name))(t)))); n > limit {
			t.Errorf("%s: got %d words, want at most %d", name, n, limit)
		}
	}
}

var (
	quoted       = regexp.MustCompile("`([^`\n]+)`")
	documentFile = regexp.MustCompile(`^[\w./-]+\.(go|sql|toml|yaml|sh|tmpl)$`)
	documentTest = regexp.MustCompile(`^(Test|Benchmark|Fuzz)[A-Z]\w*$`)
	documentName = regexp.MustCompile(`^[a-z]\w*\.[A-Z]\w*(\.[A-Z]\w*)?$`)
	folder       = regexp.MustCompile(`^[a-z][\w/-]*/$`)
)

// TestDocumentsNameWhatExists checks that the files, folders, tests and Go names that the documents
// for contributors quote exist.
func TestDocumentsNameWhatExists(t *testing.T) {
	t.Parallel()
	files, folders := listTree(t)
	names := declaredNames(parseModule(t, token.NewFileSet()))
	documents := append([]string{"ARCHITECTURE.md", "CONTRIBUTING.md", "docs/design.md", "docs/testing.md", "docs/security.md", "docs/asvs.md"}, musttest.Get(filepath.Glob("docs/adr/*.md"))(t)...)
	for _, document := range documents {
		for _, match := range quoted.FindAllStringSubmatch(string(musttest.Get(os.ReadFile(document))(t)), -1) {
			word, known := match[1], true
			switch {
			case documentFile.MatchString(word):
				known = endsWith(files, word)
			case folder.MatchString(word):
				known = endsWith(folders, strings.TrimSuffix(word, "/"))
			case documentTest.MatchString(word), documentName.MatchString(word):
				known = names[word]
			}
			if !known {
				t.Errorf("%s: got %s, want a name that exists", document, word)
			}
		}
	}
}

// TestASVS checks that each control of docs/asvs.md that is met names a test or a file; that they exist is
// checked by TestDocumentsNameWhatExists. docs/security.md leads to it.
func TestASVS(t *testing.T) {
	t.Parallel()
	if !strings.Contains(string(musttest.Get(os.ReadFile("docs/security.md"))(t)), "(asvs.md)") {
		t.Error("docs/security.md has no link to docs/asvs.md")
	}
	chapters := make(map[string]bool)
	for line := range strings.Lines(string(musttest.Get(os.ReadFile("docs/asvs.md"))(t))) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if len(cells) != 3 || !strings.HasPrefix(line, "| ") || cells[1] == "state" {
			continue
		}
		chapter, _, _ := strings.Cut(strings.TrimPrefix(cells[0], "| "), ".")
		chapters[chapter] = true
		proof := slices.ContainsFunc(quoted.FindAllStringSubmatch(cells[2], -1), func(match []string) bool {
			_, err := os.Stat(match[1])
			return documentTest.MatchString(match[1]) || err == nil
		})
		switch {
		case !slices.Contains([]string{"met", "n/a", "operator", "not met"}, cells[1]):
			t.Errorf("%s: got the state %q", cells[0], cells[1])
		case cells[1] == "met" && !proof:
			t.Errorf("%s is met, without a test or a file", cells[0])
		}
	}
	if len(chapters) < 14 {
		t.Errorf("got controls of %d chapters, want all 14", len(chapters))
	}
}

// endsWith reports whether one of the paths is name or ends with it.
func endsWith(paths []string, name string) bool {
	return slices.ContainsFunc(paths, func(p string) bool { return p == name || strings.HasSuffix(p, "/"+name) })
}

// listTree returns all files and folders, also those of nested modules.
func listTree(t *testing.T) (files, folders []string) {
	t.Helper()
	musttest.Do(t, filepath.WalkDir(".", func(p string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (p == ".git" || p == ".cache" || p == "data" || entry.Name() == "node_modules"):
			return fs.SkipDir
		case entry.IsDir():
			folders = append(folders, filepath.ToSlash(p))
		default:
			files = append(files, filepath.ToSlash(p))
		}
		return nil
	}))
	return files, folders
}

// declaredNames returns the names of tests, and those of exported declarations and methods, with their
// package: insight.Mail, insight.Mail.Close.
func declaredNames(files []sourceFile) map[string]bool {
	names := make(map[string]bool)
	for _, f := range files {
		for _, declaration := range f.tree.Decls {
			for _, name := range namesOf(declaration) {
				if documentTest.MatchString(name) {
					names[name] = true
				}
				names[strings.TrimSuffix(f.tree.Name.Name, "_test")+"."+name] = true
			}
		}
	}
	return names
}

// namesOf returns what a declaration declares: Function, Type, Type.Method, Constant.
func namesOf(declaration ast.Decl) (names []string) {
	switch d := declaration.(type) {
	case *ast.FuncDecl:
		return []string{strings.TrimPrefix(receiver(d)+"."+d.Name.Name, ".")}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				names = append(names, s.Name.Name)
			case *ast.ValueSpec:
				for _, name := range s.Names {
					names = append(names, name.Name)
				}
			}
		}
	}
	return names
}

// receiver returns the type of the receiver of a method, "" for a function.
func receiver(f *ast.FuncDecl) (name string) {
	if f.Recv == nil {
		return ""
	}
	ast.Inspect(f.Recv.List[0].Type, func(n ast.Node) bool {
		if ident, ok := n.(*ast.Ident); ok && name == "" {
			name = ident.Name
		}
		return true
	})
	return name
}
