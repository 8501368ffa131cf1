package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/service"
)

const (
	// maxAnswer is about how many bytes of JSON an answer has at most, some 15,000 tokens of a context window.
	maxAnswer = 48 << 10
	// minText is the length in bytes below which texts are not shortened.
	minText = 32
	// maxCall limits the time of a call.
	maxCall = time.Minute
)

// answer is the result of every tool.
type answer struct {
	Data any  `json:"data"`
	Cut  bool `json:"cut,omitempty"`
}

// register adds a tool that calls use cases of a team. Tools that change something are not offered to
// those who only may read.
func register[In any](s *Server, tool sdk.Tool, call func(ctx context.Context, team *service.Team, in In) (answer, error)) {
	schema, err := jsonschema.For[In](&jsonschema.ForOptions{TypeSchemas: schemas()})
	if err != nil {
		panic(err) // our own types have schemas
	}
	tool.InputSchema = schema
	handle := func(ctx context.Context, _ *sdk.CallToolRequest, in In) (*sdk.CallToolResult, any, error) {
		by, _ := ctx.Value(callerKey{}).(caller) // both transports set it
		ctx, cancel := context.WithTimeout(ctx, maxCall)
		defer cancel()
		defer context.AfterFunc(by.request, cancel)()
		result, err := call(ctx, by.team, in)
		if err != nil {
			return nil, nil, s.explain(ctx, tool.Name, err)
		}
		body := encode(result)
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(body)}}}, json.RawMessage(body), nil
	}
	if tool.Annotations.ReadOnlyHint {
		sdk.AddTool(s.reading, &tool, handle)
	}
	sdk.AddTool(s.writing, &tool, handle)
}

// failure is an error with a sentence for the user of a tool.
type failure string

func (f failure) Error() string { return string(f) }

// explain returns the error of a tool for its user: what happened, and what to do. Other errors are
// logged.
func (s *Server) explain(ctx context.Context, tool string, err error) error {
	var invalid *dmarcd.InvalidError
	var full *dmarcd.QuotaError
	var throttled *service.ThrottledError
	switch {
	case errors.As(err, &invalid), errors.As(err, &full), errors.As(err, &throttled):
		return err
	case errors.Is(err, dmarcd.ErrNotFound):
		return failure("The team has no such domain, report, sender or alert. The tools that list them show those it has.")
	case errors.Is(err, dmarcd.ErrUnauthorized), errors.Is(err, dmarcd.ErrForbidden):
		return failure("The token does not have this right any more. Ask for another token.")
	case errors.Is(err, dmarcd.ErrTemporary):
		return failure("The server is busy or its database is unavailable. Try again in a few seconds.")
	case ctx.Err() != nil:
		return failure("The call took too long. Ask for fewer days or one domain.")
	}
	s.options.Log.ErrorContext(ctx, "tool failed", "tool", tool, "error", err)
	return failure("Internal error")
}

// fitting returns the page that read returns, with a smaller limit if it would be too large. The rest
// begins at its cursor.
func fitting[Page any](limit int, read func(limit int) (Page, error)) (Page, error) {
	for {
		page, err := read(limit)
		if err != nil || limit == 1 || len(encode(page)) <= maxAnswer {
			return page, err
		}
		limit /= 2
	}
}

// fittingAnswer is fitting with a page that is the whole answer.
func fittingAnswer[Page any](limit int, read func(limit int) (Page, error)) (answer, error) {
	page, err := fitting(limit, read)
	if err != nil {
		return answer{}, err
	}
	return bounded(page), nil
}

// bounded returns an answer of limited size. It replaces characters that people do not see, because
// outsiders can hide text with them.
func bounded(data any) answer {
	decoder := json.NewDecoder(bytes.NewReader(encode(data)))
	decoder.UseNumber()
	var tree any
	if err := decoder.Decode(&tree); err != nil {
		panic(err) // it was encoded before
	}
	for limit := maxAnswer; ; limit /= 2 {
		cut := false
		short := shorten(tree, limit, &cut)
		if len(encode(short)) <= maxAnswer || limit <= minText {
			return answer{Data: short, Cut: cut}
		}
	}
}

// shorten returns a copy of a JSON value with at most limit bytes in a text, and one item of a list for
// each minText bytes.
func shorten(value any, limit int, cut *bool) any {
	switch v := value.(type) {
	case string:
		v = strings.Map(visible, v)
		if len(v) > limit {
			*cut = true
			for limit > 0 && !utf8.RuneStart(v[limit]) {
				limit--
			}
			v = v[:limit] + "…"
		}
		return v
	case []any:
		if most := max(1, limit/minText); len(v) > most {
			*cut, v = true, v[:most]
		}
		list := make([]any, len(v))
		for i := range v {
			list[i] = shorten(v[i], limit, cut)
		}
		return list
	case map[string]any:
		object := make(map[string]any, len(v))
		for name := range v {
			object[name] = shorten(v[name], limit, cut)
		}
		return object
	}
	return value
}

// visible replaces control and format characters, and those without a glyph.
func visible(r rune) rune {
	if r == '\n' || r == '\t' || unicode.IsPrint(r) {
		return r
	}
	return utf8.RuneError
}

// encode returns v as JSON without escaping < > &, as assistants read it.
func encode(v any) []byte {
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		panic(err) // our own types can be encoded
	}
	return bytes.TrimSpace(body.Bytes())
}
