package api

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd/internal/musttest"
)

// TestRoutesAreDocumented checks that the routes and the operations of the OpenAPI document are the
// same, with the same scopes.
func TestRoutesAreDocumented(t *testing.T) {
	t.Parallel()
	a := musttest.Get(New(Options{BaseURL: "http://api.example/api"}))(t)
	all := musttest.Get(a.routes())(t)
	var routes []string
	for _, r := range all {
		if r.path == "/docs/{file}" {
			continue // a part of the page
		}
		routes = append(routes, strings.TrimSpace(r.name()+" "+string(r.scope)))
	}
	encoded := musttest.Get(Document("http://api.example/api"))(t)
	type security []map[string][]string
	var document struct {
		Security security
		Paths    map[string]map[string]json.RawMessage
	}
	musttest.Do(t, json.Unmarshal(encoded, &document))
	var documented []string
	for path, operations := range document.Paths {
		for method, raw := range operations {
			if method == "parameters" {
				continue
			}
			var operation struct {
				Security *security
				Scope    string `json:"x-scope"`
			}
			musttest.Do(t, json.Unmarshal(raw, &operation))
			needed := document.Security
			if operation.Security != nil {
				needed = *operation.Security
			}
			line := strings.ToUpper(method) + " " + path
			if len(needed) > 0 {
				line += " " + cmp.Or(operation.Scope, "read")
			}
			documented = append(documented, line)
		}
	}
	slices.Sort(routes)
	slices.Sort(documented)
	if diff := gocmp.Diff(routes, documented); diff != "" {
		t.Errorf("routes (-) and document (+) differ:\n%s", diff)
	}
}
