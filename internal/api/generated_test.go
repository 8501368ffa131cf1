package api

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"os"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/dmarcd/dmarcd/internal/goldentest"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

// TestGenerated renders openapi.yaml as JSON and as a page, and compares them with the
// files that are embedded.
func TestGenerated(t *testing.T) {
	t.Parallel()
	source := musttest.Get(os.ReadFile("openapi.yaml"))(t)
	var file yaml.Node
	musttest.Do(t, yaml.Unmarshal(source, &file))
	root := file.Content[0]
	resolveAliases(root)
	if got := nodeMember(nodeMember(root, "servers").Content[0], "url").Value; got != writtenURL {
		t.Fatalf("the server of openapi.yaml: got %s want %s", got, writtenURL)
	}
	for name, render := range map[string]func(*yaml.Node) ([]byte, error){"openapi.json": renderJSON, "docs.html": renderPage} {
		got, err := render(root)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		goldentest.Check(t, name, string(got))
	}
}

// resolveAliases puts what aliases and merge keys (<<) refer to in their place.
func resolveAliases(node *yaml.Node) {
	for i := 0; i < len(node.Content); i++ {
		switch child := node.Content[i]; {
		case child.Tag == "!!merge":
			node.Content = slices.Replace(node.Content, i, i+2, node.Content[i+1].Alias.Content...)
		case child.Kind == yaml.AliasNode:
			node.Content[i] = child.Alias
		default:
			resolveAliases(child)
		}
	}
}

// renderJSON returns the document in JSON.
func renderJSON(root *yaml.Node) ([]byte, error) {
	var compact, indented bytes.Buffer
	if err := encodeNode(&compact, root); err != nil {
		return nil, err
	}
	if err := json.Indent(&indented, compact.Bytes(), "", "  "); err != nil {
		return nil, err
	}
	indented.WriteByte('\n')
	return indented.Bytes(), nil
}

//go:embed docs.html.tmpl
var docsTemplate string

// renderPage returns the document as a page.
func renderPage(root *yaml.Node) ([]byte, error) {
	root, err := expandRefs(root, root)
	if err != nil {
		return nil, err
	}
	spec := docsSpec{BaseURL: writtenURL}
	if err := root.Decode(&spec); err != nil {
		return nil, err
	}
	page, err := template.New("docs").Funcs(template.FuncMap{"anchor": anchor, "prose": prose}).Parse(docsTemplate)
	if err != nil {
		return nil, err
	}
	var html bytes.Buffer
	err = page.Execute(&html, spec)
	return html.Bytes(), err
}

// encodeNode writes node as JSON. Going by way of Go maps would be shorter, but
// would sort the members, and people read this document too.
func encodeNode(w *bytes.Buffer, node *yaml.Node) error {
	switch node.Kind {
	case yaml.MappingNode:
		w.WriteByte('{')
		for i := 0; i < len(node.Content); i += 2 {
			if i > 0 {
				w.WriteByte(',')
			}
			// A key is always a string in JSON, also one that YAML takes
			// for a number, such as a status.
			if err := encodeScalar(w, node.Content[i].Value); err != nil {
				return err
			}
			w.WriteByte(':')
			if err := encodeNode(w, node.Content[i+1]); err != nil {
				return err
			}
		}
		w.WriteByte('}')
		return nil
	case yaml.SequenceNode:
		w.WriteByte('[')
		for i, item := range node.Content {
			if i > 0 {
				w.WriteByte(',')
			}
			if err := encodeNode(w, item); err != nil {
				return err
			}
		}
		w.WriteByte(']')
		return nil
	case yaml.ScalarNode:
		var value any
		if err := node.Decode(&value); err != nil {
			return err
		}
		return encodeScalar(w, value)
	default:
		return fmt.Errorf("line %d: kind %d is not supported", node.Line, node.Kind)
	}
}

// encodeScalar writes a scalar without escaping <, > and &, which are common
// in the texts and harmless in application/json.
func encodeScalar(w *bytes.Buffer, value any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return err
	}
	w.Truncate(w.Len() - len("\n")) // which Encode adds
	return nil
}

// expandRefs returns a copy of node in which the target of every reference
// stands beside the $ref that names it. A reference to something that it is a
// part of stays as it is, so that the copy is finite.
func expandRefs(root, node *yaml.Node) (*yaml.Node, error) {
	return expandRefsWithin(root, node, nil)
}

// expandRefsWithin is expandRefs inside the targets of references.
func expandRefsWithin(root, node *yaml.Node, within []string) (*yaml.Node, error) {
	expanded := *node
	expanded.Content = make([]*yaml.Node, 0, len(node.Content))
	for i, child := range node.Content {
		part, err := expandRefsWithin(root, child, within)
		if err != nil {
			return nil, err
		}
		expanded.Content = append(expanded.Content, part)
		isRef := node.Kind == yaml.MappingNode && i%2 == 1 && node.Content[i-1].Value == "$ref"
		if !isRef || slices.Contains(within, child.Value) {
			continue
		}
		target := root
		for key := range strings.SplitSeq(strings.TrimPrefix(child.Value, "#/"), "/") {
			if target = nodeMember(target, key); target == nil {
				return nil, fmt.Errorf("line %d: %s has no target", child.Line, child.Value)
			}
		}
		if target, err = expandRefsWithin(root, target, append(slices.Clip(within), child.Value)); err != nil {
			return nil, err
		}
		expanded.Content = append(expanded.Content, target.Content...)
	}
	return &expanded, nil
}

// nodeMember returns the value of a key of a mapping, nil where it has none.
func nodeMember(mapping *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	return nil
}
