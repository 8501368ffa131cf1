package api_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"

	"github.com/dmarcd/dmarcd/internal/api"
)

func TestDocumentIsOpenAPI31(t *testing.T) {
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

func TestDocumentRefusesRelativeURL(t *testing.T) {
	t.Parallel()
	for _, baseURL := range []string{"", "/api", "dmarc.example/api", "https:///api", "https://dmarc.example:port/"} {
		if doc, err := api.Document(baseURL); err == nil {
			t.Errorf("Document(%q): got %d bytes want an error", baseURL, len(doc))
		}
	}
}

// TestDocumentKeepsOrder holds the order of openapi.yaml, which is the one in
// which people read.
func TestDocumentKeepsOrder(t *testing.T) {
	t.Parallel()
	encoded, err := api.Document("https://dmarc.example/api")
	if err != nil {
		t.Fatalf("Document: %v", err)
	}
	rest := string(encoded)
	for _, key := range []string{
		`"openapi"`, `"info"`, `"servers"`, `"/domains"`, `"/domains/{domain}"`, `"/domains/{domain}/verify"`,
		`"/domains/{domain}/checks"`, `"/domains/{domain}/checks/latest"`, `"/domains/{domain}/setup"`, `"/events"`, `"/reports"`, `"/reports/{domain}"`, `"components"`,
	} {
		_, after, found := strings.Cut(rest, key)
		if !found {
			t.Fatalf("document: %s is missing or comes too early", key)
		}
		rest = after
	}
}
