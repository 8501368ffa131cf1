package tenantsql_test

import (
	"bufio"
	"context"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/test/tenantsql"
)

const (
	root     = "../.."
	storeDir = root + "/internal/store"
)

// statement is a line that storetest wrote.
type statement struct {
	SQL       string   `json:"sql"`
	Functions []string `json:"functions"` // the innermost first
}

// TestEveryQueryNamesTheTeam parses all statements that the tests of the store ran on
// PostgreSQL.
func TestEveryQueryNamesTheTeam(t *testing.T) {
	t.Parallel()
	migrations, err := filepath.Glob(storeDir + "/migrations/postgres/*.sql")
	if err != nil || len(migrations) == 0 {
		t.Fatalf("found %d migrations, %v", len(migrations), err)
	}
	var ddl strings.Builder
	for _, name := range migrations {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		ddl.Write(content)
	}
	schema, err := tenantsql.ReadSchema(ddl.String())
	if err != nil {
		t.Fatal(err)
	}
	statements := recorded(t)
	ran := make(map[string]bool)
	tenant := 0
	reported := make(map[string]bool)
	for _, s := range statements {
		for _, function := range s.Functions {
			ran[function] = true
		}
		if slices.Contains(s.Functions, "tx.checkGrant") && !slices.Contains(s.Functions, "tx.checkToken") {
			continue // the session of the actor belongs to a user, and not to the team that it shows
		}
		view := tenantsql.System
		if slices.ContainsFunc(s.Functions, ofTeam) {
			view = tenantsql.Tenant
			tenant++
		}
		problems, err := schema.Check(s.SQL, view)
		if err != nil {
			problems = []string{err.Error()}
		}
		text := strings.Join(problems, "; ") + " in " + strings.Join(strings.Fields(s.SQL), " ")
		if len(problems) > 0 && !reported[text] {
			reported[text] = true
			t.Errorf("%s: %s", strings.Join(s.Functions, " < "), text)
		}
	}
	t.Logf("%d statements, %d of teams", len(statements), tenant)
	for _, function := range withSQL(t) {
		if !ran[function] {
			t.Errorf("no test runs the statements of %s on PostgreSQL", function)
		}
	}
}

// ofTeam reports whether a function works for one team. The exceptions run statements for
// others.
func ofTeam(function string) bool {
	receiver, name, _ := strings.Cut(function, ").")
	switch receiver {
	case "(*Team":
		return !slices.Contains([]string{"tx", "retryTx", "audited", "exec", "writer"}, name)
	case "(*reception", "(*ahead", "(*attribution", "(*domainLocks", "(*chunks":
		return true
	}
	return false
}

// recorded returns the statements that the tests of the store run on PostgreSQL. They
// are in the file named by DMARCD_TEST_STATEMENTS where `make test` ran those tests
// already.
func recorded(t *testing.T) []statement {
	t.Helper()
	file := os.Getenv("DMARCD_TEST_STATEMENTS")
	if file == "" {
		file = filepath.Join(t.TempDir(), "statements")
		runStore(t, file)
	}
	return read(t, file)
}

// runStore runs the tests of the store, which write their statements to the file.
func runStore(t *testing.T, file string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, "go", "test", "-count=1", "-timeout=30m", "-skip", "/^sqlite$|//^sqlite$", "./internal/store")
	command.Dir = root
	command.Env = append(os.Environ(), "DMARCD_TEST_STATEMENTS="+file)
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("the tests of the store: %v\n%s", err, out)
	}
}

// read reads a file of statements.
func read(t *testing.T, file string) []statement {
	t.Helper()
	opened, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = opened.Close() }() // it is only read
	var all []statement
	lines := bufio.NewScanner(opened)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var s statement
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			t.Fatalf("read %q: %v", lines.Text(), err)
		}
		all = append(all, s)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// withoutSQL are functions that run statements of others, on SQLite or a cluster alone, or on whole
// tables; removeOthers wants a day of several blocks, which no test has on PostgreSQL yet. replace is that
// of secrets, which has type parameters.
var withoutSQL = []string{
	"(*Store).exec", "(*Store).eachTeam", "(*Store).teamIDs", "reads.QueryRow", "reads.longQueryRow", "reads.Query", "(*Team).exec", "(*Team).change", "sumCounts",
	"(*Store).freePages", "(*Store).Reclaim", "(*Store).Backup", "removeSpool", "(*rollupBuild).removeOthers", "(*Team).removeFrozen",
	"(*Store).analyze", "(*Store).checkCluster", "(*Store).distribute", "(*Store).isDistributed", "(*Store).rejectWorker", "tx.withoutReferences",
	"(*Store).emptyLog", "(*Store).SwitchProof", "replace",
}

// withSQL returns the functions of the store that run a statement, as the compiler names
// them.
func withSQL(t *testing.T) []string {
	t.Helper()
	packages, err := parser.ParseDir(token.NewFileSet(), storeDir, func(file fs.FileInfo) bool {
		return !strings.HasSuffix(file.Name(), "_test.go")
	}, 0)
	if err != nil {
		t.Fatal(err)
	}
	var functions []string
	for _, file := range packages["store"].Files {
		for _, declared := range file.Decls {
			function, ok := declared.(*ast.FuncDecl)
			if !ok {
				continue
			}
			runs := false
			ast.Inspect(function, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				runs = runs || ok && runsSQL(call)
				return true
			})
			if name := nameOf(function); runs && !slices.Contains(withoutSQL, name) {
				functions = append(functions, name)
			}
		}
	}
	slices.Sort(functions)
	return functions
}

func runsSQL(call *ast.CallExpr) bool {
	function := call.Fun
	if instance, ok := function.(*ast.IndexListExpr); ok {
		function = instance.X
	}
	f, ok := function.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	if x, ok := f.X.(*ast.Ident); ok && x.Name == "db" {
		return slices.Contains([]string{"Collect", "CollectMap", "InsertReturning", "Row"}, f.Sel.Name)
	}
	return slices.Contains([]string{"Exec", "ExecOr", "InsertMany", "Query", "QueryRow", "eachTeam", "exec", "longQueryRow", "teamIDs"}, f.Sel.Name)
}

func nameOf(function *ast.FuncDecl) string {
	if function.Recv == nil {
		return function.Name.Name
	}
	switch receiver := function.Recv.List[0].Type.(type) {
	case *ast.StarExpr:
		if name, ok := receiver.X.(*ast.Ident); ok {
			return "(*" + name.Name + ")." + function.Name.Name
		}
	case *ast.Ident:
		return receiver.Name + "." + function.Name.Name
	}
	return function.Name.Name
}
