package apitest

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	v3 "github.com/pb33f/libopenapi/datamodel/high/v3"
	"github.com/pb33f/libopenapi/orderedmap"
)

// path is a path of the document with its operations, by method.
type path struct {
	segments   []string
	operations map[string]*operation
}

// operation is an operation of the document.
type operation struct {
	id, method, path string
	item             *v3.PathItem // which holds definition under method
	definition       *v3.Operation
	answers          map[int]answer // by status
}

func readPaths(model *v3.Document) ([]path, error) {
	var paths []path
	for template, item := range model.Paths.PathItems.FromOldest() {
		p := path{segments: strings.Split(template, "/"), operations: map[string]*operation{}}
		for name, definition := range item.GetOperations().FromOldest() {
			o := &operation{
				id: definition.OperationId, method: strings.ToUpper(name), path: template,
				item: item, definition: definition,
			}
			var err error
			if o.answers, err = readAnswers(definition.Responses); err != nil {
				return nil, fmt.Errorf("%s: %w", o.id, err)
			}
			p.operations[o.method] = o
		}
		paths = append(paths, p)
	}
	return paths, nil
}

// rejection returns a substitute operation for requests that match none. Its responses are the
// component of this name with the status, and the errors that may occur before it.
func rejection(model *v3.Document, status int, name string) (*operation, error) {
	codes := orderedmap.New[string, *v3.Response]()
	for _, possible := range []struct {
		status    int
		component string
	}{
		{status, name},
		{http.StatusUnauthorized, "Unauthorized"},
		{http.StatusForbidden, "Forbidden"},
		{http.StatusTooManyRequests, "TooManyRequests"},
		{http.StatusInternalServerError, "InternalError"},
		{http.StatusServiceUnavailable, "Unavailable"},
	} {
		response, ok := model.Components.Responses.Get(possible.component)
		if !ok {
			return nil, fmt.Errorf("read the OpenAPI document: it has no response %s", possible.component)
		}
		codes.Set(strconv.Itoa(possible.status), response)
	}
	definition := &v3.Operation{OperationId: name, Responses: &v3.Responses{Codes: codes}}
	answers, err := readAnswers(definition.Responses)
	if err != nil {
		return nil, fmt.Errorf("read the response %s of the OpenAPI document: %w", name, err)
	}
	return &operation{
		id: name, method: http.MethodGet, path: name,
		item: &v3.PathItem{Get: definition}, definition: definition, answers: answers,
	}, nil
}

// find returns the path and the operation that the document has for r, or one
// of the two refusals.
func (v *Validator) find(r *http.Request) (path, *operation, error) {
	rest, ok := strings.CutPrefix(r.URL.EscapedPath(), v.prefix)
	if !ok || !strings.HasPrefix(rest, "/") {
		return path{}, nil, fmt.Errorf("%s %s: the API begins at %s/", r.Method, r.URL, v.prefix)
	}
	i := slices.IndexFunc(v.paths, func(p path) bool { return p.matches(rest) })
	if i < 0 {
		return path{}, v.pathNotFound, nil
	}
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	if o, ok := v.paths[i].operations[method]; ok {
		return v.paths[i], o, nil
	}
	return v.paths[i], v.methodNotAllowed, nil
}

// matches reports whether the path is an instance of the template. The path is not normalized, and
// an empty segment is not a value of a parameter.
func (p path) matches(escaped string) bool {
	segments := strings.Split(escaped, "/")
	return slices.EqualFunc(segments, p.segments, func(got, want string) bool {
		return got == want || (strings.HasPrefix(want, "{") && got != "")
	})
}

// checkAllow checks that an Allow header lists the documented methods of the path, and HEAD with
// GET. OPTIONS is optional.
func (p path) checkAllow(allow string) error {
	var want []string
	for method := range p.operations {
		want = append(want, method)
		if method == http.MethodGet {
			want = append(want, http.MethodHead)
		}
	}
	slices.Sort(want)
	got := strings.Split(allow, ", ")
	got = slices.DeleteFunc(got, func(method string) bool { return method == http.MethodOptions })
	slices.Sort(got)
	if !slices.Equal(got, want) {
		return fmt.Errorf("header Allow: got %q want %q", allow, strings.Join(want, ", "))
	}
	return nil
}
