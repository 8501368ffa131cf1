package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/api"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// node is an object of the document.
type node = map[string]any

// documentedOperation is an operation of the document with its parameters and the schema and
// example of its JSON body, nil if it reads none. An upload reads any other body.
type documentedOperation struct {
	method, path string
	parameters   []node
	body         node
	example      any
	upload       bool
}

// openAPI is the document, as a source of requests.
type openAPI struct {
	root   node
	random *rand.Rand
}

func readOpenAPI(t *testing.T) *openAPI {
	t.Helper()
	d := &openAPI{random: rand.New(rand.NewPCG(36, 1))} // the same requests in every run
	musttest.Do(t, json.Unmarshal(musttest.Get(api.Document(base))(t), &d.root))
	return d
}

// resolve follows a reference.
func (d *openAPI) resolve(value any) node {
	n, _ := value.(node)
	if ref, ok := n["$ref"].(string); ok {
		at := any(d.root)
		for key := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
			at = at.(node)[key]
		}
		return d.resolve(at)
	}
	return n
}

// operations returns all operations that need a token, sorted.
func (d *openAPI) operations() (all []documentedOperation) {
	paths := d.root["paths"].(node)
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		item := paths[path].(node)
		for _, method := range slices.Sorted(maps.Keys(item)) {
			definition, ok := item[method].(node)
			if !ok || definition["security"] != nil {
				continue
			}
			o := documentedOperation{method: strings.ToUpper(method), path: path}
			for _, from := range []any{item["parameters"], definition["parameters"]} {
				list, _ := from.([]any)
				for _, parameter := range list {
					o.parameters = append(o.parameters, d.resolve(parameter))
				}
			}
			content, _ := d.resolve(definition["requestBody"])["content"].(node)
			if media, ok := content["application/json"].(node); ok {
				o.body = d.resolve(media["schema"])
				o.example = d.exampleOf(media)
			}
			o.upload = content["application/octet-stream"] != nil
			all = append(all, o)
		}
	}
	return all
}

// exampleOf returns the first example of a parameter or body.
func (d *openAPI) exampleOf(n node) any {
	if example, ok := n["example"]; ok {
		return example
	}
	examples, _ := n["examples"].(node)
	for _, name := range slices.Sorted(maps.Keys(examples)) {
		return d.resolve(examples[name])["value"]
	}
	return d.resolve(n["schema"])["example"]
}

// hostile are values that no parameter and no member has.
var hostile = []string{
	"", "x", "-1", "0", "99999999999999999999", "1e9", "\x00", "\xff", "🙂", "%", "null", "true", "2026-13-45", "0000-00-00", "9999-12-31",
	"../../etc/passwd", "' OR 1=1 --", "<script>", "MTIz", "-", ".", "*", strings.Repeat("a", 5000), "rep_1", "example.com.", "xn--a", "[]", "{}",
}

// text returns a value for a parameter: one as documented, or any other.
func (d *openAPI) text(parameter node) string {
	if d.random.IntN(3) == 0 {
		return hostile[d.random.IntN(len(hostile))]
	}
	if parameter["name"] == "domain" {
		return "example.com"
	}
	if parameter["name"] == "wait" {
		return "0" // seconds
	}
	if example := d.exampleOf(parameter); example != nil && d.random.IntN(2) == 0 {
		return strings.Trim(string(encodeJSON(example)), `"`)
	}
	return strings.Trim(string(encodeJSON(d.value(d.resolve(parameter["schema"]), 0))), `"`)
}

