package dmarcd_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/internal/musttest"
)

const (
	module   = "github.com/dmarcd/dmarcd"
	maxLines = 600
	// anything in the table allows every package of the module.
	anything = "*"
)

// protocols implement one RFC each and do not depend on the rest of the program.
var protocols = []string{"dns", "dmarc", "spf", "dkim", "mtasts", "tlsrpt", "bimi", "dane", "aggregate", "failure"}

// foundations are shared by several protocols. The same rules apply to them.
var foundations = []string{"dns/txt", "internal/reporturi", "internal/reporttext", "internal/quirk", "internal/recovered"}

// services are capabilities. They declare what they need of the store as interfaces.
var services = []string{"internal/dnscheck", "internal/jobs", "internal/auth", "internal/insight", "internal/alert", "internal/probe", "internal/notify", "internal/notify/chat", "internal/notify/mail", "internal/notify/webhook"}

// transports receive reports and pass them to internal/intake.
var transports = []string{
	"internal/intake", "internal/intake/files", "internal/intake/foreign", "internal/intake/spool", "internal/intake/smtpd",
	"internal/intake/imap", "internal/intake/genuine",
}

// workers are the services, the use cases and their dependencies.
var workers = join(append(slices.Clone(protocols), ".", "internal/facts", "internal/service"), services...)

