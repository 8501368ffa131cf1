package dnscheck_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/dnscheck"
	"github.com/dmarcd/dmarcd/internal/goldentest"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

// stableID is the form of the id of a finding.
var stableID = regexp.MustCompile(`^[a-z]+(_[a-z]+)*\.[a-z0-9]+(_[a-z0-9]+)*$`)

func TestCatalogue(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, e := range dnscheck.Catalogue() {
		if !stableID.MatchString(e.ID) || seen[e.ID] {
			t.Errorf("got the id %q, want each once, as part.words_in_lower_case", e.ID)
		}
		seen[e.ID] = true
		for _, text := range []string{e.What, e.Why} {
			if !strings.HasSuffix(text, ".") && !strings.HasSuffix(text, "{text}") {
				t.Errorf("%s: got %q, want a full sentence", e.ID, text)
			}
		}
		if good := e.Level == dmarcd.LevelGood; good && (e.Points != 0 || e.Fix != "") {
			t.Errorf("%s: got %d points and the fix %q, want none of what is good", e.ID, e.Points, e.Fix)
		}
		if e.RFC == "" {
			t.Errorf("%s: got no RFC, want the text that says so", e.ID)
		}
	}
}

// TestEveryProblemIsMapped compares the tables of this package with the kinds that the
// protocol packages declare.
func TestEveryProblemIsMapped(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ protocol, folder, kind string }{
		{"dmarc", "dmarc", "Kind"},
		{"dmarc.Miss", "dmarc", "Miss"},
		{"spf", "spf", "Kind"},
		{"dkim", "dkim", "Kind"},
		{"mtasts", "mtasts", "Kind"},
		{"tlsrpt", "tlsrpt", "Kind"},
		{"bimi", "bimi", "Kind"},
		{"dane", "dane", "Kind"},
	} {
		t.Run(tt.protocol, func(t *testing.T) {
			t.Parallel()
			kinds := declaredKinds(t, filepath.Join("..", "..", tt.folder), tt.kind)
			if len(kinds) < 5 {
				t.Fatalf("got %d kinds, want those of the package", len(kinds))
			}
			for _, kind := range kinds {
				if kind != "" && !dnscheck.Mapped(tt.protocol, kind) {
					t.Errorf("got no finding for problems of the kind %q, want one in the table of this package", kind)
				}
			}
		})
	}
}

// declaredKinds returns the values of the constants of a string type in a folder.
func declaredKinds(t *testing.T, folder, typeName string) []string {
	t.Helper()
	files := musttest.Get(filepath.Glob(filepath.Join(folder, "*.go")))(t)
	var kinds []string
	for _, file := range files {
		tree := musttest.Get(parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution))(t)
		ast.Inspect(tree, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			if name, ok := spec.Type.(*ast.Ident); !ok || name.Name != typeName || len(spec.Values) != 1 {
				return true
			}
			if literal, ok := spec.Values[0].(*ast.BasicLit); ok && literal.Kind == token.STRING {
				kind := musttest.Get(strconv.Unquote(literal.Value))(t)
				kinds = append(kinds, kind)
			}
			return true
		})
	}
	return kinds
}

func TestFindingsAreDocumented(t *testing.T) {
	t.Parallel()
	goldentest.Check(t, "../../docs/findings.md", document())
}

// document returns the text of docs/findings.md.
func document() string {
	var b strings.Builder
	b.WriteString(`# Findings

All findings of a check. This file is generated from the
catalogue in ` + "`internal/dnscheck`" + `; words in braces are placeholders.

Levels: **error** causes harm now, **warning** will cause harm or wastes protection,
**info** is advice, **good** is correct. The points of all findings, each type counted
once, add up to the grade:

| grade | points |
|---|---|
`)
	for _, step := range dmarcd.Grades() {
		fmt.Fprintf(&b, "| %s | up to %d |\n", step.Grade, step.Points)
	}
	b.WriteString("| F | more |\n\nA domain whose DMARC policy could not be looked up has no grade. The next step is\nthe finding with the most points that can be fixed.\n")
	part := ""
	for _, e := range dnscheck.Catalogue() {
		if p, _, _ := strings.Cut(e.ID, "."); p != part {
			part = p
			fmt.Fprintf(&b, "\n## %s\n", part)
		}
		fmt.Fprintf(&b, "\n### %s\n\n%s, %d points, %s\n\n%s %s", e.ID, e.Level, e.Points, e.RFC, e.What, e.Why)
		if e.Fix != "" {
			fmt.Fprintf(&b, "\n\nFix: %s", e.Fix)
			if strings.HasSuffix(e.Fix, ":") {
				b.WriteString(" *the record*")
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}
