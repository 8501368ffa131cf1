package api

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/internal/httproute"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

func fetchFile(t *testing.T, handle func(*call) error, header map[string]string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	for name, value := range header {
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	musttest.Do(t, handle(&call{w: w, r: r, params: httproute.Params{"file", "viewer.js"}}))
	return w
}

func unpacked(t *testing.T, body []byte) string {
	t.Helper()
	return string(musttest.Get(io.ReadAll(musttest.Get(gzip.NewReader(bytes.NewReader(body)))(t)))(t))
}

// TestDocumentationIsCacheable reads the document, its page and a file of the viewer, plain,
// compressed and again.
func TestDocumentationIsCacheable(t *testing.T) {
	t.Parallel()
	docs := musttest.Get(newDocumentation("https://dmarc.example/api"))(t)
	// A build without npm has no viewer.
	docs.viewer["viewer.js"] = newFile("text/javascript; charset=utf-8", nil, packFile("", []byte("viewer()")).packed)
	for name, handle := range map[string]func(*call) error{"document": docs.document, "page": docs.page, "viewer": docs.viewerFile} {
		plain := fetchFile(t, handle, nil)
		packed := fetchFile(t, handle, map[string]string{"Accept-Encoding": "gzip"})
		if plain.Code != http.StatusOK || packed.Code != http.StatusOK || plain.Body.Len() == 0 {
			t.Errorf("%s: got %d and %d with %d bytes, want 200 and a body", name, plain.Code, packed.Code, plain.Body.Len())
		}
		if got := packed.Header().Get("Content-Encoding"); got != "gzip" || plain.Header().Get("Content-Encoding") != "" {
			t.Errorf("%s: got the encoding %q, want gzip only where it is accepted", name, got)
		}
		if unpacked(t, packed.Body.Bytes()) != plain.Body.String() {
			t.Errorf("%s: the compressed body is another one", name)
		}
		again := fetchFile(t, handle, map[string]string{"If-None-Match": packed.Header().Get("ETag")})
		if again.Code != http.StatusNotModified || again.Body.Len() != 0 {
			t.Errorf("%s, again: got %d with %d bytes, want 304 without a body", name, again.Code, again.Body.Len())
		}
		if got := fetchFile(t, handle, map[string]string{"If-None-Match": `"other"`}).Code; got != http.StatusOK {
			t.Errorf("%s, another ETag: got %d, want 200", name, got)
		}
	}
}

func TestDocumentHasTheTagOfItsBaseURL(t *testing.T) {
	t.Parallel()
	one, two := musttest.Get(newDocumentation("https://one.example/api"))(t), musttest.Get(newDocumentation("https://two.example/api"))(t)
	if one.json.tag == two.json.tag {
		t.Errorf("got the ETag %s for both servers, want two", one.json.tag)
	}
}

// TestPageListsEveryOperation holds what a reader without JavaScript sees.
func TestPageListsEveryOperation(t *testing.T) {
	t.Parallel()
	docs := musttest.Get(newDocumentation("https://dmarc.example/api"))(t)
	page := fetchFile(t, docs.page, nil)
	for path, item := range musttest.Get(readDocument())(t).Paths {
		for method, o := range item.operations() {
			if want := "<code>" + method + " " + path + "</code>"; o != nil && !strings.Contains(page.Body.String(), want) {
				t.Errorf("page: no %s", want)
			}
		}
	}
	policy := page.Header().Get("Content-Security-Policy")
	if docs.hasViewer() {
		policy = strings.Replace(policy, "style-src 'self' 'unsafe-inline';", "", 1)
	}
	for _, forbidden := range []string{"unsafe", "*", "http:"} {
		if strings.Contains(policy, forbidden) {
			t.Errorf("policy: got %q, want no %s", policy, forbidden)
		}
	}
	if !strings.Contains(policy, "connect-src 'self' https://dmarc.example;") {
		t.Errorf("policy: got %q, want requests to the base URL", policy)
	}
}

func TestViewerWithoutNpm(t *testing.T) {
	t.Parallel()
	docs := musttest.Get(newDocumentation("https://dmarc.example/api"))(t)
	docs.viewer = nil
	if page := string(musttest.Get(docs.renderPage())(t)); strings.Contains(page, "<script") || !strings.Contains(page, `href="openapi.json"`) {
		t.Errorf("got %q, want a page without a script that links the document", page)
	}
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	if err := docs.viewerFile(&call{w: w, r: r, params: httproute.Params{"file", "viewer.js"}}); !errors.Is(err, errNoSuchPath) {
		t.Errorf("got %v, want %v", err, errNoSuchPath)
	}
}

// TestNamesOfComponentsDiffer checks that generators of clients can make a type of each component:
// they ignore case, and name the type of an enum after its schema and member.
func TestNamesOfComponentsDiffer(t *testing.T) {
	t.Parallel()
	var document struct {
		Components map[string]map[string]struct {
			Properties map[string]struct{ Enum []any }
		}
	}
	musttest.Do(t, json.Unmarshal(documentJSON, &document))
	seen := map[string]string{}
	add := func(name, position string) {
		name = strings.ToLower(strings.ReplaceAll(name, "_", ""))
		if other, ok := seen[name]; ok {
			t.Errorf("%s and %s have the same name", position, other)
		}
		seen[name] = position
	}
	for _, kind := range []string{"schemas", "parameters", "responses", "examples"} {
		for name, component := range document.Components[kind] {
			add(name, kind+"/"+name)
			for member, schema := range component.Properties {
				if len(schema.Enum) > 0 {
					add(name+member, kind+"/"+name+"/"+member)
				}
			}
		}
	}
}
