// Package goldentest compares results of tests with golden files. With the flag -update,
// go test rewrites the files.
package goldentest

import (
	"encoding/json"
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// Check compares got with a file.
func Check(t testing.TB, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s is different; -update rewrites it (-want +got):\n%s", file, diff)
	}
}

// CheckJSON compares the indented JSON of a value with a file.
func CheckJSON(t testing.TB, file string, value any) {
	t.Helper()
	got, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	Check(t, file, string(got)+"\n")
}
