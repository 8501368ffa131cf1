package dmarcd_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/dmarcd/dmarcd/internal/musttest"
)

// compatibilityPattern matches what a migration says about programs that do not know it.
var compatibilityPattern = regexp.MustCompile(`(?m)^UPDATE schema_compatibility SET oldest = (\d+);$`)

// TestMigrations checks that migrations are numbered one after the other, the same for both
// engines, and that each says with which programs the schema is compatible.
func TestMigrations(t *testing.T) {
	t.Parallel()
	names := make(map[string][]string)
	for _, engine := range []string{"sqlite", "postgres"} {
		files := musttest.Get(filepath.Glob("internal/store/migrations/" + engine + "/*.sql"))(t)
		for i, file := range files {
			name := filepath.Base(file)
			names[engine] = append(names[engine], name)
			if want := fmt.Sprintf("%05d_", i+1); name[:len(want)] != want {
				t.Errorf("%s: want its name to begin with %s", file, want)
			}
			if i == 0 { // it introduces the table
				continue
			}
			text := musttest.Get(os.ReadFile(file))(t)
			if !compatibilityPattern.Match(text) {
				t.Errorf("%s: want %q, with the oldest version whose programs can use the schema; see docs/operating.md", file, compatibilityPattern)
			}
		}
	}
	if !slices.Equal(names["sqlite"], names["postgres"]) {
		t.Errorf("got %v on SQLite, %v on PostgreSQL", names["sqlite"], names["postgres"])
	}
}
