package dmarcd_test

import (
	"go/ast"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/dmarcd/dmarcd/internal/musttest"
)

// retired matches the words of the glossary in CONTRIBUTING.md that we no longer use, as
// far as they have no other meaning.
var retired = regexp.MustCompile(`(?i)\b(mend(s|ed|ing)?|somebody|nobody|whoever|strangers?|misfits?|` +
	`look(s|ed|ing)? at|look again|look-ups?|the time before|(tell|tells|told) of|put by)\b`)

// retiredPhrase matches texts of the page that were replaced by shorter or clearer ones.
var retiredPhrase = regexp.MustCompile(`No longer reported|\(tag p of|webhooks except those|Forwarder or list\b|did, as reported|would do under RFC|` +
	`Nothing to publish: the forwarder|class of the sender was saved|only with quirks|Genuine yes|Form RFC|by treewalk|those that were excluded earlier|` +
	`domain_usage_purpose in the API|This installation has no report domain|the reason in the log|content is not a report: it|Deny the API|becomes its password|` +
	`, your servers\b`)

// glossary matches the table of words in CONTRIBUTING.md, which lists the retired ones.
var glossary = regexp.MustCompile(`(?s)\| idea \| we say \| we do not say \|.*?(\n\n|\z)`)

// retiredName matches those that occur in names. Sentences may use some of them.
var retiredName = regexp.MustCompile(`(?i)^(mend(s|ed|ing)?|somebody|nobody|whoever|strangers?|misfits?|keep(s|ing)?|kept|say(s|ing)?|said|` +
	`tell(s|ing)?|told|refus(e|es|ed|al)|places?|placed|suspects?|dockets?|judg(e|es|ed|ement|ements)|verdicts?|home|nearby|foremost|keyed|room|desk|` +
	`plot|deed|story|stories|welcome)$`)

// allowedNames are names with a retired word that has another meaning in them: a technical term, a
// response code of the DNS, the value keep that users select.
var allowedNames = []string{"keepAlive", "KeepAlive", "DisableKeepAlives", "AfterKeep", "Refused", "RcodeRefused"}

// metricName matches the name of a metric, and jsonName that of a member in the tag of a field.
var (
	metricName = regexp.MustCompile(`^dmarcd_[a-z_]+$`)
	jsonName   = regexp.MustCompile(`json:"([a-z_]+)`)
)

// sqlComment matches a comment of SQL, and sqlName a name.
var (
	sqlComment = regexp.MustCompile(`--[^\n]*`)
	sqlName    = regexp.MustCompile(`[a-z][a-z_]+`)
)

// namePart matches a word of a name.
var namePart = regexp.MustCompile(`[A-Z]?[a-z]+|[A-Z]+`)

// unixUser is the name of the user without rights on Unix.
const unixUser = `"nobody"`

// TestLanguage keeps retired words out of findings, help texts, logs, errors, pages, the
// OpenAPI document, comments, tests and documentation.
func TestLanguage(t *testing.T) {
	t.Parallel()
	positions := token.NewFileSet()
	for _, f := range parseModule(t, positions) {
		for _, group := range f.tree.Comments {
			for _, word := range retiredWords(strings.Join(strings.Fields(group.Text()), " ")) {
				t.Errorf("%s: got the word %q in a comment, want the one in the glossary of CONTRIBUTING.md", positions.Position(group.Pos()), word)
			}
		}
		if f.path == "language_test.go" {
			continue // it names them
		}
		ast.Inspect(f.tree, func(n ast.Node) bool {
			if name, ok := n.(*ast.Ident); ok && isRetiredName(name.Name) {
				t.Errorf("%s: got the name %s, want one without a retired word (CONTRIBUTING.md)", positions.Position(name.Pos()), name.Name)
			}
			literal, ok := n.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING || literal.Value == unixUser {
				return true
			}
			text, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Errorf("%s: %v", positions.Position(literal.Pos()), err)
			}
			for _, word := range retiredWords(text) {
				t.Errorf("%s: got the word %q, want the one in the glossary of CONTRIBUTING.md", positions.Position(literal.Pos()), word)
			}
			name := metricName.FindString(text)
			if tag := jsonName.FindStringSubmatch(text); tag != nil {
				name = tag[1]
			}
			if isRetiredName(name) {
				t.Errorf("%s: got the name %s, want one without a retired word (CONTRIBUTING.md)", positions.Position(literal.Pos()), name)
			}
			return true
		})
	}
	checkYAML(t, "internal/api/openapi.yaml")
	checkFiles(t, "internal/web/templates", ".tmpl")
	checkFiles(t, "internal/dnscheck", ".toml")
	checkFiles(t, ".", ".md")
}

// TestSchemaNames keeps retired words out of the names of tables, columns and indexes.
func TestSchemaNames(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"sqlite", "postgres"} {
		files := musttest.Get(filepath.Glob("internal/store/migrations/" + engine + "/*.sql"))(t)
		if len(files) == 0 {
			t.Fatalf("got no migrations of %s", engine)
		}
		for _, file := range files {
			schema := sqlComment.ReplaceAllString(string(musttest.Get(os.ReadFile(file))(t)), "")
			for _, name := range sqlName.FindAllString(schema, -1) {
				if isRetiredName(name) {
					t.Errorf("%s: got the name %s, want one without a retired word (CONTRIBUTING.md)", file, name)
				}
			}
		}
	}
}

// checkFiles reports retired words in the files below a folder with that extension.
func checkFiles(t *testing.T, folder, extension string) {
	t.Helper()
	found := 0
	err := filepath.WalkDir(folder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if folder == "." {
				return enter(name, entry.Name())
			}
			return nil
		}
		if filepath.Ext(name) != extension {
			return nil
		}
		found++
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		for _, word := range retiredWords(glossary.ReplaceAllString(string(content), "")) {
			t.Errorf("%s: got the word %q, want the one in the glossary of CONTRIBUTING.md", name, word)
		}
		return nil
	})
	if err != nil || found == 0 {
		t.Errorf("%s: got %d files of the type %s and %v, want them checked", folder, found, extension, err)
	}
}

// checkYAML reports retired words in all scalars of a YAML file.
func checkYAML(t *testing.T, name string) {
	t.Helper()
	content := musttest.Get(os.ReadFile(name))(t)
	var document yaml.Node
	musttest.Do(t, yaml.Unmarshal(content, &document))
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

// isRetiredName reports whether a name contains a retired word.
func isRetiredName(name string) bool {
	return !slices.Contains(allowedNames, name) && slices.ContainsFunc(namePart.FindAllString(name, -1), retiredName.MatchString)
}

func retiredWords(text string) []string {
	return append(retired.FindAllString(text, -1), retiredPhrase.FindAllString(text, -1)...)
}

func TestRetiredWords(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text string
		want []string
	}{
		{"How to fix it.", nil},
		{"The amendment recommends a lookup.", nil},
		{"How to mend it.", []string{"mend"}},
		{"Nobody looked at it.", []string{"Nobody", "looked at"}},
		{"10 look-ups by strangers", []string{"look-ups", "strangers"}},
		{"The class of the sender was saved.", []string{"class of the sender was saved"}},
	} {
		if got := retiredWords(tt.text); !slices.Equal(got, tt.want) {
			t.Errorf("%q: got %q, want %q", tt.text, got, tt.want)
		}
	}
}

func TestRetiredNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"storeReport": false, "keepReport": true, "maxKept": true, "keep_records": true, "retention_records": false, "ParsePlace": true, "replacement": false, "keepAlive": false, "homogeneous": false,
	} {
		if got := isRetiredName(name); got != want {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}
