package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/dmarcd/dmarcd/internal/goldentest"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

// TestGenerated renders openapi.yaml as JSON, and compares it with the file that is embedded.
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
	goldentest.Check(t, "openapi.json", string(musttest.Get(renderJSON(root))(t)))
}

// resolveAliases replaces aliases and merge keys (<<) with what they refer to.
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

// renderJSON converts the document to JSON.
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

// encodeNode writes node as JSON. Decoding to Go maps would be shorter, but would sort the
// members, and the document is also for human readers.
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

// nodeMember returns the value of a key of a mapping, nil if it is missing.
func nodeMember(mapping *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	return nil
}