// packages is the table of ARCHITECTURE.md: for each package, the packages of this module
// that it may import. Imports point one way:
//
//	cmd → app → api → services → root → protocols → standard library
//
// A row may exist before its package. Test files may import anything: the compiler
// prevents cycles.
var packages = map[string][]string{
	".": protocols,

	"dns":         nil,
	"dns/dnstest": {"dns"},
	"dns/txt":     {"dns"},
	"dmarc":       {"dns", "dns/txt", "internal/reporturi"},
	"spf":         {"dns", "internal/recovered"},
	"dkim":        {"dns", "dns/txt", "internal/recovered"},
	"mtasts":      {"dns", "dns/txt"},
	"tlsrpt":      {"dns", "dns/txt", "internal/reporturi", "internal/reporttext", "internal/quirk"},
	"bimi":        {"dns", "dns/txt"},
	"dane":        {"dns"},
	"aggregate":   {"dns", "dmarc", "internal/reporttext", "internal/quirk"},
	"failure":     {"dns", "dmarc", "internal/reporttext", "internal/quirk"},

	"internal/clientaddr": nil,
	"internal/httproute":  nil,
	"internal/upload":     {".", "internal/clientaddr", "internal/fair"},
	"internal/fair":       {"."},
	"internal/cache":      {},
	"internal/recovered":  nil,
	"internal/tempfile":   nil,
	"internal/trace":      nil,
	"internal/memory":     {".", "internal/fair"},
	"internal/reporturi":  {"dns"},
	"internal/quirk":      nil,
	"internal/reporttext": nil,
	"internal/corpustest": {"dns", "dns/dnstest", "internal/intake/unpack", "internal/musttest"},
	"internal/costtest":   nil,
	"internal/certtest":   {"internal/musttest"},
	"internal/goldentest": {"internal/musttest"},
	"internal/packtest":   nil,
	"internal/musttest":   nil,

	"client": {".", "internal/wire"},

	"internal/config":                {"."},
	"internal/facts":                 {"."},
	"internal/pdf":                   nil,
	"internal/phrase":                {"."},
	"internal/wire":                  join(protocols, ".", "internal/facts", "internal/phrase"),
	"internal/store":                 join(protocols, ".", "internal/cache", "internal/facts", "internal/fair", "internal/phrase", "internal/recovered", "internal/rollup", "internal/cold", "internal/secret", "internal/store/db", "internal/store/shape", "internal/trace"),
	"internal/store/db":              {".", "internal/fair", "internal/recovered"},
	"internal/cold":                  nil,
	"internal/store/shape":           join(protocols, ".", "internal/facts"),
	"internal/rollup":                join(protocols, "."),
	"internal/store/storetest":       join(protocols, ".", "internal/store", "internal/musttest", "test/daemon"),
	"internal/resolver":              {"dns", "internal/cache", "internal/fair", "internal/recovered"},
	"internal/resolver/zone":         {"dns", "internal/resolver"},
	"internal/resolver/resolvertest": {"dns", "internal/resolver", "internal/resolver/zone"},

	"internal/zone": {"dns", "internal/clientaddr", "internal/fair", "internal/recovered"},

	"internal/publish":         {".", "internal/outbound", "internal/zone"},
	"internal/outbound":        {"dns"},
	"internal/starttls":        {"dns", "internal/cache"},
	"internal/dnscheck":        join(protocols, ".", "internal/facts", "internal/outbound", "internal/fair", "internal/recovered", "internal/trace"),
	"internal/proposal":        {".", "internal/facts", "internal/phrase", "dns", "dmarc", "spf", "dkim", "mtasts"},
	"internal/recordfile":      {".", "dmarc"},
	"internal/alert":           {"."},
	"internal/alert/alerttest": {"."},
	"internal/notify":          {".", "internal/jobs", "internal/recovered", "internal/trace"},
	"internal/notify/chat":     {".", "internal/phrase", "internal/wire"},
	"internal/notify/mail":     {".", "internal/phrase", "internal/wire"},
	"internal/notify/webhook":  {".", "internal/outbound", "internal/wire", "internal/notify/chat"},
	"internal/probe":           {".", "dns"},
	"internal/jobs":            join(protocols, ".", "internal/fair", "internal/recovered"),
	"internal/auth":            {".", "internal/cache", "internal/clientaddr", "internal/fair"},
	"internal/insight":         join(protocols, ".", "internal/facts", "internal/senders", "internal/cache", "internal/memory", "internal/phrase", "internal/proposal", "internal/recovered", "internal/rollup"),

	"internal/intake":         join(protocols, ".", "internal/intake/unpack", "internal/fair", "internal/recovered", "internal/reporttext", "internal/tempfile", "internal/trace"),
	"internal/intake/unpack":  join(protocols, ".", "internal/tempfile"),
	"internal/intake/files":   {".", "internal/intake", "internal/intake/unpack", "internal/recovered"},
	"internal/intake/foreign": {".", "aggregate", "tlsrpt", "internal/tempfile"},
	"internal/intake/spool":   {".", "internal/clientaddr", "internal/fair", "internal/recovered", "internal/trace"},
	"internal/intake/smtpd":   {".", "internal/clientaddr", "internal/intake/spool", "internal/fair", "internal/recovered", "internal/trace"},
	"internal/intake/imap":    {".", "internal/fair", "internal/outbound", "internal/recovered", "internal/tempfile"},
	"internal/intake/genuine": join(protocols, ".", "internal/fair", "internal/intake/unpack"),
	"internal/secret":         {"."},
	"internal/certificate":    {".", "dmarc", "internal/cache", "internal/secret"},

	"internal/senders":          {".", "dns", "internal/cache", "internal/fair", "internal/recovered"},
	"internal/senders/mmdb":     nil,
	"internal/senders/networks": {"internal/senders", "internal/senders/mmdb"},
	"internal/demo":             join(protocols, ".", "internal/senders", "internal/resolver/zone"),

	"internal/api":         join(workers, "internal/httproute", "internal/fair", "internal/memory", "internal/upload", "internal/clientaddr", "internal/wire", "internal/intake", "internal/recordfile"),
	"internal/api/apitest": {".", "internal/api", "internal/wire"},
	"internal/export":      {".", "internal/facts", "internal/intake", "internal/service", "internal/wire"},
	"internal/mcp":         {".", "dmarc", "internal/facts", "internal/insight", "internal/recovered", "internal/service", "internal/wire"},
	"internal/web/ui":      {".", "internal/phrase", "internal/wire"},
	"internal/web/site":    {".", "internal/clientaddr", "internal/fair", "internal/httproute", "internal/insight", "internal/memory", "internal/phrase", "internal/service", "internal/web/ui", "internal/wire"},
	"internal/web":         join(protocols, ".", "internal/export", "internal/facts", "internal/web/site", "internal/web/ui", "internal/service", "internal/insight", "internal/intake", "internal/phrase", "internal/recordfile", "internal/recovered", "internal/upload", "internal/wire"),
	"internal/app": join(append(slices.Clone(workers), transports...), "client", "internal/memory", "internal/fair", "internal/upload", "internal/clientaddr", "internal/store", "internal/store/shape", "internal/config",
		"internal/resolver", "internal/resolver/zone", "internal/outbound", "internal/starttls", "internal/api", "internal/mcp", "internal/web", "internal/web/ui", "internal/secret", "internal/certificate", "internal/senders", "internal/demo", "internal/recovered", "internal/trace", "internal/zone", "internal/publish"),

	"cmd/dmarcd":     {anything},
	"test/e2e":       {anything},
	"test/realdns":   {anything},
	"test/realmail":  {anything},
	"test/oidc":      {anything},
	"test/mcp":       {anything},
	"test/webhooks":  {anything},
	"test/clients":   {anything},
	"test/browser":   {anything},
	"test/daemon":    {"internal/musttest"},
	"test/rolling":   nil,
	"test/adversary": {anything},
	"test/truth":     {"internal/senders/mmdb"},
	"bench":          {anything},

	"internal/service": join(protocols, ".", "internal/alert", "internal/cache", "internal/certificate", "internal/facts", "internal/store", "internal/dnscheck", "internal/intake", "internal/auth", "internal/insight",
		"internal/memory", "internal/outbound", "internal/fair", "internal/phrase", "internal/notify/chat", "internal/notify/mail", "internal/notify/webhook", "internal/pdf", "internal/publish", "internal/recordfile", "internal/recovered", "internal/zone"),
}

