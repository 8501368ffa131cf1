// Package apitest validates the responses of a server in tests against its OpenAPI 3.1 document,
// and reports the documented responses that no test provoked.
//
// The public document allows additional members and headers, because they may be added later. A
// Validator is strict: an undocumented member or header is an error. It does not validate
// requests, except that a successful one must have the documented token and query.
package apitest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/pb33f/libopenapi"
	"github.com/pb33f/libopenapi-validator/config"
	liberrors "github.com/pb33f/libopenapi-validator/errors"
	"github.com/pb33f/libopenapi-validator/parameters"
	"github.com/pb33f/libopenapi-validator/responses"
)

// Validator compares responses with an OpenAPI document, and records which operations and statuses
// it has seen. It is safe for concurrent use.
type Validator struct {
	prefix string // the path of the base URL, without a trailing slash
	paths  []path
	// The responses to requests that match no operation.
	pathNotFound, methodNotAllowed *operation

	requests parameters.ParameterValidator
	answers  responses.ResponseBodyValidator

	mu   sync.Mutex // guards seen and the caches of the library
	seen map[observation]bool
}

// observation is a documented response.
type observation struct {
	operationID string
	status      int
}

// New returns a Validator for an OpenAPI 3.1 document in JSON. The path of its first server is the
// prefix of the API. The components, or x-unmatched, must include the responses PathNotFound,
// MethodNotAllowed, Unauthorized, Forbidden, TooManyRequests, InternalError and Unavailable, for requests that match
// no operation.
func New(document []byte) (*Validator, error) {
	document, err := tighten(document)
	if err != nil {
		return nil, fmt.Errorf("read the OpenAPI document: %w", err)
	}
	parsed, err := libopenapi.NewDocument(document)
	if err != nil {
		return nil, fmt.Errorf("read the OpenAPI document: %w", err)
	}
	built, err := parsed.BuildV3Model()
	if err != nil {
		return nil, fmt.Errorf("read the OpenAPI document: %w", err)
	}
	model := &built.Model
	if len(model.Servers) == 0 {
		return nil, errors.New("read the OpenAPI document: it names no server")
	}
	base, err := url.Parse(model.Servers[0].URL)
	if err != nil {
		return nil, fmt.Errorf("read the server of the OpenAPI document: %w", err)
	}
	v := &Validator{
		prefix: strings.TrimSuffix(base.EscapedPath(), "/"),
		seen:   map[observation]bool{},
	}
	if v.paths, err = readPaths(model); err != nil {
		return nil, fmt.Errorf("read the paths of the OpenAPI document: %w", err)
	}
	if v.pathNotFound, err = rejection(model, http.StatusNotFound, "PathNotFound"); err != nil {
		return nil, err
	}
	if v.methodNotAllowed, err = rejection(model, http.StatusMethodNotAllowed, "MethodNotAllowed"); err != nil {
		return nil, err
	}
	// The library checks only required headers, and accepts 12e4 as a number for every schema. So
	// headers are compared here, and hidden from it.
	for _, o := range v.operations() {
		for response := range o.definition.Responses.Codes.ValuesFromOldest() {
			response.Headers = nil
		}
	}
	v.requests = parameters.NewParameterValidator(model, config.WithFormatAssertions())
	v.answers = responses.NewResponseBodyValidator(model, config.WithFormatAssertions())
	return v, nil
}

// Check compares a response with the document: the status must be documented for the operation of
// r, the headers for the status, and the body must match its schema. A successful request must have
// the documented token and query. The body of r is not read. Check returns all differences, joined.
//
// The response to a request that matches no operation must be 404, 405 or an error that is checked
// before these. HEAD is checked as GET without a body, and is not recorded.
func (v *Validator) Check(r *http.Request, status int, header http.Header, body []byte) error {
	v.mu.Lock()
	defer v.mu.Unlock()

	route, found, err := v.find(r)
	if err != nil {
		return err
	}
	documented, ok := found.answers[status]
	if !ok {
		return fmt.Errorf("%s %s: the document has no status %d for %s", r.Method, r.URL, status, found.id)
	}
	problems := documented.checkHeader(header)
	if found == v.methodNotAllowed && status == http.StatusMethodNotAllowed {
		problems = append(problems, route.checkAllow(header.Get("Allow")))
	}
	asDocumented := r.Clone(r.Context())
	asDocumented.Method = found.method
	wantsBody := !documented.empty && r.Method != http.MethodHead
	switch text := string(bytes.TrimSpace(body)); {
	case !wantsBody && len(body) > 0:
		problems = append(problems, fmt.Errorf("body: got %q want none", body))
	case wantsBody && header.Get("Content-Type") == "application/x-ndjson":
		for line := range bytes.Lines(body) {
			problems = append(problems, v.checkBody(asDocumented, found, status, header, line)...)
		}
	case wantsBody && (text == "" || text == "null"):
		// The library accepts both for every schema.
		problems = append(problems, fmt.Errorf("body: got %q want a value", text))
	case wantsBody:
		problems = append(problems, v.checkBody(asDocumented, found, status, header, body)...)
	}
	if status < http.StatusBadRequest {
		_, differences := v.requests.ValidateSecurityWithPathItem(asDocumented, found.item, found.path)
		problems = append(problems, plainErrors(differences)...)
		_, differences = v.requests.ValidateQueryParamsWithPathItem(asDocumented, found.item, found.path)
		problems = append(problems, plainErrors(differences)...)
	}
	if r.Method != http.MethodHead {
		v.seen[observation{found.id, status}] = true
	}
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("%s %s: %d of %s: %w", r.Method, r.URL, status, found.id, err)
	}
	return nil
}

// Missing returns the documented responses that Check has not seen, each as "operationId status",
// sorted. Responses to requests that match no operation are listed under PathNotFound and
// MethodNotAllowed.
func (v *Validator) Missing() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	var missing []string
	for _, o := range v.operations() {
		for status := range o.answers {
			if !v.seen[observation{o.id, status}] {
				missing = append(missing, fmt.Sprintf("%s %d", o.id, status))
			}
		}
	}
	slices.Sort(missing)
	return missing
}

// operations returns all operations, the two refusals among them.
func (v *Validator) operations() []*operation {
	all := []*operation{v.pathNotFound, v.methodNotAllowed}
	for _, p := range v.paths {
		for _, o := range p.operations {
			all = append(all, o)
		}
	}
	return all
}

// plainErrors converts each difference that the library found to an error.
func plainErrors(differences []*liberrors.ValidationError) []error {
	var problems []error
	for _, d := range differences {
		if len(d.SchemaValidationErrors) == 0 {
			problems = append(problems, fmt.Errorf("%s: %s", d.Message, d.Reason))
		}
		for _, failure := range d.SchemaValidationErrors {
			problems = append(problems, fmt.Errorf("%s: %s: %s", d.Message, failure.FieldPath, failure.Reason))
		}
	}
	return problems
}

// checkBody compares a body with the schema of a response.
func (v *Validator) checkBody(r *http.Request, found *operation, status int, header http.Header, body []byte) []error {
	_, differences := v.answers.ValidateResponseBodyWithPathItem(r,
		&http.Response{StatusCode: status, Header: header, Body: io.NopCloser(bytes.NewReader(body))},
		found.item, found.path)
	return plainErrors(differences)
}
