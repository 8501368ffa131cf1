package apitest_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/pb33f/libopenapi"
	v3 "github.com/pb33f/libopenapi/datamodel/high/v3"
	"github.com/pb33f/libopenapi/orderedmap"

	"github.com/dmarcd/dmarcd/internal/api/apitest"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

const baseURL = "https://dmarc.example/api"

func document(t *testing.T) []byte {
	t.Helper()
	return musttest.Get(readDocument())(t)
}

// readDocument returns the document for baseURL.
func readDocument() ([]byte, error) {
	doc, err := os.ReadFile("../openapi.json")
	return bytes.ReplaceAll(doc, []byte("http://127.0.0.1:8080/api"), []byte(baseURL)), err
}

func newValidator(t *testing.T) *apitest.Validator {
	t.Helper()
	v, err := apitest.New(document(t))
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return v
}

// shared is the Validator of tests that do not call Missing: reading the document is slow.
var shared = sync.OnceValues(func() (*apitest.Validator, error) {
	doc, err := readDocument()
	if err != nil {
		return nil, err
	}
	return apitest.New(doc)
})

func sharedValidator(t *testing.T) *apitest.Validator {
	t.Helper()
	return musttest.Get(shared())(t)
}

// request returns a request with a token to a path below the base URL.
func request(t *testing.T, method, path string) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, baseURL+path, nil)
	r.Header.Set("Authorization", "Bearer dmd_0")
	return r
}

// header returns headers from alternating names and values.
func header(pairs ...string) http.Header {
	h := http.Header{}
	for pair := range slices.Chunk(pairs, 2) {
		h.Set(pair[0], pair[1])
	}
	return h
}

// TestDocumentFollowsItsOwnRules answers every operation with the examples of the
// document: they must be what its schemas ask for, and all of them together
// leave nothing unseen.
func TestDocumentFollowsItsOwnRules(t *testing.T) {
	if testing.Short() {
		return // takes seconds of processor time
	}
	t.Parallel()
	var root map[string]any
	musttest.Do(t, json.Unmarshal(document(t), &root))
	maps.Copy(root["components"].(map[string]any)["responses"].(map[string]any), root["x-unmatched"].(map[string]any))
	doc, err := libopenapi.NewDocument(musttest.Get(json.Marshal(root))(t))
	if err != nil {
		t.Fatalf("NewDocument: %v", err)
	}
	model, err := doc.BuildV3Model()
	if err != nil {
		t.Fatalf("BuildV3Model: %v", err)
	}
	v := newValidator(t)
	for path, item := range model.Model.Paths.PathItems.FromOldest() {
		path = strings.ReplaceAll(path, "{domain}", "example.com")
		for method, operation := range item.GetOperations().FromOldest() {
			for code, response := range operation.Responses.Codes.FromOldest() {
				checkExamples(t, v, request(t, strings.ToUpper(method), path+requiredQuery(operation)), code, response)
			}
		}
	}
	for _, component := range []struct{ name, code string }{
		{"PathNotFound", "404"},
		{"MethodNotAllowed", "405"},
		{"Unauthorized", "401"},
		{"Forbidden", "403"},
		{"TooManyRequests", "429"},
		{"InternalError", "500"},
		{"Unavailable", "503"},
	} {
		response := model.Model.Components.Responses.GetOrZero(component.name)
		if component.name != "MethodNotAllowed" {
			checkExamples(t, v, request(t, http.MethodGet, "/nothing"), component.code, response)
		}
		if component.name != "PathNotFound" {
			checkExamples(t, v, request(t, http.MethodPut, "/domains"), component.code, response)
		}
	}
	if missing := v.Missing(); len(missing) > 0 {
		t.Errorf("Missing: got %q want none", missing)
	}
}

// requiredQuery returns the required parameters of an operation, with the values of their examples.
func requiredQuery(operation *v3.Operation) string {
	query := url.Values{}
	for _, parameter := range operation.Parameters {
		if parameter.In == "query" && parameter.Required != nil && *parameter.Required && parameter.Example != nil {
			query.Set(parameter.Name, parameter.Example.Value)
		}
	}
	if len(query) == 0 {
		return ""
	}
	return "?" + query.Encode()
}