// confined are imports that are restricted to some packages and those below them.
var confined = []struct {
	imports string // a path; includes the packages below it
	to      []string
}{
	{"database/sql", []string{"internal/store"}},
	{"github.com/jackc/pgx", []string{"internal/store/db"}},
	{"modernc.org/sqlite", []string{"internal/store/db"}},
	{"github.com/pressly/goose", []string{"internal/store/db"}},
	{"github.com/miekg/dns", []string{"internal/resolver", "internal/zone", "internal/publish"}},
	{"github.com/spf13", []string{"cmd/dmarcd"}},
	{"github.com/caddyserver", []string{"internal/certificate"}},
	{module + "/internal/wire", []string{"client", "cmd/dmarcd", "internal/api", "internal/mcp", "internal/web", "internal/export", "internal/notify"}},
	{module + "/internal/store", []string{"internal/store", "internal/service", "internal/app"}},
	{module + "/internal/store/db", []string{"internal/store"}},
}

// quiet are the packages without I/O: no files, network or log.
var quiet = join(append(slices.Clone(protocols), foundations...), ".")

// forbidden are imports that some packages must not use.
var forbidden = []struct {
	imports string
	in      []string
}{
	{"encoding/json", []string{"."}}, // JSON shapes belong to wire and api
	{"net/http", join(without(quiet, fetching...), "internal/store", "internal/store/db", "internal/config")},
	{"net", join(quiet, "internal/wire")}, // addresses are in net/netip
	{"os", join(quiet, "internal/wire")},
	{"log/slog", join(quiet, "internal/wire")},
}

// fetching are the protocols that fetch a file over HTTPS, with an injected client.
var fetching = []string{"bimi", "mtasts"}

// frontEnds decode, call the service and encode.
var frontEnds = []string{"cmd", "internal/api", "internal/export", "internal/mcp", "internal/web"}

// vagueNames do not describe what a package provides.
var vagueNames = []string{"util", "utils", "common", "helper", "helpers", "misc", "model", "models", "types", "shared"}

func without(all []string, some ...string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return slices.Contains(some, s) })
}

func join(first []string, more ...string) []string {
	return append(slices.Clone(first), more...)
}

type sourceFile struct {
	path  string // relative to the module root, with slashes
	lines int
	tree  *ast.File
}

// folder returns the path of the file's package, "." for the root.
func (f sourceFile) folder() string { return path.Dir(f.path) }

// isTest reports whether the file is only used in tests.
func (f sourceFile) isTest() bool {
	return strings.HasSuffix(f.path, "_test.go") || isTestPackage(f.folder())
}

// isTestPackage reports whether a package only serves the tests of others.
func isTestPackage(folder string) bool {
	return strings.HasSuffix(folder, "test") || strings.HasPrefix(folder, "test/") || folder == "bench"
}

// imports returns the paths that the file imports.
func (f sourceFile) imports(t *testing.T) []string {
	t.Helper()
	var paths []string
	for _, spec := range f.tree.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatalf("%s: %v", f.path, err)
		}
		paths = append(paths, p)
	}
	return paths
}

func parseModule(t *testing.T, files *token.FileSet) []sourceFile {
	t.Helper()
	var parsed []sourceFile
	err := filepath.WalkDir(".", func(p string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return enter(p, entry.Name())
		}
		if filepath.Ext(p) != ".go" {
			return nil
		}
		content, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		tree, err := parser.ParseFile(files, p, content, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		parsed = append(parsed, sourceFile{path: filepath.ToSlash(p), lines: bytes.Count(content, []byte("\n")), tree: tree})
		return nil
	})
	musttest.Do(t, err)
	return parsed
}

