package api

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// openapiYAML is the OpenAPI document as it was written, for the server address
// that stands in it.
//
//go:embed openapi.yaml
var openapiYAML []byte

// document is the OpenAPI document of one server. It does not change once it
// was made, and is safe for concurrent use.
type document struct {
	baseURL string     // without a trailing slash
	root    *yaml.Node // the mapping at the top
	encoded []byte     // root as JSON
}

// newDocument returns the document for the API at baseURL, an absolute URL.
// The base URL takes the place of the address in openapi.yaml wherever that
// occurs: as the server and in the examples.
func newDocument(baseURL string) (*document, error) {
	base, err := url.Parse(baseURL)
	if err != nil {
		return nil, fmt.Errorf("base URL of the OpenAPI document: %w", err)
	}
	if base.Scheme == "" || base.Host == "" {
		return nil, fmt.Errorf("base URL of the OpenAPI document: %q is not absolute", baseURL)
	}
	// RFC 3986 §6.2.3: an empty path is "/". The paths of the document bring
	// their own slash, and an OpenAPI client joins the two as they stand.
	baseURL = strings.TrimSuffix(baseURL, "/")

	var file yaml.Node
	if err := yaml.Unmarshal(openapiYAML, &file); err != nil {
		return nil, fmt.Errorf("read openapi.yaml: %w", err)
	}
	root := file.Content[0]
	var written struct {
		Servers [1]struct {
			URL string `yaml:"url"`
		} `yaml:"servers"`
	}
	if err := root.Decode(&written); err != nil {
		return nil, fmt.Errorf("read the server of openapi.yaml: %w", err)
	}
	replaceText(root, written.Servers[0].URL, baseURL)

	var compact, indented bytes.Buffer
	if err := encodeNode(&compact, root); err != nil {
		return nil, fmt.Errorf("write the OpenAPI document: %w", err)
	}
	if err := json.Indent(&indented, compact.Bytes(), "", "  "); err != nil {
		return nil, fmt.Errorf("write the OpenAPI document: %w", err)
	}
	indented.WriteByte('\n')
	return &document{baseURL: baseURL, root: root, encoded: indented.Bytes()}, nil
}

// Document returns the OpenAPI 3.1 document in JSON, as the server whose API is
// at baseURL serves it. It fails where baseURL is not an absolute URL.
func Document(baseURL string) ([]byte, error) {
	doc, err := newDocument(baseURL)
	if err != nil {
		return nil, err
	}
	return doc.json(), nil
}

// json returns the document in JSON, its members in the order of openapi.yaml.
// The caller must not change the bytes.
func (d *document) json() []byte { return d.encoded }

// replaceText replaces old by replacement in every scalar below node.
func replaceText(node *yaml.Node, old, replacement string) {
	if node.Kind == yaml.ScalarNode {
		node.Value = strings.ReplaceAll(node.Value, old, replacement)
	}
	for _, child := range node.Content {
		replaceText(child, old, replacement)
	}
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
		return fmt.Errorf("line %d: aliases are not supported", node.Line)
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

// queryParameters returns the names of the query parameters of an operation, none for
// one that is not in the document.
func (d *document) queryParameters(path, method string) ([]string, error) {
	item := nodeMember(nodeMember(d.root, "paths"), path)
	if item == nil {
		return nil, nil
	}
	operation := nodeMember(item, strings.ToLower(method))
	if operation == nil {
		return nil, nil
	}
	var names []string
	for _, list := range []*yaml.Node{nodeMember(item, "parameters"), nodeMember(operation, "parameters")} {
		if list == nil {
			continue
		}
		list, err := expandRefs(d.root, list)
		if err != nil {
			return nil, err
		}
		for _, parameter := range list.Content {
			if nodeMember(parameter, "in").Value == "query" {
				names = append(names, nodeMember(parameter, "name").Value)
			}
		}
	}
	return names, nil
}
