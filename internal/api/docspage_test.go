package api

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// docsServer returns a handler that serves the page and its style sheet.
func docsServer(t *testing.T, baseURL string) http.Handler {
	t.Helper()
	docs, err := newDocumentation(baseURL)
	if err != nil {
		t.Fatalf("newDocumentation(%q): %v", baseURL, err)
	}
	pages := map[string]func(*call) error{"/api/docs": docs.page, "/api/docs/style.css": docs.style}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := pages[r.URL.Path](&call{w: w, r: r}); err != nil {
			t.Error(err)
		}
	})
}

func fetchDocs(t *testing.T, server http.Handler, path string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	server.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	if w.Code != http.StatusOK {
		t.Fatalf("%s: got status %d want 200", path, w.Code)
	}
	return w
}

// docsAt returns the page of the API at a base URL.
func docsAt(t *testing.T, baseURL string) string {
	t.Helper()
	return fetchDocs(t, docsServer(t, baseURL), "/api/docs").Body.String()
}

func TestDocsHeaders(t *testing.T) {
	t.Parallel()
	server := docsServer(t, "https://dmarc.example/api")
	for _, tt := range []struct{ name, path, contentType string }{
		{name: "page", path: "/api/docs", contentType: "text/html; charset=utf-8"},
		{name: "style sheet", path: "/api/docs/style.css", contentType: "text/css; charset=utf-8"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := fetchDocs(t, server, tt.path)
			for header, want := range map[string]string{
				"Content-Type": tt.contentType,
				"Content-Security-Policy": "default-src 'none'; style-src 'self'; base-uri 'none'; " +
					"form-action 'none'; frame-ancestors 'none'",
				"X-Content-Type-Options": "nosniff",
				"Referrer-Policy":        "no-referrer",
			} {
				if got := w.Header().Get(header); got != want {
					t.Errorf("%s: got %q want %q", header, got, want)
				}
			}
			if w.Body.Len() == 0 {
				t.Error("body: got nothing")
			}
		})
	}
}

// TestDocsObeyPolicy demands that the page holds nothing that its own
// Content-Security-Policy forbids.
func TestDocsObeyPolicy(t *testing.T) {
	t.Parallel()
	server := docsServer(t, "https://dmarc.example/api")
	for node := range parseDocs(t, fetchDocs(t, server, "/api/docs").Body.String()).Descendants() {
		switch node.Data {
		case "script", "style", "img", "iframe", "form", "base", "object":
			t.Errorf("got an element %s, want none", node.Data)
		}
		for _, a := range node.Attr {
			if a.Key == "style" || strings.HasPrefix(a.Key, "on") {
				t.Errorf("got an attribute %s=%q of %s, want none", a.Key, a.Val, node.Data)
			}
		}
		if node.Type == html.ElementNode && node.Data == "link" && docsAttribute(node, "href") != "docs/style.css" {
			t.Errorf("link: got %q want docs/style.css", docsAttribute(node, "href"))
		}
	}
	if style := fetchDocs(t, server, "/api/docs/style.css").Body.String(); strings.Contains(style, "url(") || strings.Contains(style, "@import") {
		t.Error("the style sheet loads something, want nothing")
	}
}

func TestDocsShowEveryOperation(t *testing.T) {
	t.Parallel()
	doc, err := Document("https://dmarc.example/api")
	if err != nil {
		t.Fatalf("Document: %v", err)
	}
	var spec struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(doc, &spec); err != nil {
		t.Fatalf("read the document: %v", err)
	}
	articles := map[string]string{} // by id
	for node := range parseDocs(t, docsAt(t, "https://dmarc.example/api")).Descendants() {
		if node.Data == "article" {
			articles[docsAttribute(node, "aria-labelledby")] = docsText(node)
		}
	}
	examplePath := strings.NewReplacer("/questions/{key}", "/questions/sendgrid:rest", "/domains/{domain}/senders/{key}", "/domains/example.com/senders/AS64496:yours", "{domain}", "example.com", "{key}", "AS64496", "/reports/{id}", "/reports/rep_5k2w9x0c7h1f", "/rejected/{id}", "/rejected/rej_5k2w9x0d3m8a",
		"/webhooks/{id}", "/webhooks/whk_2m7x0b1f3k9q", "{delivery}", "dlv_1k4c8z0p5w2d", "/alerts/{id}", "/alerts/4711")
	shown := 0
	for path, methods := range spec.Paths {
		for method, raw := range methods {
			if method == "parameters" {
				continue
			}
			var operation struct {
				OperationID string
				Summary     string
				Responses   map[string]any
			}
			if err := json.Unmarshal(raw, &operation); err != nil {
				t.Fatalf("read %s %s: %v", method, path, err)
			}
			shown++
			article := articles[operation.OperationID]
			for _, want := range []string{
				operation.Summary,
				strings.ToUpper(method) + " " + path,
				"'https://dmarc.example/api" + examplePath.Replace(path) + "'",
			} {
				if !strings.Contains(article, want) {
					t.Errorf("article %s: got %q want it to hold %q", operation.OperationID, article, want)
				}
			}
			for status := range operation.Responses {
				if !strings.Contains(article, "HTTP/1.1 "+status+" ") {
					t.Errorf("article %s: no example of status %s", operation.OperationID, status)
				}
			}
		}
	}
	if shown != 55 {
		t.Errorf("operations: got %d want 55", shown)
	}
}