func checkExamples(t *testing.T, v *apitest.Validator, r *http.Request, code string, response *v3.Response) {
	t.Helper()
	status, err := strconv.Atoi(code)
	if err != nil {
		t.Fatalf("status: %v", err)
	}
	h := http.Header{}
	for name, documented := range response.Headers.FromOldest() {
		h.Set(name, documented.Example.Value)
	}
	var bodies [][]byte
	for mediaType, content := range response.Content.FromOldest() {
		h.Set("Content-Type", mediaType)
		for _, example := range content.Examples.FromOldest() {
			bodies = append(bodies, exampleJSON(t, example.Value))
		}
		if len(bodies) == 0 {
			t.Errorf("%s %s: %s has no example", r.Method, r.URL.Path, code)
		}
	}
	if orderedmap.Len(response.Content) == 0 {
		bodies = append(bodies, nil)
	}
	for _, body := range bodies {
		if err := v.Check(r, status, h, body); err != nil {
			t.Errorf("Check: %v", err)
		}
	}
}

func exampleJSON(t *testing.T, node interface{ Decode(value any) error }) []byte {
	t.Helper()
	var value any
	if err := node.Decode(&value); err != nil {
		t.Fatalf("decode an example: %v", err)
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		t.Fatalf("encode an example: %v", err)
	}
	return encoded
}

const (
	goodDomain = `{"domain":"example.com","active":true,"dmarc_record":"","dmarc_policy":"",` +
		`"domain_usage_purpose":null,"created_at":"2026-11-15T09:30:00+00:00","updated_at":"2026-11-15T09:30:00+00:00"}`
	goodError = `{"message":"Do this."}`
)

func TestCheckAccepts(t *testing.T) {
	t.Parallel()
	v := sharedValidator(t)
	for _, tt := range []struct {
		name, method, path string
		status             int
		header             http.Header
		body               string
	}{
		{
			name: "the Domain", method: "GET", path: "/domains/example.com", status: 200,
			header: header("Content-Type", "application/json", "ETag", `"1"`), body: goodDomain,
		},
		{
			name: "a media type with a parameter", method: "GET", path: "/domains/example.com", status: 200,
			header: header("Content-Type", "application/json; charset=utf-8", "ETag", `W/"1"`), body: goodDomain,
		},
		{
			name: "HEAD without a body", method: "HEAD", path: "/domains/example.com", status: 200,
			header: header("Content-Type", "application/json", "ETag", `"1"`),
		},
		{
			name: "a header in the case of the handler", method: "GET", path: "/domains", status: 200,
			header: http.Header{"Content-Type": {"application/json"}, "RateLimit-Limit": {"100"}}, body: "[]",
		},
		{
			name: "a request id that looks like a number", method: "GET", path: "/domains", status: 500,
			header: header("Content-Type", "application/json", "X-Request-Id", "12e4", "Dmarcd-Error", "internal_error"), body: goodError,
		},
		{
			name: "an unknown query parameter", method: "GET", path: "/domains?limit=5&colour=red", status: 200,
			header: header("Content-Type", "application/json"), body: "[]",
		},
		{
			name: "a trailing slash is another path", method: "GET", path: "/domains/", status: 404,
			header: header("Content-Type", "application/json", "Dmarcd-Error", "no_such_resource"), body: goodError,
		},
		{
			name: "a doubled slash is another path", method: "GET", path: "//domains", status: 404,
			header: header("Content-Type", "application/json", "Dmarcd-Error", "no_such_resource"), body: goodError,
		},
		{
			name: "OPTIONS is a method like others", method: "OPTIONS", path: "/domains/example.com", status: 405,
			header: header("Content-Type", "application/json", "Allow", "DELETE, GET, HEAD", "Dmarcd-Error", "method_not_allowed"), body: goodError,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if err := v.Check(request(t, tt.method, tt.path), tt.status, tt.header, []byte(tt.body)); err != nil {
				t.Errorf("Check: got %v want nil", err)
			}
		})
	}
}