// enter returns fs.SkipDir for folders outside this module, like the go command.
func enter(p, name string) error {
	if p == "." {
		return nil
	}
	_, err := os.Stat(filepath.Join(p, "go.mod"))
	if err == nil || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") ||
		name == "testdata" || name == "node_modules" || p == "data" {
		return fs.SkipDir
	}
	return nil
}

// TestArchitectureDocument checks that ARCHITECTURE.md has a reason for each package.
func TestArchitectureDocument(t *testing.T) {
	t.Parallel()
	document := musttest.Get(os.ReadFile("ARCHITECTURE.md"))(t)
	for name := range packages {
		if name != "." && !bytes.Contains(document, []byte(path.Base(name)+"/`")) {
			t.Errorf("%s: got no mention in ARCHITECTURE.md, want a row or a part of one", name)
		}
	}
}

func TestArchitecture(t *testing.T) {
	t.Parallel()
	positions := token.NewFileSet()
	files := parseModule(t, positions)

	t.Run("imports run one way", func(t *testing.T) {
		t.Parallel()
		for _, f := range files {
			checkImports(t, f)
			checkConfined(t, f)
			checkForbidden(t, f)
		}
	})
	t.Run("every package says what it does", func(t *testing.T) {
		t.Parallel()
		checkDocs(t, files)
	})
	t.Run("names say something", func(t *testing.T) {
		t.Parallel()
		for _, f := range files {
			if name := f.tree.Name.Name; slices.Contains(vagueNames, name) {
				t.Errorf("%s: got package %s, want a name for what it provides", f.path, name)
			}
		}
	})
	t.Run("files have one idea", func(t *testing.T) {
		t.Parallel()
		for _, f := range files {
			if f.lines > maxLines {
				t.Errorf("%s: got %d lines, want at most %d: split it by idea", f.path, f.lines, maxLines)
			}
		}
	})
	t.Run("nothing runs before main", func(t *testing.T) {
		t.Parallel()
		for _, f := range files {
			for _, declaration := range f.tree.Decls {
				if fn, ok := declaration.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
					t.Errorf("%s: got an init function, want a function that its users call", positions.Position(fn.Pos()))
				}
			}
		}
	})
	t.Run("no method of a tenant takes a team", func(t *testing.T) {
		t.Parallel()
		for _, f := range files {
			if within(f.folder(), "internal/store") && !f.isTest() {
				checkTenant(t, positions, f)
			}
		}
	})
	t.Run("front ends write no audit entries", func(t *testing.T) {
		t.Parallel()
		for _, f := range files {
			if slices.ContainsFunc(frontEnds, func(front string) bool { return within(f.folder(), front) }) && !f.isTest() {
				checkNoAudit(t, positions, f)
			}
		}
	})
	t.Run("tests neither skip nor sleep", func(t *testing.T) {
		t.Parallel()
		for _, f := range files {
			if f.isTest() {
				checkCalls(t, positions, f)
			}
		}
	})
}

func checkImports(t *testing.T, f sourceFile) {
	t.Helper()
	allowed, known := packages[f.folder()]
	if !known {
		t.Errorf("%s: package %q is not in the table; add a row for it to packages in arch_test.go that names what it may import",
			f.path, f.folder())
		return
	}
	if strings.HasSuffix(f.path, "_test.go") || slices.Contains(allowed, anything) {
		return
	}
	for _, p := range f.imports(t) {
		if p != module && !strings.HasPrefix(p, module+"/") {
			continue
		}
		if imported := path.Join(".", strings.TrimPrefix(strings.TrimPrefix(p, module), "/")); !slices.Contains(allowed, imported) {
			t.Errorf("%s: got an import of %q, want only %q", f.path, imported, allowed)
		}
	}
}

func checkConfined(t *testing.T, f sourceFile) {
	t.Helper()
	if f.isTest() {
		return
	}
	for _, p := range f.imports(t) {
		if p == "testing" || strings.HasPrefix(p, module) && isTestPackage(p) {
			t.Errorf("%s: got an import of %q, want it in tests only", f.path, p)
		}
		for _, c := range confined {
			if within(p, c.imports) && !slices.ContainsFunc(c.to, func(folder string) bool { return within(f.folder(), folder) }) {
				t.Errorf("%s: got an import of %q, want it only in %v", f.path, p, c.to)
			}
		}
	}
}