func TestDocsCurl(t *testing.T) {
	t.Parallel()
	page := docsText(parseDocs(t, docsAt(t, "https://dmarc.example/it's/")))
	want := `curl -X POST 'https://dmarc.example/it'\''s/domains' \
  -H "Authorization: Bearer $DMARCD_TOKEN" \
  -H 'Content-Type: application/json' \
  -d '{"domain":"example.com"}'`
	if !strings.Contains(page, want) {
		t.Errorf("page: want it to hold\n%s", want)
	}
	want = `curl -X POST 'https://dmarc.example/it'\''s/reports' \
  -H "Authorization: Bearer $DMARCD_TOKEN" \
  -H 'Content-Type: application/octet-stream' \
  --data-binary '@report.xml.gz'`
	if !strings.Contains(page, want) {
		t.Errorf("page: want it to hold\n%s", want)
	}
	if want := "curl 'https://dmarc.example/it'\\''s/openapi.json'\n"; !strings.Contains(page, want) {
		t.Errorf("page: want it to hold a command without a token:\n%s", want)
	}
}

func TestDocsShowKindsOfMembers(t *testing.T) {
	t.Parallel()
	articles := map[string]string{} // by id
	for node := range parseDocs(t, docsAt(t, "https://dmarc.example/api")).Descendants() {
		if node.Data == "article" {
			articles[docsAttribute(node, "aria-labelledby")] = docsText(node)
		}
	}
	for _, tt := range []struct{ name, article, want string }{
		{name: "one of two", article: "schema-KeptCheck", want: "next_stepFinding or null"},
		{name: "a list of the same", article: "schema-CheckSPFTerm", want: "termsarray of CheckSPFTerm"},
		{name: "a schema of words", article: "schema-EventKind", want: `"record.appeared", "record.changed"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := articles[tt.article]; !strings.Contains(got, tt.want) {
				t.Errorf("article %s: got %q want it to hold %q", tt.article, got, tt.want)
			}
		})
	}
}

func TestDocsLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	ids := map[string]int{}
	var links []string
	for node := range parseDocs(t, docsAt(t, "https://dmarc.example/api")).Descendants() {
		if id := docsAttribute(node, "id"); id != "" {
			ids[id]++
		}
		if target, ok := strings.CutPrefix(docsAttribute(node, "href"), "#"); ok {
			links = append(links, target)
		}
	}
	for id, n := range ids {
		if n != 1 {
			t.Errorf("id %q: got %d elements want 1", id, n)
		}
	}
	if len(links) < 40 {
		t.Errorf("links inside the page: got %d want 40 or more", len(links))
	}
	for _, link := range links {
		if ids[link] == 0 {
			t.Errorf("link #%s: has no target", link)
		}
	}
}

func TestDocsEscape(t *testing.T) {
	t.Parallel()
	page := docsAt(t, `https://dmarc.example/<script>alert("1")</script>`)
	if strings.Contains(page, "<script") {
		t.Error("page: got a script element from the base URL, want it escaped")
	}
	if !strings.Contains(docsText(parseDocs(t, page)), `https://dmarc.example/<script>alert("1")</script>/domains`) {
		t.Error("page: want the base URL as text")
	}
}

func TestDocsReadDescriptions(t *testing.T) {
	t.Parallel()
	// A mark that is left over belongs to CommonMark that the page does not read.
	marks := regexp.MustCompile("`|\\*\\*|^#|^- |\\]\\(")
	items := 0
	for node := range parseDocs(t, docsAt(t, "https://dmarc.example/api")).Descendants() {
		switch node.Data {
		case "li":
			if node.Parent.Data == "ol" {
				items++
			}
		case "p", "summary", "h2":
			if mark := marks.FindString(docsText(node)); mark != "" {
				t.Errorf("%s: got the mark %q in %q want it read", node.Data, mark, docsText(node))
			}
		}
	}
	if items != 12 {
		t.Errorf("items of the order of refusals: got %d want 12", items)
	}
}

func parseDocs(t *testing.T, page string) *html.Node {
	t.Helper()
	node, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatalf("parse the page: %v", err)
	}
	return node
}

func docsAttribute(node *html.Node, key string) string {
	for _, a := range node.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

func docsText(node *html.Node) string {
	var b strings.Builder
	for n := range node.Descendants() {
		if n.Type == html.TextNode {
			b.WriteString(n.Data)
		}
	}
	return b.String()
}
