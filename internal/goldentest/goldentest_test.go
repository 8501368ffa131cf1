package goldentest_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/dmarcd/dmarcd/internal/goldentest"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

func TestCheckDifference(t *testing.T) {
	t.Parallel()
	const base = `{"name": "a", "at": {"x": 1, "y": 2}, "list": [{"n": 1, "m": 2}], "empty": []}`
	for _, tt := range []struct{ name, got, want string }{
		{"nothing", base, `{}`},
		{"a value", `{"name": "b", "at": {"x": 1, "y": 9007199254740993}, "list": [{"n": 1, "m": 2}], "empty": []}`, `{"at.y": 9007199254740993, "name": "b"}`},
		{"a value of another type", `{"name": 1, "at": [], "list": {}, "empty": null}`, `{"at": [], "empty": null, "list": {}, "name": 1}`},
		{"more and less members", `{"at": {"z": 3}, "list": [{"n": 1, "m": 2}], "empty": []}`, `{"at.x": null, "at.y": null, "at.z": 3, "name": null}`},
		{"longer lists", `{"name": "a", "at": {"x": 1, "y": 2}, "list": [{"n": 1, "m": 2}, {"n": 1, "m": 2}, {"n": 3, "m": 2}], "empty": [1]}`, `{"empty": [1], "len(list)": 3, "list[2].n": 3}`},
		{"no element", `{"name": "a", "at": {"x": 1, "y": 2}, "list": [], "empty": []}`, `{"list": []}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var want bytes.Buffer
			musttest.Do(t, json.Indent(&want, []byte(tt.want+"\n"), "", "  "))
			file := filepath.Join(t.TempDir(), "golden.json")
			musttest.Do(t, os.WriteFile(file, want.Bytes(), 0o600))
			goldentest.CheckDifference(t, file, json.RawMessage(base), json.RawMessage(tt.got))
		})
	}
}
