package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// docsSpec is what the page shows of the OpenAPI document, after expandRefs.
type docsSpec struct {
	BaseURL string `yaml:"-"`
	Info    struct {
		Title       string
		Version     string
		Summary     string
		Description string
		License     struct{ Name string }
	}
	Tags       []struct{ Name, Description string }
	Security   []map[string][]string
	Paths      ordered[docsPath]
	Components struct {
		Schemas   ordered[docsSchema]
		Headers   ordered[docsHeader]
		Responses map[string]docsResponse
	}
}

type docsPath struct {
	Parameters                    []docsParameter
	Get, Post, Put, Patch, Delete *docsOperation
}

type docsOperation struct {
	Method      string `yaml:"-"`
	Path        string `yaml:"-"`
	Scope       string `yaml:"-"` // of the token; empty where none is needed
	ID          string `yaml:"operationId"`
	Summary     string
	Description string
	Tags        []string
	Parameters  []docsParameter
	Security    *[]map[string][]string
	RequestBody *struct {
		Description string
		Content     ordered[docsContent]
	} `yaml:"requestBody"`
	Responses ordered[docsResponse]
}

type docsParameter struct {
	Name, In, Description string
	Required              bool
	Schema                docsSchema
	Example               string
}

type docsHeader struct {
	Description string
	Schema      docsSchema
	Example     string
}

type docsResponse struct {
	Description string
	Headers     ordered[docsHeader]
	Content     ordered[docsContent]
}

type docsContent struct {
	Schema   docsSchema
	Examples ordered[docsExample]
}

type docsExample struct {
	Summary string
	Value   yaml.Node
}

type docsSchema struct {
	Ref              string `yaml:"$ref"`
	Type             oneOrMore
	Format           string
	Description      string
	Enum             []any
	Minimum, Maximum *int
	ReadOnly         bool `yaml:"readOnly"`
	Required         []string
	Properties       ordered[docsSchema]
	Items            *docsSchema
	OneOf            []docsSchema `yaml:"oneOf"`
}

// Operations returns the operations that have the tag, in the order of the
// document.
func (s docsSpec) Operations(tag string) []docsOperation {
	var operations []docsOperation
	for _, path := range s.Paths {
		for _, method := range []struct {
			name      string
			operation *docsOperation
		}{
			{http.MethodGet, path.Value.Get},
			{http.MethodPost, path.Value.Post},
			{http.MethodPut, path.Value.Put},
			{http.MethodPatch, path.Value.Patch},
			{http.MethodDelete, path.Value.Delete},
		} {
			if method.operation == nil || !slices.Contains(method.operation.Tags, tag) {
				continue
			}
			operation := *method.operation
			operation.Method, operation.Path = method.name, path.Name
			operation.Parameters = slices.Concat(path.Value.Parameters, operation.Parameters)
			security := s.Security
			if operation.Security != nil {
				security = *operation.Security
			}
			if len(security) > 0 {
				operation.Scope = strings.Join(security[0]["token"], ", ")
			}
			operations = append(operations, operation)
		}
	}
	return operations
}

// Elsewhere returns the responses that belong to no operation, by their status.
func (s docsSpec) Elsewhere() ordered[docsResponse] {
	return ordered[docsResponse]{
		{Name: "404", Value: s.Components.Responses["PathNotFound"]},
		{Name: "405", Value: s.Components.Responses["MethodNotAllowed"]},
	}
}

// Curl returns a command that calls the operation, ready for a POSIX shell.
func (o docsOperation) Curl(baseURL string) (string, error) {
	path := o.Path
	for _, parameter := range o.Parameters {
		if parameter.In == "path" {
			path = strings.ReplaceAll(path, "{"+parameter.Name+"}", parameter.Example)
		}
	}
	command := "curl"
	if o.Method != http.MethodGet {
		command += " -X " + o.Method
	}
	words := []string{command + " " + shellQuote(baseURL+path)}
	if o.Scope != "" {
		words = append(words, `-H "Authorization: Bearer $DMARCD_TOKEN"`)
	}
	if o.RequestBody != nil {
		content := o.RequestBody.Content[0]
		example := content.Value.Examples[0].Value
		words = append(words, "-H "+shellQuote("Content-Type: "+content.Name))
		if content.Value.Schema.Format == "binary" {
			// The example is the name of a file.
			words = append(words, "--data-binary "+shellQuote("@"+example.Value.Value))
		} else {
			body, err := example.json()
			if err != nil {
				return "", err
			}
			words = append(words, "-d "+shellQuote(string(body)))
		}
	}
	return strings.Join(words, " \\\n  "), nil
}

