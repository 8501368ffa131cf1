package dmarcd_test

import (
	"go/ast"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// retired matches the words of the glossary in CONTRIBUTING.md that we no longer use, as
// far as they have no other meaning.
var retired = regexp.MustCompile(`(?i)\b(mend(s|ed|ing)?|somebody|nobody|whoever|strangers?|misfits?|` +
	`look(s|ed|ing)? at|look again|look-ups?|the time before|(tell|tells|told) of|put by)\b`)

// retiredIdentifiers are literals that contain a retired word but are part of a
// published interface and never change.
var retiredIdentifiers = []string{"finding.mended"}

// rewordedLater are folders whose texts still have to be reworded.
var rewordedLater = []string{"internal/web", "internal/insight", "internal/service"}

// TestLanguage keeps retired words out of findings, help texts, logs, errors and the
// OpenAPI document.
func TestLanguage(t *testing.T) {
	t.Parallel()
	positions := token.NewFileSet()
	for _, f := range parseModule(t, positions) {
		later := slices.ContainsFunc(rewordedLater, func(folder string) bool { return within(f.folder(), folder) })
		if f.isTest() || later {
			continue
		}
		ast.Inspect(f.tree, func(n ast.Node) bool {
			literal, ok := n.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Errorf("%s: %v", positions.Position(literal.Pos()), err)
			}
			for _, word := range retiredWords(text) {
				t.Errorf("%s: got the word %q, want the one in the glossary of CONTRIBUTING.md", positions.Position(literal.Pos()), word)
			}
			return true
		})
	}
	checkYAML(t, "internal/api/openapi.yaml")
}

// checkYAML reports retired words in all scalars of a YAML file.
func checkYAML(t *testing.T, name string) {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var document yaml.Node
	if err := yaml.Unmarshal(content, &document); err != nil {
		t.Fatal(err)
	}
	if len(document.Content) == 0 {
		t.Fatalf("%s: got no content", name)
	}
	var check func(n *yaml.Node)
	check = func(n *yaml.Node) {
		for _, word := range retiredWords(n.Value) {
			t.Errorf("%s:%d: got the word %q, want the one in the glossary of CONTRIBUTING.md", name, n.Line, word)
		}
		for _, child := range n.Content {
			check(child)
		}
	}
	check(&document)
}

func retiredWords(text string) []string {
	for _, identifier := range retiredIdentifiers {
		text = strings.ReplaceAll(text, identifier, "")
	}
	return retired.FindAllString(text, -1)
}

func TestRetiredWords(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text string
		want []string
	}{
		{"How to fix it.", nil},
		{"The amendment recommends a lookup.", nil},
		{"the event finding.mended", nil},
		{"How to mend it.", []string{"mend"}},
		{"Nobody looked at it.", []string{"Nobody", "looked at"}},
		{"10 look-ups by strangers", []string{"look-ups", "strangers"}},
	} {
		if got := retiredWords(tt.text); !slices.Equal(got, tt.want) {
			t.Errorf("%q: got %q, want %q", tt.text, got, tt.want)
		}
	}
}