// value returns a value for a schema, mostly a valid one.
func (d *openAPI) value(schema node, depth int) any {
	if d.random.IntN(12) == 0 {
		return []any{nil, true, -1, 1e300, "\x00", []any{}, node{"x": 1}, hostile[d.random.IntN(len(hostile))]}[d.random.IntN(8)]
	}
	for _, choice := range []string{"oneOf", "anyOf", "allOf"} {
		if list, ok := schema[choice].([]any); ok {
			return d.value(d.resolve(list[d.random.IntN(len(list))]), depth)
		}
	}
	if words, ok := schema["enum"].([]any); ok {
		return words[d.random.IntN(len(words))]
	}
	if example, ok := schema["example"]; ok && d.random.IntN(2) == 0 {
		return example
	}
	kinds, ok := schema["type"].([]any)
	if !ok {
		kinds = []any{schema["type"]}
	}
	switch kinds[d.random.IntN(len(kinds))] {
	case "boolean":
		return d.random.IntN(2) == 0
	case "integer", "number":
		return d.random.IntN(1000)
	case "array":
		list := []any{}
		for range d.random.IntN(4) {
			list = append(list, d.value(d.resolve(schema["items"]), depth+1))
		}
		return list
	case "object":
		object := node{}
		properties, _ := schema["properties"].(node)
		required, _ := schema["required"].([]any)
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			if depth < 4 && (slices.Contains(required, any(name)) || d.random.IntN(2) == 0) {
				object[name] = d.value(d.resolve(properties[name]), depth+1)
			}
		}
		return object
	case "string":
		switch schema["format"] {
		case "date":
			return "2024-10-0" + itoa(1+d.random.IntN(9))
		case "date-time":
			return "2026-11-15T09:30:00+00:00"
		}
		return []string{"example.com", "2024-10-04", "shop", "192.0.2.1", "https://hooks.example/dmarc"}[d.random.IntN(5)]
	}
	return nil
}

func encodeJSON(value any) []byte {
	encoded, err := json.Marshal(value)
	if err != nil {
		panic(err) // of the types of package json
	}
	return encoded
}

// request returns a random request of an operation, and its body.
func (d *openAPI) request(o documentedOperation, ids map[string][]string) (path string, body []byte) {
	path, query := o.path, url.Values{}
	for _, parameter := range o.parameters {
		name := parameter["name"].(string)
		switch parameter["in"] {
		case "path":
			value := d.text(parameter)
			list, _, _ := strings.Cut(o.path, "/{"+name)
			if known := ids[list]; len(known) > 0 && d.random.IntN(2) == 0 {
				value = known[d.random.IntN(len(known))]
			}
			path = strings.ReplaceAll(path, "{"+name+"}", url.PathEscape(value))
		case "query":
			if parameter["required"] == true || d.random.IntN(5) < 2 {
				query.Set(name, d.text(parameter))
			}
		}
	}
	if d.random.IntN(20) == 0 {
		query.Set("colour", "red")
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	switch {
	case o.upload:
		body = d.uploaded()
	case o.body == nil:
	case d.random.IntN(10) == 0:
		body = []byte([]string{"", "{", "[]", "null", "\xff", `{"a":1}`, `"x"`}[d.random.IntN(7)])
	default:
		body = encodeJSON(d.value(o.body, 0))
	}
	return path, body
}

// uploaded returns a report, a part of one, or anything else.
func (d *openAPI) uploaded() []byte {
	report := aggregateXML(itoa(d.random.IntN(3)), "example.com", firstDay+1, row{"example.com", "none", "pass", 5})
	if d.random.IntN(2) == 0 {
		report = tlsJSON(itoa(d.random.IntN(3)), "example.com")
	}
	switch d.random.IntN(4) {
	case 0:
		return []byte(hostile[d.random.IntN(len(hostile))])
	case 1:
		return report[:d.random.IntN(len(report))]
	case 2:
		report[d.random.IntN(len(report))] ^= 1 << d.random.IntN(8)
	}
	return report
}

// anyScope authenticates every token with a scope of its own choice.
type anyScope struct {
	onlyTeam

	random *rand.Rand
}

func (a anyScope) Authenticate(ctx context.Context, token, from string) (dmarcd.Credential, error) {
	credential, err := a.onlyTeam.Authenticate(ctx, token, from)
	if n := a.random.IntN(8); n < 4 {
		credential.Token.Scope = []dmarcd.Scope{dmarcd.ScopeRead, dmarcd.ScopeWrite, dmarcd.ScopePublish, dmarcd.ScopePublish}[n]
	}
	return credential, err
}

// populated returns a service with a domain, reports and something rejected, and the ids in its
// lists, by path.
func populated(t *testing.T, db storetest.DB) (s *service, ids map[string][]string) {
	t.Helper()
	s = newService(t, db.Open(t, store.Options{}))
	s.add("example.com")
	musttest.Get(s.store.OpenZone(t.Context(), "dns.example.net", ""))(t)
	ids = map[string][]string{"/domains": {"example.com"}}
	for i := range 3 {
		ids["/insights/reports"] = append(ids["/insights/reports"], s.stored(aggregateXML(itoa(i), "example.com", firstDay+1, row{"example.com", "none", "pass", 5})))
	}
	s.stored(tlsJSON("tls", "example.com"))
	s.upload([]byte("hello"))
	for _, rejected := range read[page[listed]](t, s.get("/insights/rejected"), http.StatusOK).Items {
		ids["/insights/rejected"] = append(ids["/insights/rejected"], rejected.ID)
	}
	return s, ids
}

func (s *service) sendJSON(method, path string, body []byte) answer {
	s.t.Helper()
	r := s.request(method, path, bytes.NewReader(body))
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	return s.send(r)
}

// TestRandomRequests sends requests made of the document, valid and invalid, to every operation:
// every answer is as documented, and none is a failure of the server. Tokens of all scopes send them.
func TestRandomRequests(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		return // takes seconds of processor time
	}
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s, ids := populated(t, db)
		d := readOpenAPI(t)
		options := newOptions(t, s.store, anyScope{tokenOf(t, s.store, s.id), d.random})
		s.api = musttest.Get(api.New(options.Options))(t)
		var sent, succeeded int
		for _, o := range d.operations() {
			s.add("example.com") // which an operation may have deleted
			for range 25 {
				path, body := d.request(o, ids)
				got := s.sendJSON(o.method, path, body)
				if t.Failed() || got.status >= http.StatusInternalServerError {
					t.Fatalf("%s %.300s %.300s: got %d: %s", o.method, path, body, got.status, got.body)
				}
				sent++
				if got.status < http.StatusBadRequest {
					succeeded++
				}
			}
		}
		if succeeded < sent/10 {
			t.Errorf("got %d successes of %d requests, want a tenth", succeeded, sent)
		}
	})
}

