// Package goldentest compares results of tests with golden files. With the flag -update,
// go test rewrites the files.
package goldentest

import (
	"encoding/json"
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd/internal/musttest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// Check compares got with a file.
func Check(t testing.TB, file, got string) {
	t.Helper()
	if *update {
		musttest.Do(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want := musttest.Get(os.ReadFile(file))(t)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s is different; -update rewrites it (-want +got):\n%s", file, diff)
	}
}

// CheckJSON compares the indented JSON of a value with a file.
func CheckJSON(t testing.TB, file string, value any) {
	t.Helper()
	got := musttest.Get(json.MarshalIndent(value, "", "  "))(t)
	Check(t, file, string(got)+"\n")
}
