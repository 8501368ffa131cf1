// Package goldentest compares results of tests with golden files. With the flag -update,
// go test rewrites the files.
package goldentest

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
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

// CheckDifference compares the difference between the JSON of got and that of base with a file:
// values of got by path, null for missing ones. Elements of a list beyond the end of base's are
// compared with its last one.
func CheckDifference(t testing.TB, file string, base, got any) {
	t.Helper()
	found := make(map[string]any)
	difference(found, "", decoded(t, base), decoded(t, got))
	CheckJSON(t, file, found)
}

// decoded returns the JSON of a value as maps and lists.
func decoded(t testing.TB, value any) (result any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(musttest.Get(json.Marshal(value))(t)))
	d.UseNumber()
	musttest.Do(t, d.Decode(&result))
	return result
}

// difference adds the values of got at and below path that differ from base.
func difference(found map[string]any, path string, base, got any) {
	switch base := base.(type) {
	case map[string]any:
		if got, ok := got.(map[string]any); ok {
			for name := range base {
				if _, ok := got[name]; !ok {
					got[name] = nil
				}
			}
			for name, value := range got {
				difference(found, strings.TrimPrefix(path+"."+name, "."), base[name], value)
			}
			return
		}
	case []any:
		if got, ok := got.([]any); ok && len(base) > 0 && len(got) > 0 {
			if len(got) != len(base) {
				found["len("+path+")"] = len(got)
			}
			for i, value := range got {
				difference(found, fmt.Sprintf("%s[%d]", path, i), base[min(i, len(base)-1)], value)
			}
			return
		}
	}
	if !reflect.DeepEqual(base, got) {
		found[path] = got
	}
}
