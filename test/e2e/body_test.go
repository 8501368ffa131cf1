package e2e_test

import (
	"net/http"
	"strings"
	"testing"
)

func bodiesOfACreation(t *testing.T, s *server) {
	in := s.in
	rows := []struct {
		name string
		body string
		want int
		adds string // the domain, if want is 201
	}{
		{"empty", "", 400, ""},
		{"blank", " \n", 400, ""},
		{"cut short", `{"domain":"cut.example"`, 400, ""},
		{"no JSON", `domain=a.example`, 400, ""},
		{"single quotes", `{'domain':'a.example'}`, 400, ""},
		{"a byte order mark", "\ufeff" + `{"domain":"a.example"}`, 400, ""},
		{"a second value", `{"domain":"a.example"}{}`, 400, ""},
		{"trailing data", `{"domain":"a.example"}x`, 400, ""},
		{"a trailing comma", `{"domain":"a.example",}`, 400, ""},
		{"not UTF-8 in the name", "{\"domain\":\"\xff.example\"}", 400, ""},
		{"not UTF-8 elsewhere", "{\"domain\":\"a.example\",\"note\":\"\xc3\x28\"}", 400, ""},
		{"null", `null`, 422, ""},
		{"a number", `1`, 422, ""},
		{"a string", `"a.example"`, 422, ""},
		{"an array", `[{"domain":"a.example"}]`, 422, ""},
		{"no member", `{}`, 422, ""},
		{"another member", `{"name":"a.example"}`, 422, ""},
		{"the member in another case", `{"Domain":"a.example"}`, 422, ""},
		{"domain null", `{"domain":null}`, 422, ""},
		{"domain a number", `{"domain":1}`, 422, ""},
		{"domain an array", `{"domain":["a.example"]}`, 422, ""},
		{"domain empty", `{"domain":""}`, 422, ""},
		{"domain no name", `{"domain":"a_b"}`, 422, ""},
		{"half a surrogate pair", `{"domain":"\ud800.example"}`, 422, ""},
		{"the last is no string", `{"domain":"a.example","domain":1}`, 422, ""},
		{"blanks around", " \r\n\t" + `{ "domain" : "blank.example" }` + "\n ", 201, "blank.example"},
		{"unknown members", `{"active":"no","x":{"y":[1,{}]},"domain":"unknown.example","id":7}`, 201, "unknown.example"},
		{"a name escaped by JSON", `{"domain":"\u0065scaped\u002eexample"}`, 201, "escaped.example"},
		{"a member escaped by JSON", `{"\u0064omain":"member.example"}`, 201, "member.example"},
		{"the last counts", `{"domain":"first.example","domain":"last.example"}`, 201, "last.example"},
		{"the last counts whatever the first is", `{"domain":1,"domain":"second.example"}`, 201, "second.example"},
		{"another case is another member", `{"domain":"lower.example","DOMAIN":"upper.example"}`, 201, "lower.example"},
	}
	var want int
	for _, row := range rows {
		a := s.send(request{method: http.MethodPost, path: "/domains", token: in.token, body: row.body, header: jsonType()})
		if a.status != row.want {
			t.Errorf("%s: got status %d want %d: %s", row.name, a.status, row.want, a.body)
		}
		if row.adds != "" {
			want++
			if a.status == http.StatusCreated && readDomain(t, a.body).Domain != row.adds {
				t.Errorf("%s: got %s want %s", row.name, a.body, row.adds)
			}
		}
	}
	if got := s.list(); len(got) != want {
		t.Errorf("got the domains %v want %d", got, want)
	}
}

func mediaTypesOfACreation(t *testing.T, s *server) {
	in := s.in
	rows := []struct {
		name   string
		header map[string]string
		want   int
	}{
		{"none", nil, 415},
		{"plain text", map[string]string{"Content-Type": "text/plain"}, 415},
		{"a form", map[string]string{"Content-Type": "application/x-www-form-urlencoded"}, 415},
		{"a type that ends in json", map[string]string{"Content-Type": "application/problem+json"}, 415},
		{"a type that begins so", map[string]string{"Content-Type": "application/jsonx"}, 415},
		{"two types", map[string]string{"Content-Type": "text/plain, application/json"}, 415},
		{"gzip", map[string]string{"Content-Type": "application/json", "Content-Encoding": "gzip"}, 415},
		{"identity", map[string]string{"Content-Type": "application/json", "Content-Encoding": "identity"}, 415},
		{"plain", map[string]string{"Content-Type": "application/json"}, 201},
		{"a parameter", map[string]string{"Content-Type": "application/json; charset=utf-8"}, 409},
		{"a parameter without a blank", map[string]string{"Content-Type": `application/json;charset="UTF-8"`}, 409},
		{"upper case", map[string]string{"Content-Type": "Application/JSON"}, 409},
	}
	for _, row := range rows {
		a := s.send(request{
			method: http.MethodPost, path: "/domains", token: in.token,
			body: `{"domain":"media.example"}`, header: row.header,
		})
		if a.status != row.want {
			t.Errorf("%s: got status %d want %d: %s", row.name, a.status, row.want, a.body)
		}
	}
}

func bodiesAreLimited(t *testing.T, s *server) {
	const limit = 64 << 10
	padded := func(name string, size int) string {
		body := `{"domain":"` + name + `"}`
		return body + strings.Repeat(" ", size-len(body))
	}
	in := s.in
	rows := []struct {
		name    string
		body    string
		chunked bool
		want    int
	}{
		{"exactly 64 KiB", padded("exact.example", limit), false, 201},
		{"exactly 64 KiB in chunks", padded("chunks.example", limit), true, 201},
		{"one byte more", padded("more.example", limit+1), false, 413},
		{"one byte more in chunks", padded("more.example", limit+1), true, 413},
		{"a mebibyte in chunks", padded("more.example", 1<<20), true, 413},
	}
	for _, row := range rows {
		a := s.send(request{
			method: http.MethodPost, path: "/domains", token: in.token,
			body: row.body, header: jsonType(), chunked: row.chunked,
		})
		if a.status != row.want {
			t.Errorf("%s: got status %d want %d: %s", row.name, a.status, row.want, a.body)
		}
	}
}