func TestCheckRejects(t *testing.T) {
	t.Parallel()
	v := sharedValidator(t)
	jsonHeader := header("Content-Type", "application/json")
	etag := header("Content-Type", "application/json", "ETag", `"1"`)
	for _, tt := range []struct {
		name, method, path string
		status             int
		header             http.Header
		body               string
		want               string // in the error
	}{
		{
			name: "a status that is not documented", method: "GET", path: "/domains/example.com", status: 410,
			header: jsonHeader, body: goodError, want: "no status 410 for getDomain",
		},
		{
			name: "a member that is not documented", method: "GET", path: "/domains/example.com", status: 200,
			header: etag, body: strings.Replace(goodDomain, "{", `{"colour":"red",`, 1), want: "colour",
		},
		{
			name: "a member that is not documented, in an array", method: "GET", path: "/domains", status: 200,
			header: jsonHeader, body: "[" + strings.Replace(goodDomain, "{", `{"colour":"red",`, 1) + "]", want: "colour",
		},
		{
			name: "a member that is not documented, in an error", method: "GET", path: "/domains/example.com", status: 404,
			header: header("Content-Type", "application/json", "Dmarcd-Error", "domain_not_found"), body: `{"message":"Do this.","hint":"x"}`, want: "hint",
		},
		{
			name: "a member that is missing", method: "GET", path: "/domains/example.com", status: 200,
			header: etag, body: strings.Replace(goodDomain, `"active":true,`, "", 1), want: "active",
		},
		{
			name: "a time with Z", method: "GET", path: "/domains/example.com", status: 200,
			header: etag, body: strings.Replace(goodDomain, "+00:00", "Z", 1), want: "created_at",
		},
		{
			name: "a day that does not exist", method: "GET", path: "/domains/example.com", status: 200,
			header: etag, body: strings.Replace(goodDomain, "11-15", "11-31", 1), want: "created_at",
		},
		{
			name: "a counter with a fraction", method: "GET", path: "/reports", status: 200,
			header: etag, body: `{"total":1.5,"compliant":1,"non_compliant":0}`, want: "total",
		},
		{
			name: "null for a list", method: "GET", path: "/domains", status: 200,
			header: jsonHeader, body: `null`, want: "null",
		},
		{
			name: "the message error at the verify endpoint", method: "POST", path: "/domains/example.com/verify", status: 404,
			header: jsonHeader, body: goodError, want: "error",
		},
		{
			name: "no body", method: "GET", path: "/domains/example.com", status: 200,
			header: etag, want: "body",
		},
		{
			name: "a body that is cut off", method: "GET", path: "/domains", status: 200,
			header: jsonHeader, body: "[", want: "decoded",
		},
		{
			name: "another media type", method: "GET", path: "/domains", status: 401,
			header: header("Content-Type", "text/plain", "WWW-Authenticate", `Bearer realm="dmarcd"`), body: goodError, want: "text/plain",
		},
		{
			name: "a body with 204", method: "DELETE", path: "/domains/example.com", status: 204,
			header: http.Header{}, body: "{}", want: "body",
		},
		{
			name: "a body to HEAD", method: "HEAD", path: "/domains", status: 200,
			header: jsonHeader, body: "[]", want: "body",
		},
		{
			name: "a header that is not documented", method: "GET", path: "/domains", status: 200,
			header: header("Content-Type", "application/json", "X-Powered-By", "gophers"), body: "[]", want: "X-Powered-By",
		},
		{
			name: "a header that is missing", method: "GET", path: "/domains", status: 401,
			header: jsonHeader, body: goodError, want: "Www-Authenticate",
		},
		{
			name: "a header with another value", method: "POST", path: "/domains/example.com/verify", status: 200,
			header: header("Content-Type", "application/json", "Dmarcd-Check", "maybe"), body: goodDomain, want: "Dmarcd-Check",
		},
		{
			name: "an optional header with another value", method: "GET", path: "/domains", status: 200,
			header: header("Content-Type", "application/json", "RateLimit-Remaining", "-1"), body: "[]", want: "Ratelimit-Remaining",
		},
		{
			name: "a header that is not a number", method: "GET", path: "/domains", status: 503,
			header: header("Content-Type", "application/json", "Retry-After", "soon"), body: goodError, want: "Retry-After",
		},
		{
			name: "200 at a path that is not documented", method: "GET", path: "/nothing", status: 200,
			header: jsonHeader, body: "[]", want: "no status 200 for PathNotFound",
		},
		{
			name: "200 for a method that is not documented", method: "PUT", path: "/domains", status: 200,
			header: jsonHeader, body: "[]", want: "no status 200 for MethodNotAllowed",
		},
		{
			name: "405 that forgets a method", method: "PUT", path: "/domains", status: 405,
			header: header("Content-Type", "application/json", "Allow", "GET, HEAD"), body: goodError, want: "Allow",
		},
		{
			name: "success of a query that is not allowed", method: "GET", path: "/domains?limit=1001", status: 200,
			header: jsonHeader, body: "[]", want: "limit",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := v.Check(request(t, tt.method, tt.path), tt.status, tt.header, []byte(tt.body))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Check: got %v want an error about %q", err, tt.want)
			}
		})
	}
}

