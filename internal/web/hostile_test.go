package web_test

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/dmarcd/dmarcd/internal/musttest"
)

// TestPagesAreInert checks every page for the requirements of the Content-Security-Policy
// and of screen readers, with hostile text wherever it can occur.
func TestPagesAreInert(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, page := range s.allPages() {
		t.Run(page.name, func(t *testing.T) {
			body := s.get(page.user, page.path).Body.String()
			root := musttest.Get(html.Parse(strings.NewReader(body)))(t)
			d := document{ids: map[string]bool{}, labels: map[string]bool{}}
			d.collect(root)
			for node := range root.Descendants() {
				if node.Type == html.ElementNode {
					d.check(t, node)
				}
			}
		})
	}
}

// document is the state of a page check.
type document struct {
	ids, labels map[string]bool
}

func (d document) collect(root *html.Node) {
	for node := range root.Descendants() {
		if node.Data == "label" {
			d.labels[attribute(node, "for")] = true
		}
	}
}

func (d document) check(t *testing.T, node *html.Node) {
	t.Helper()
	for _, a := range node.Attr {
		switch {
		case strings.HasPrefix(a.Key, "on"), a.Key == "style":
			t.Errorf("got <%s %s=%q>, want neither handlers nor styles in a page", node.Data, a.Key, a.Val)
		case slices.Contains([]string{"href", "src", "action", "formaction"}, a.Key) && !leadsStart(a.Val):
			t.Errorf("got <%s %s=%q>, want addresses of our own", node.Data, a.Key, a.Val)
		case a.Key == "id" && d.ids[a.Val]:
			t.Errorf("got the id %q twice, want it once", a.Val)
		case a.Key == "id":
			d.ids[a.Val] = true
		}
	}
	switch node.Data {
	case "script":
		if attribute(node, "src") == "" {
			t.Error("got a script in the page, want files of our own only")
		}
	case "style", "iframe", "object", "embed", "img", "base":
		t.Errorf("got <%s>, want none", node.Data)
	case "input", "select":
		if !d.labels[attribute(node, "id")] && attribute(node, "type") != "hidden" && !inLabel(node) {
			t.Errorf("got <%s name=%q> without a label, want one", node.Data, attribute(node, "name"))
		}
	}
}

func leadsStart(address string) bool {
	return strings.HasPrefix(address, "/app/") || strings.HasPrefix(address, "#") ||
		slices.Contains([]string{"/api/docs", "https://data.example/"}, address)
}

func inLabel(node *html.Node) bool {
	for parent := range node.Ancestors() {
		if parent.Data == "label" {
			return true
		}
	}
	return false
}

func attribute(node *html.Node, key string) string {
	for _, a := range node.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}