func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// Message returns the status line and the headers of a response with an
// example value each, as they stand before the body.
func (r docsResponse) Message(status string) (string, error) {
	code, err := strconv.Atoi(status)
	if err != nil {
		return "", fmt.Errorf("status of a response: %w", err)
	}
	lines := []string{"HTTP/1.1 " + status + " " + http.StatusText(code)}
	for _, header := range r.Headers {
		lines = append(lines, header.Name+": "+header.Value.Example)
	}
	for _, content := range r.Content {
		lines = append(lines, "Content-Type: "+content.Name)
	}
	return strings.Join(lines, "\n"), nil
}

// Text returns the example as a body: a text as it is, anything else as JSON.
func (e docsExample) Text() (string, error) {
	if e.Value.Kind == yaml.ScalarNode {
		return e.Value.Value, nil
	}
	compact, err := e.json()
	if err != nil {
		return "", err
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, compact, "", "  "); err != nil {
		return "", err
	}
	return indented.String(), nil
}

func (e docsExample) json() ([]byte, error) {
	var b bytes.Buffer
	err := encodeNode(&b, &e.Value)
	return b.Bytes(), err
}

// RefName returns the name of the schema among the components, or "".
func (s docsSchema) RefName() string { return strings.TrimPrefix(s.Ref, "#/components/schemas/") }

// Requires reports whether an object must have the member.
func (s docsSchema) Requires(member string) bool { return slices.Contains(s.Required, member) }

// Kind returns the type and what narrows it, in words.
func (s docsSchema) Kind() string {
	kind := strings.Join(s.Type, " or ")
	if s.Format != "" {
		kind += " (" + s.Format + ")"
	}
	switch {
	case s.Minimum != nil && s.Maximum != nil:
		kind += fmt.Sprintf(", %d to %d", *s.Minimum, *s.Maximum)
	case s.Minimum != nil:
		kind += fmt.Sprintf(", at least %d", *s.Minimum)
	}
	return kind
}

// Words returns the allowed values as they stand in JSON.
func (s docsSchema) Words() ([]string, error) {
	words := make([]string, len(s.Enum))
	for i, value := range s.Enum {
		word, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		words[i] = string(word)
	}
	return words, nil
}

// ordered is a mapping that keeps the order of the document.
type ordered[T any] []named[T]

type named[T any] struct {
	Name  string
	Value T
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (o *ordered[T]) UnmarshalYAML(node *yaml.Node) error {
	for i := 0; i < len(node.Content); i += 2 {
		member := named[T]{Name: node.Content[i].Value}
		if err := node.Content[i+1].Decode(&member.Value); err != nil {
			return err
		}
		*o = append(*o, member)
	}
	return nil
}

// oneOrMore is a list that may be written as its only item.
type oneOrMore []string

// UnmarshalYAML implements yaml.Unmarshaler.
func (o *oneOrMore) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode {
		*o = oneOrMore{node.Value}
		return nil
	}
	return node.Decode((*[]string)(o))
}

// proseBlock is a heading, a paragraph or a numbered list of a description; the
// other two are empty.
type proseBlock struct {
	Heading   string
	Paragraph []proseSpan
	Items     [][]proseSpan
}

// proseSpan is a run of text, set as code or not.
type proseSpan struct {
	Text string
	Code bool
}

var (
	itemPattern    = regexp.MustCompile(`(?m)^\d+\. `)
	nonWordPattern = regexp.MustCompile(`[^a-z0-9]+`)
)

// prose reads the part of CommonMark that the descriptions of the document keep
// to: paragraphs, headings of the second level, numbered lists and code spans.
// It returns data and not HTML, so that the template escapes all of it.
func prose(text string) []proseBlock {
	var blocks []proseBlock
	for chunk := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		heading, isHeading := strings.CutPrefix(chunk, "## ")
		switch {
		case isHeading:
			blocks = append(blocks, proseBlock{Heading: heading})
		case strings.HasPrefix(chunk, "1. "):
			var items [][]proseSpan
			for _, item := range itemPattern.Split(chunk, -1)[1:] {
				items = append(items, proseSpans(item))
			}
			blocks = append(blocks, proseBlock{Items: items})
		default:
			blocks = append(blocks, proseBlock{Paragraph: proseSpans(chunk)})
		}
	}
	return blocks
}

func proseSpans(text string) []proseSpan {
	var spans []proseSpan
	for i, run := range strings.Split(text, "`") {
		if run != "" {
			spans = append(spans, proseSpan{Text: run, Code: i%2 == 1})
		}
	}
	return spans
}

// anchor returns the fragment under which a heading can be linked to.
func anchor(heading string) string {
	return strings.Trim(nonWordPattern.ReplaceAllString(strings.ToLower(heading), "-"), "-")
}
