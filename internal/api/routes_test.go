package api

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd/internal/musttest"
)

// TestRoutesAreDocumented holds the list of routes and the OpenAPI document to
// each other, both ways, with the scope that a token needs.
func TestRoutesAreDocumented(t *testing.T) {
	t.Parallel()
	a := musttest.Get(New(Options{BaseURL: "http://api.example/api"}))(t)
	all := musttest.Get(a.routes())(t)
	var routes []string
	for _, r := range all {
		if r.path == "/docs/style.css" {
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
			var operation struct{ Security *security }
			musttest.Do(t, json.Unmarshal(raw, &operation))
			needed := document.Security
			if operation.Security != nil {
				needed = *operation.Security
			}
			line := strings.ToUpper(method) + " " + path
			if len(needed) > 0 {
				line += " " + needed[0]["token"][0]
			}
			documented = append(documented, line)
		}
	}
	slices.Sort(routes)
	slices.Sort(documented)
	if diff := cmp.Diff(routes, documented); diff != "" {
		t.Errorf("routes (-) and document (+) differ:\n%s", diff)
	}
}
