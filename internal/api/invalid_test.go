package api_test

import (
	"cmp"
	"encoding/json"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd/internal/api"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// TestInvalidRequests sends requests with several errors. All are listed, as "field code".
func TestInvalidRequests(t *testing.T) {
	t.Parallel()
	s := newService(t, storetest.SQLite(t).Open(t, store.Options{}))
	s.add("example.com")
	for _, tt := range []struct {
		method, path, body string
		want               []string
	}{
		{"GET", "/alerts?limit=0&state=x&open=maybe&from=x", "", []string{"limit invalid_input", "state invalid_input", "open invalid_input", "from invalid_input"}},
		{"GET", "/insights/reports?domain=-&from=x&to=y&kind=z", "", []string{"from invalid_input", "to invalid_input", "domain invalid_input", "kind invalid_input"}},
		{"GET", "/insights/reports?limit=1&dmd_secret=1", "", []string{" unknown_parameter"}},
		{"GET", "/events?%zz", "", []string{" invalid_input"}},
		{"POST", "/webhooks", `{"kinds":1,"domains":"x","format":5}`, []string{"url invalid_input", "kinds invalid_input", "domains invalid_input", "format invalid_input"}},
		{"POST", "/webhooks", `{"url":5,"secret":"s3cret"}`, []string{" unknown_member", "url invalid_input"}},
		{"POST", "/alerts/acknowledge", `{"through":"1","domain":"-","kind":"x"}`, []string{"through invalid_input", "domain invalid_input", "kind invalid_input"}},
		{"POST", "/domains/bulk", `[]`, []string{" invalid_input"}},
		{"POST", "/domains/bulk", `{"add":["a.example"],"delete":["b.example"]}`, []string{"add invalid_input"}},
		{"POST", "/domains/bulk", `{"add":["a.example",null]}`, []string{"add invalid_input"}},
		{"PUT", "/domains/example.com/tags", `{"tags":[null]}`, []string{"tags invalid_input"}},
		{"POST", "/webhooks", `{"url":"https://hooks.example/","kinds":[null],"domains":[null]}`, []string{"kinds invalid_input", "domains invalid_input"}},
		{"PUT", "/domains/example.com/parked", `{"parked":true,"x":1}`, []string{" unknown_member"}},
		{"PUT", "/domains/example.com/purpose", `{"domain_usage_purpose":"fun"}`, []string{"domain_usage_purpose invalid_input"}},
		{"PUT", "/alerts/rules", `{"min_level":5}`, []string{"min_level invalid_input"}},
		{"PUT", "/alerts/rules", `{"quiet_hours":{"from":"22:00","to":7}}`, []string{"quiet_hours.to invalid_input"}},
		{"PUT", "/alerts/rules", `{"quiet_hours":{"since":"22:00"}}`, []string{" unknown_member"}},
		{"POST", "/reports", "no report", []string{" no_report"}},
	} {
		r := s.request(tt.method, tt.path, strings.NewReader(tt.body))
		if tt.body != "" && tt.path != "/reports" {
			r.Header.Set("Content-Type", "application/json")
		}
		got := s.send(r)
		type invalid struct {
			Field         *string
			Code, Message string
		}
		var body struct {
			invalid
			Errors []invalid
		}
		if err := json.Unmarshal(got.body, &body); err != nil || got.status != http.StatusUnprocessableEntity {
			t.Errorf("%s %s: got %d %s, want 422", tt.method, tt.path, got.status, got.body)
			continue
		}
		var listed []string
		for _, e := range body.Errors {
			name := ""
			if e.Field != nil {
				name = *e.Field
			}
			listed = append(listed, name+" "+e.Code)
		}
		if diff := gocmp.Diff(tt.want, listed); diff != "" {
			t.Errorf("%s %s %s (-want +got):\n%s", tt.method, tt.path, tt.body, diff)
		}
		if diff := gocmp.Diff(body.Errors[0], body.invalid); diff != "" || got.header.Get("Dmarcd-Error") != body.Code {
			t.Errorf("%s %s: the first error at the top, code %s (-want +got):\n%s", tt.method, tt.path, got.header.Get("Dmarcd-Error"), diff)
		}
		if strings.Contains(string(got.body), "ecret") {
			t.Errorf("%s %s: got %s, which repeats the input", tt.method, tt.path, got.body)
		}
	}
}

// TestMissingScope tells which scope a token lacks, on the seven endpoints and on additions.
func TestMissingScope(t *testing.T) {
	t.Parallel()
	s := newService(t, storetest.SQLite(t).Open(t, store.Options{}))
	s.api = mustNew(t, newOptions(t, s.store, byWord{tokenOf(t, s.store, s.id)}))
	for _, path := range []string{"/domains", "/alerts/test"} {
		r := s.request(http.MethodPost, path, http.NoBody)
		r.Header.Set("Authorization", "Bearer read")
		got := s.send(r)
		if want := `Bearer realm="dmarcd", error="insufficient_scope", scope="write"`; got.status != http.StatusForbidden || got.header.Get("WWW-Authenticate") != want {
			t.Errorf("%s: got %d with %q, want 403 with %s", path, got.status, got.header.Get("WWW-Authenticate"), want)
		}
		if code := got.header.Get("Dmarcd-Error"); code != "insufficient_scope" {
			t.Errorf("%s: got the code %s", path, code)
		}
	}
}

// codeLiteral matches a code in the source: of a failure, of an InvalidError, or a constant.
var codeLiteral = regexp.MustCompile(`&failure\{http\.Status\w+, "([a-z_]+)"|InvalidError\{.*Code: "([a-z_]+)"|^\tcode\w+ += "([a-z_]+)"`)

// TestErrorCodesAreDocumented compares the codes in the source with those of the document: its enum
// and the table in its description.
func TestErrorCodesAreDocumented(t *testing.T) {
	t.Parallel()
	var document struct {
		Components struct {
			Schemas map[string]struct {
				Description string
				Enum        []string
			}
		}
	}
	musttest.Do(t, json.Unmarshal(musttest.Get(api.Document("https://dmarc.example/api"))(t), &document))
	documented := document.Components.Schemas["ErrorCode"]
	var table []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|").FindAllStringSubmatch(documented.Description, -1) {
		table = append(table, row[1])
	}
	if diff := gocmp.Diff(documented.Enum, table); diff != "" || !slices.IsSorted(table) {
		t.Errorf("the table is not the enum, in order (-enum +table):\n%s", diff)
	}
	used := map[string]bool{}
	for status := 400; status < 600; status++ {
		used[wire.ErrorCode(status)] = true
	}
	root := musttest.Get(filepath.Abs("../.."))(t)
	musttest.Do(t, fs.WalkDir(os.DirFS(root), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (entry.Name() == "node_modules" || path == "test" || strings.HasPrefix(path, ".") && path != ".") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		source, err := os.ReadFile(filepath.Join(root, path))
		for line := range strings.Lines(string(source)) {
			if found := codeLiteral.FindStringSubmatch(line); found != nil {
				used[cmp.Or(found[1:]...)] = true
			}
		}
		return err
	}))
	if diff := gocmp.Diff(documented.Enum, slices.Sorted(maps.Keys(used))); diff != "" {
		t.Errorf("codes (-documented +used):\n%s", diff)
	}
}