func TestCheckRejectsSuccessWithoutToken(t *testing.T) {
	t.Parallel()
	r := request(t, http.MethodGet, "/domains")
	r.Header.Del("Authorization")
	err := sharedValidator(t).Check(r, http.StatusOK, header("Content-Type", "application/json"), []byte("[]"))
	if err == nil || !strings.Contains(err.Error(), "Authorization") {
		t.Errorf("Check: got %v want an error about Authorization", err)
	}
}

func TestCheckRejectsPathOutsideTheAPI(t *testing.T) {
	t.Parallel()
	for _, target := range []string{"https://dmarc.example/healthz", "https://dmarc.example/api", "https://dmarc.example/apis/domains"} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, target, nil)
		if err := sharedValidator(t).Check(r, http.StatusOK, http.Header{}, nil); err == nil {
			t.Errorf("Check of %s: got nil want an error", target)
		}
	}
}

func TestMissing(t *testing.T) {
	t.Parallel()
	v := newValidator(t)
	before := v.Missing()
	if !slices.Contains(before, "listDomains 200") || !slices.IsSorted(before) {
		t.Errorf("Missing: got %q want it sorted, with listDomains 200", before)
	}
	for _, method := range []string{http.MethodHead, http.MethodGet} {
		body := []byte("[]")
		if method == http.MethodHead {
			body = nil
		}
		if err := v.Check(request(t, method, "/domains"), http.StatusOK, header("Content-Type", "application/json"), body); err != nil {
			t.Fatalf("Check: %v", err)
		}
		want := method == http.MethodHead
		if got := slices.Contains(v.Missing(), "listDomains 200"); got != want {
			t.Errorf("after %s: Missing has listDomains 200: got %t want %t", method, got, want)
		}
	}
	if got, want := len(v.Missing()), len(before)-1; got != want {
		t.Errorf("Missing: got %d want %d", got, want)
	}
}

func TestNewRejects(t *testing.T) {
	t.Parallel()
	good := string(document(t))
	for _, tt := range []struct{ name, document string }{
		{name: "no document", document: "dmarcd"},
		{name: "no server", document: `{"openapi":"3.1.1","info":{"title":"a","version":"1"},"paths":{}}`},
		{name: "no description of the refusals", document: strings.Replace(good, `"PathNotFound": {`, `"NoPath": {`, 1)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if _, err := apitest.New([]byte(tt.document)); err == nil {
				t.Error("New: got nil want an error")
			}
		})
	}
}
