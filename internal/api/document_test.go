package api_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"

	"github.com/dmarcd/dmarcd/internal/api"
	"github.com/dmarcd/dmarcd/internal/api/apitest"
)

func TestDocumentIsOpenAPI31(t *testing.T) {
	if testing.Short() {
		return // takes seconds of processor time
	}
	t.Parallel()
	encoded, err := api.Document("https://dmarc.example/api")
	if err != nil {
		t.Fatalf("Document: %v", err)
	}
	doc, err := libopenapi.NewDocument(encoded)
	if err != nil {
		t.Fatalf("read the document: %v", err)
	}
	if got := doc.GetVersion(); !strings.HasPrefix(got, "3.1.") {
		t.Errorf("version of OpenAPI: got %q want 3.1", got)
	}
	v, errs := validator.NewValidator(doc)
	if len(errs) > 0 {
		t.Fatalf("read the document: %v", errs)
	}
	if ok, problems := v.ValidateDocument(); !ok {
		t.Errorf("document: got %v want it valid", problems)
	}
}

func TestDocumentNamesTheServer(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, baseURL, want string }{
		{name: "with a path", baseURL: "https://dmarc.example/api", want: "https://dmarc.example/api"},
		{name: "with a trailing slash", baseURL: "https://dmarc.example/api/", want: "https://dmarc.example/api"},
		{name: "at the root", baseURL: "http://127.0.0.1:9000/", want: "http://127.0.0.1:9000"},
		{name: "without a path", baseURL: "http://127.0.0.1:9000", want: "http://127.0.0.1:9000"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			encoded, err := api.Document(tt.baseURL)
			if err != nil {
				t.Fatalf("Document: %v", err)
			}
			var doc struct {
				Servers    []struct{ URL string }
				Components struct {
					Headers struct {
						Location struct{ Example string }
					}
				}
			}
			if err := json.Unmarshal(encoded, &doc); err != nil {
				t.Fatalf("read the document: %v", err)
			}
			if len(doc.Servers) != 1 || doc.Servers[0].URL != tt.want {
				t.Errorf("servers: got %v want only %s", doc.Servers, tt.want)
			}
			if got, want := doc.Components.Headers.Location.Example, tt.want+"/domains/example.com"; got != want {
				t.Errorf("example of Location: got %q want %q", got, want)
			}
		})
	}
}

func TestDocumentRejectsRelativeURL(t *testing.T) {
	t.Parallel()
	for _, baseURL := range []string{"", "/api", "dmarc.example/api", "https:///api", "https://dmarc.example:port/"} {
		if doc, err := api.Document(baseURL); err == nil {
			t.Errorf("Document(%q): got %d bytes want an error", baseURL, len(doc))
		}
	}
}

// TestDocumentPreservesOrder holds the order of openapi.yaml, which is the one in
// which people read.
func TestDocumentPreservesOrder(t *testing.T) {
	t.Parallel()
	encoded, err := api.Document("https://dmarc.example/api")
	if err != nil {
		t.Fatalf("Document: %v", err)
	}
	rest := string(encoded)
	for _, key := range []string{
		`"openapi"`, `"info"`, `"servers"`, `"/domains"`, `"/domains/{domain}"`, `"/domains/{domain}/verify"`,
		`"/domains/{domain}/checks"`, `"/domains/{domain}/checks/latest"`, `"/domains/{domain}/setup"`, `"/events"`, `"/reports"`, `"/reports/{domain}"`,
		`"/insights/reports"`, `"/insights/reports/{id}"`, `"/insights/rejected"`, `"/insights/daily"`, `"/insights/senders"`, `"components"`,
	} {
		_, after, found := strings.Cut(rest, key)
		if !found {
			t.Fatalf("document: %s is missing or comes too early", key)
		}
		rest = after
	}
}

// TestDocumentDescribesWhatContainsItself checks that a tree of SPF terms is
// compared with the document at every depth.
func TestDocumentDescribesWhatContainsItself(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		return
	}
	encoded, err := api.Document("https://dmarc.example/api")
	if err != nil {
		t.Fatalf("Document: %v", err)
	}
	var doc struct {
		Components struct {
			Examples struct {
				StoredCheck struct{ Value map[string]any } `json:"CheckExample"`
			}
		}
	}
	if err := json.Unmarshal(encoded, &doc); err != nil {
		t.Fatalf("read the document: %v", err)
	}
	check := doc.Components.Examples.StoredCheck.Value
	term := func(cost any, terms ...any) map[string]any {
		return map[string]any{
			"term": "include:a.example", "target": "a.example", "provider": nil, "cost": cost, "lookups": 1,
			"note": nil, "record": nil, "terms": append([]any{}, terms...),
		}
	}
	v, err := apitest.New(encoded)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	for _, tt := range []struct {
		name string
		tree map[string]any
		want bool
	}{
		{name: "as described", tree: term(1, term(1, term(1))), want: true},
		{name: "a text for a number, at the top", tree: term("1")},
		{name: "a text for a number, below", tree: term(1, term(1, term("1")))},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			changed := maps.Clone(check)
			spf := maps.Clone(check["spf"].(map[string]any))
			spf["tree"], changed["spf"] = []any{tt.tree}, spf
			body, err := json.Marshal(changed)
			if err != nil {
				t.Fatalf("encode the check: %v", err)
			}
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https://dmarc.example/api/domains/example.com/checks/latest", nil)
			r.Header.Set("Authorization", "Bearer dmd_0")
			err = v.Check(r, http.StatusOK, http.Header{"Content-Type": {"application/json"}, "Etag": {`"1"`}}, body)
			if got := err == nil; got != tt.want {
				t.Errorf("Check: got %v want it accepted: %t", err, tt.want)
			}
		})
	}
}
