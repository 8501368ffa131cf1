package e2e_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd/internal/musttest"
)

var nextPattern = regexp.MustCompile(`^<([^<>]+)>; rel="next"$`)

// addMany adds domains on the command line, which does not query DNS.
func (in *installation) addMany(list []string) {
	in.t.Helper()
	r := in.run(command{args: []string{"domain", "add", "--team", "default", "-"}, stdin: strings.Join(list, "\n")})
	if r.Status != 0 {
		in.t.Fatalf("add %d domains: got status %d want 0: %s", len(list), r.Status, r.Stderr)
	}
}

// unordered returns names whose byte order differs from dictionary order.
func unordered() []string {
	return []string{
		"b.example", "a.example", "ab.example", "a-b.example", "a.b.example", "a1.example", "z.a.example",
		"xn--bcher-kva.example", "0.example", "10.example", "9.example", "a.exampl", "a.examples",
	}
}

func listIsOrderedByName(t *testing.T, s *server) {
	in := s.in
	in.addMany(unordered())
	want := slices.Sorted(slices.Values(unordered()))
	if diff := cmp.Diff(want, s.list()); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

func listIsPaged(t *testing.T, s *server) {
	in := s.in
	in.addMany(unordered())
	want := slices.Sorted(slices.Values(unordered()))
	for _, limit := range []int{1, 5, len(want) - 1, len(want), len(want) + 1, 1000} {
		var got []string
		pages := 0
		for path := fmt.Sprintf("/domains?limit=%d", limit); path != ""; pages++ {
			a := s.get(path)
			a.wantStatus(t, http.StatusOK)
			page := names(readDomains(t, a.body))
			if len(page) > limit {
				t.Fatalf("limit %d: got a page of %d", limit, len(page))
			}
			got = append(got, page...)
			path = s.nextPage(a)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("limit %d: all pages (-want +got):\n%s", limit, diff)
		}
		if wantPages := (len(want) + limit - 1) / limit; pages != wantPages {
			t.Errorf("limit %d: got %d pages want %d", limit, pages, wantPages)
		}
	}
}

// nextPage returns the path of the next page below the prefix, or "".
func (s *server) nextPage(a answer) string {
	s.in.t.Helper()
	link := a.header.Get("Link")
	if link == "" {
		return ""
	}
	match := nextPattern.FindStringSubmatch(link)
	if match == nil {
		s.in.t.Fatalf(`Link: got %q want <...>; rel="next"`, link)
	}
	path, ok := strings.CutPrefix(match[1], s.baseURL)
	if !ok {
		s.in.t.Fatalf("Link: got %s want an address below %s", match[1], s.baseURL)
	}
	return path
}

func queriesOfTheList(t *testing.T, s *server) {
	in := s.in
	in.addMany([]string{"a.example", "b.example", "c.example"})
	rows := []struct {
		query string
		want  []string // nil: 422
	}{
		{"", []string{"a.example", "b.example", "c.example"}},
		{"limit=2", []string{"a.example", "b.example"}},
		{"limit=1000", []string{"a.example", "b.example", "c.example"}},
		{"after=a.example", []string{"b.example", "c.example"}},
		{"after=aa.example", []string{"b.example", "c.example"}},
		{"after=A.EXAMPLE.", []string{"b.example", "c.example"}},
		{"after=%20a.example%20", []string{"b.example", "c.example"}},
		{"after=c.example", []string{}},
		{"after=a.example&limit=1", []string{"b.example"}},
		{"unknown=1&from=x", []string{"a.example", "b.example", "c.example"}},
		{"limit=0", nil},
		{"limit=1001", nil},
		{"limit=-1", nil},
		{"limit=1.5", nil},
		{"limit=1e2", nil},
		{"limit=ten", nil},
		{"limit=99999999999999999999", nil},
		{"after=a_b.example", nil},
		{"after=..", nil},
	}
	for _, row := range rows {
		a := s.get("/domains?" + row.query)
		if row.want == nil {
			a.wantStatus(t, http.StatusUnprocessableEntity)
			continue
		}
		if a.status != http.StatusOK {
			t.Errorf("%s: got status %d want 200: %s", row.query, a.status, a.body)
			continue
		}
		if diff := cmp.Diff(row.want, names(readDomains(t, a.body))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", row.query, diff)
		}
		if !strings.Contains(row.query, "limit") && a.header.Get("Link") != "" {
			t.Errorf("%s: got a Link want none without a limit", row.query)
		}
	}
	s.get("/domains?after=c.example").wantBody(t, `[]`)
}

func longListIsCompressedOnRequest(t *testing.T, s *server) {
	in := s.in
	var list []string
	for i := range 300 {
		list = append(list, fmt.Sprintf("d%d.example", i))
	}
	in.addMany(list)
	asking := func(encoding string) answer {
		return s.send(request{
			method: http.MethodGet, path: "/domains", token: in.token,
			header: map[string]string{"Accept-Encoding": encoding},
			// The validator does not decompress.
			undocumented: encoding == "gzip",
		})
	}
	// The schedule may check a domain between two lists, without a visible change.
	packed, plain, rejected := asking("gzip"), s.get("/domains"), asking("gzip;q=0")
	if got := packed.header.Get("Content-Encoding"); got != "gzip" {
		t.Fatalf("Content-Encoding: got %q want gzip", got)
	}
	for _, a := range []answer{plain, rejected} {
		if got := a.header.Get("Content-Encoding"); got != "" {
			t.Errorf("Content-Encoding: got %q want none", got)
		}
	}
	for _, a := range []answer{packed, plain} {
		if got := a.header.Get("Vary"); !strings.Contains(got, "Accept-Encoding") {
			t.Errorf("Vary: got %q want Accept-Encoding", got)
		}
	}
	reader := musttest.Get(gzip.NewReader(bytes.NewReader(packed.body)))(t)
	unpacked := musttest.Get(io.ReadAll(reader))(t)
	if !bytes.Equal(unpacked, plain.body) || !bytes.Equal(rejected.body, plain.body) {
		t.Errorf("the unpacked list differs from the plain one")
	}
	if len(packed.body) > len(plain.body)/2 {
		t.Errorf("got %d bytes packed, %d plain", len(packed.body), len(plain.body))
	}
}