func checkForbidden(t *testing.T, f sourceFile) {
	t.Helper()
	if f.isTest() {
		return
	}
	for _, p := range f.imports(t) {
		for _, row := range forbidden {
			if p == row.imports && slices.Contains(row.in, f.folder()) {
				t.Errorf("%s: got an import of %q, want none in package %q", f.path, p, f.folder())
			}
		}
	}
}

// checkTenant finds methods of store.Team that take a team: its data must be accessible through its
// own value alone.
func checkTenant(t *testing.T, positions *token.FileSet, f sourceFile) {
	t.Helper()
	for _, declaration := range f.tree.Decls {
		fn, ok := declaration.(*ast.FuncDecl)
		if !ok || receiver(fn) != "Team" {
			continue
		}
		ast.Inspect(fn.Type.Params, func(n ast.Node) bool {
			if selector, ok := n.(*ast.SelectorExpr); ok && selector.Sel.Name == "TeamID" {
				t.Errorf("%s: got a method of Team that takes a team, want one for its own", positions.Position(fn.Pos()))
			}
			return true
		})
	}
}

// checkNoAudit finds audit entries that are not written by a use case.
func checkNoAudit(t *testing.T, positions *token.FileSet, f sourceFile) {
	t.Helper()
	ast.Inspect(f.tree, func(n ast.Node) bool {
		if literal, ok := n.(*ast.CompositeLit); ok {
			if selector, ok := literal.Type.(*ast.SelectorExpr); ok && selector.Sel.Name == "AuditEntry" {
				t.Errorf("%s: got an audit entry in a front end, want a use case in internal/service", positions.Position(n.Pos()))
			}
		}
		return true
	})
}

// within reports whether a path is parent or below it.
func within(p, parent string) bool {
	return p == parent || strings.HasPrefix(p, parent+"/")
}

// sentenceEnd matches a full stop, but not the dot inside a name or number.
var sentenceEnd = regexp.MustCompile(`[.!?](\s|$)`)

// checkDocs requires one comment per package that starts as godoc expects and has at
// least two sentences: what the package does, and what it leaves to others.
func checkDocs(t *testing.T, files []sourceFile) {
	t.Helper()
	docs := make(map[string][]string) // by folder
	names := make(map[string]string)
	for _, f := range files {
		name := f.tree.Name.Name
		// A test file may contain the comment only if there is no other file.
		if _, known := names[f.folder()]; !known || !strings.HasSuffix(f.path, "_test.go") {
			names[f.folder()] = strings.TrimSuffix(name, "_test")
		}
		if f.tree.Doc != nil && f.tree.Doc.Text() != "" {
			docs[f.folder()] = append(docs[f.folder()], f.tree.Doc.Text())
		}
	}
	for folder, name := range names {
		opening := "Package " + name + " "
		if name == "main" {
			opening = "Command " + path.Base(folder) + " "
		}
		if len(docs[folder]) != 1 {
			t.Errorf("%s: got %d package comments, want 1", folder, len(docs[folder]))
			continue
		}
		doc := docs[folder][0]
		if !strings.HasPrefix(doc, opening) {
			t.Errorf("%s: got a package comment that begins %.30q, want %q", folder, doc, opening)
		}
		if n := len(sentenceEnd.FindAllString(doc, -1)); n < 2 {
			t.Errorf("%s: got a package comment of %d sentence, want what it does and what it leaves to others", folder, n)
		}
	}
}

// checkCalls finds t.Skip, and time.Sleep in files that do not use the fake clock of
// testing/synctest.
func checkCalls(t *testing.T, positions *token.FileSet, f sourceFile) {
	t.Helper()
	bubbles := slices.Contains(f.imports(t), "testing/synctest")
	ast.Inspect(f.tree, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		switch callee(call) {
		case "time.Sleep":
			if !bubbles {
				t.Errorf("%s: got a call of time.Sleep, want a test that waits for what it needs", positions.Position(call.Pos()))
			}
		case "t.Skip", "t.Skipf", "t.SkipNow", "b.Skip", "b.Skipf", "b.SkipNow", "tb.Skip", "tb.Skipf", "tb.SkipNow":
			// The corpus is not part of the repository; make lists what was skipped
			// without it.
			if f.folder() != "internal/corpustest" {
				t.Errorf("%s: got a skipped test, want one that runs or none", positions.Position(call.Pos()))
			}
		}
		return true
	})
}

// callee returns "x.F" for a call of F on the plain name x, else "".
func callee(call *ast.CallExpr) string {
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	x, ok := selector.X.(*ast.Ident)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%s.%s", x.Name, selector.Sel.Name)
}
