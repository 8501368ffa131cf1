package api_test

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestDocumentHasOneStyle holds that words of enumerations are written alike, that every list has a
// limit and a cursor, and that a TLS report has no messages.
func TestDocumentHasOneStyle(t *testing.T) {
	t.Parallel()
	d := readOpenAPI(t)
	schemas := d.root["components"].(node)["schemas"].(node)
	// Kinds of events are of two words, ids of findings and actions have hyphens; sorting in the
	// other order begins with one, a grade is a letter, and only the interface has an empty policy.
	word := regexp.MustCompile(`^[a-z0-9]+(_[a-z0-9]+)*(\.[a-z0-9_]+)?$|^[A-F]\+?$|^-?[a-z]+$|^TXT$`)
	var walk func(at string, value any)
	walk = func(at string, value any) {
		switch value := value.(type) {
		case node:
			words, _ := value["enum"].([]any)
			for _, allowed := range words {
				if text, ok := allowed.(string); ok && !word.MatchString(text) && !strings.HasSuffix(at, ".id") && at != "schemas.Domain.properties.dmarc_policy" {
					t.Errorf("%s: the word %q is not written as the others", at, text)
				}
			}
			for name, member := range value {
				if name != "example" && name != "examples" {
					walk(at+"."+name, member)
				}
			}
		case []any:
			for _, member := range value {
				walk(at, member)
			}
		}
	}
	walk("schemas", schemas)
	walk("parameters", d.root["components"].(node)["parameters"])
	walk("paths", d.root["paths"])

	for _, name := range slices.Sorted(maps.Keys(schemas)) {
		schema := schemas[name].(node)
		properties, _ := schema["properties"].(node)
		if strings.HasSuffix(name, "Page") && (properties["items"] == nil || properties["next"] == nil) {
			t.Errorf("%s: a page has items and next", name)
		}
		if strings.HasPrefix(name, "TLS") && properties["messages"] != nil {
			t.Errorf("%s: a TLS report counts sessions, not messages", name)
		}
	}
	for _, o := range d.operations() {
		names := map[any]bool{}
		for _, parameter := range o.parameters {
			names[parameter["name"]] = true
		}
		// A whole export has no limit.
		if names["after"] && !names["limit"] && o.path != "/insights/records" {
			t.Errorf("%s %s: a list with a cursor has a limit", o.method, o.path)
		}
	}
}
