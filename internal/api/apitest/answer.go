package apitest

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/pb33f/libopenapi-validator/config"
	"github.com/pb33f/libopenapi-validator/helpers"
	"github.com/pb33f/libopenapi-validator/parameters"
	"github.com/pb33f/libopenapi/datamodel/high/base"
	v3 "github.com/pb33f/libopenapi/datamodel/high/v3"
	"github.com/pb33f/libopenapi/orderedmap"
)

// generalHeaders are set by HTTP and on every response for security, so the document does not list
// them.
var generalHeaders = []string{
	"Access-Control-Allow-Origin", "Access-Control-Expose-Headers", "Cache-Control", "Connection",
	"Content-Encoding", "Content-Length", "Content-Type", "Date", "Referrer-Policy",
	"Strict-Transport-Security", "Transfer-Encoding", "Vary", "X-Content-Type-Options",
}

// answer is a documented status of an operation.
type answer struct {
	headers map[string]header // by canonical name
	empty   bool              // it has no body
}

// header is a documented header of a response.
type header struct {
	required bool
	schema   *base.Schema
	options  *config.ValidationOptions // with the compiled schema
}

func readAnswers(documented *v3.Responses) (map[int]answer, error) {
	answers := map[int]answer{}
	options := config.NewValidationOptions(config.WithFormatAssertions())
	for code, response := range documented.Codes.FromOldest() {
		status, err := strconv.Atoi(code)
		if err != nil {
			return nil, fmt.Errorf("status of a response: %w", err)
		}
		a := answer{headers: map[string]header{}, empty: orderedmap.Len(response.Content) == 0}
		for name, h := range response.Headers.FromOldest() {
			schema, err := h.Schema.BuildSchema()
			if err != nil {
				return nil, fmt.Errorf("header %s: %w", name, err)
			}
			a.headers[http.CanonicalHeaderKey(name)] = header{required: h.Required, schema: schema, options: options}
		}
		answers[status] = a
	}
	return answers, nil
}

// checkHeader compares the headers of a response with the documented ones.
func (a answer) checkHeader(sent http.Header) []error {
	var problems []error
	got := map[string]bool{}
	for name, values := range sent {
		// A handler that sets the map itself chooses the case of a name.
		name = http.CanonicalHeaderKey(name)
		got[name] = true
		documented, ok := a.headers[name]
		if !ok {
			if !slices.Contains(generalHeaders, name) {
				problems = append(problems, fmt.Errorf("header %s: the document does not name it here", name))
			}
			continue
		}
		for _, value := range values {
			if err := documented.check(name, value); err != nil {
				problems = append(problems, err)
			}
		}
	}
	for name, documented := range a.headers {
		if documented.required && !got[name] {
			problems = append(problems, fmt.Errorf("header %s: got none want one", name))
		}
	}
	return problems
}

func (h header) check(name, text string) error {
	var value any = text
	if slices.Contains(h.schema.Type, "integer") {
		number, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("header %s: got %q want a whole number", name, text)
		}
		value = number
	}
	differences := parameters.ValidateSingleParameterSchema(h.schema, value, name, name, name,
		helpers.ResponseBodyValidation, helpers.ParameterValidationHeader,
		h.options, "", "")
	if len(differences) > 0 {
		return fmt.Errorf("header %s: got %q: %w", name, text, plainErrors(differences)[0])
	}
	return nil
}