// TestBadInputChangesNothing sends wrong types and unknown members to every operation that reads a
// body, and a cursor of another list to every list. Each is answered with a code.
func TestBadInputChangesNothing(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s, _ := populated(t, db)
		s.api = mustNew(t, newOptions(t, s.store, byWord{tokenOf(t, s.store, s.id)}))
		d := readOpenAPI(t)
		before := db.Dump(t)
		cursor := read[page[listed]](t, s.get("/insights/reports?limit=1"), http.StatusOK).Next
		wantBadInput := func(o documentedOperation, query string, body []byte) {
			t.Helper()
			path := o.path + query
			for _, parameter := range o.parameters {
				if parameter["in"] == "path" {
					value, _ := d.exampleOf(parameter).(string)
					path = strings.ReplaceAll(path, "{"+parameter["name"].(string)+"}", url.PathEscape(value))
				}
			}
			r := s.request(o.method, path, bytes.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			if strings.Contains(o.path, "/records/{kind}") || strings.HasSuffix(o.path, "/target") {
				r.Header.Set("Authorization", "Bearer publish")
			}
			got := s.send(r)
			if got.status != http.StatusBadRequest && got.status != http.StatusUnprocessableEntity || got.header.Get("Dmarcd-Error") == "" {
				t.Errorf("%s %s %s: got %d, want 400 or 422 with a code: %s", o.method, path, body, got.status, got.body)
			}
		}
		for _, o := range d.operations() {
			if isList := slices.ContainsFunc(o.parameters, func(p node) bool { return p["name"] == "after" }); isList && o.path != "/domains" {
				if o.path == "/insights/reports" {
					read[page[listed]](t, s.get(o.path+"?after="+*cursor), http.StatusOK)
				} else {
					wantBadInput(o, "?after="+*cursor, nil)
				}
			}
			if o.body == nil {
				continue
			}
			for _, body := range []string{"", "{", "[]", "null", `"x"`, "7"} {
				wantBadInput(o, "", []byte(body))
			}
			valid, _ := o.example.(node)
			for name, schema := range o.body["properties"].(node) {
				wrong := maps.Clone(valid)
				wrong[name] = node{"x": []any{1}}
				if d.resolve(schema)["type"] == "object" {
					wrong[name] = "x"
				}
				wantBadInput(o, "", encodeJSON(wrong))
			}
			if o.path != "/domains" { // the interface ignores members that it does not know
				unknown := maps.Clone(valid)
				unknown["colour"] = "red"
				wantBadInput(o, "", encodeJSON(unknown))
			}
		}
		if after := db.Dump(t); after != before {
			t.Error("the data of the team is not what it was before")
		}
	})
}
