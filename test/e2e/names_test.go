package e2e_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// label63 is the longest label, and name253 the longest name.
var (
	label63 = strings.Repeat("a", 63)
	name253 = strings.Join([]string{label63, label63, label63, strings.Repeat("b", 61)}, ".")
)

func namesAreNormalized(t *testing.T, s *server) {
	rows := []struct{ name, input, want string }{
		{"plain", "example.com", "example.com"},
		{"upper case", "UPPER.Example", "upper.example"},
		{"trailing dot", "dot.example.", "dot.example"},
		{"blanks around", " \t\r\nblanks.example\n ", "blanks.example"},
		{"blanks, upper case and a dot", " ALL.example. ", "all.example"},
		{"Unicode", "bücher.example", "xn--bcher-kva.example"},
		{"Unicode in upper case", "MÜNCHEN.example", "xn--mnchen-3ya.example"},
		{"Unicode not composed", "zu\u0308rich.example", "xn--zrich-kva.example"},
		{"sharp s stays itself", "straße.example", "xn--strae-oqa.example"},
		{"Unicode in every label", "例え.テスト", "xn--r8jz45g.xn--zckzah"},
		{"full-width letters", "ｗｉｄｅ.example", "wide.example"},
		{"A-label", "xn--kln-sna.example", "xn--kln-sna.example"},
		{"A-label in upper case", "XN--DSSELDORF-Q9A.example", "xn--dsseldorf-q9a.example"},
		{"two labels of one letter", "a.b", "a.b"},
		{"digits in front", "123.example", "123.example"},
		{"last label partly digits", "example.a1", "example.a1"},
		{"hyphens inside", "a-b--c.example", "a-b--c.example"},
		{"hyphens at third and fourth place", "ab--cd.example", "ab--cd.example"},
		{"longest label", label63 + ".example", label63 + ".example"},
		{"longest name", name253, name253},
		{"many labels", strings.Repeat("l.", 100) + "example", strings.Repeat("l.", 100) + "example"},
	}
	in := s.in
	for _, row := range rows {
		a := s.send(adding(in.token, row.input))
		if a.status != http.StatusCreated {
			t.Errorf("%s: got status %d want 201: %s", row.name, a.status, a.body)
			continue
		}
		if got := readDomain(t, a.body).Domain; got != row.want {
			t.Errorf("%s: got %s want %s", row.name, got, row.want)
		}
		if got, want := a.header.Get("Location"), s.baseURL+"/domains/"+row.want; got != want {
			t.Errorf("%s: Location: got %s want %s", row.name, got, want)
		}
		s.send(adding(in.token, row.want)).wantStatus(t, http.StatusConflict)
		for _, path := range []string{"/domains/", "/reports/"} {
			for _, spelling := range []string{row.input, row.want} {
				s.get(path+url.PathEscape(spelling)).wantStatus(t, http.StatusOK)
			}
		}
		s.send(verifying(in.token, row.input)).wantStatus(t, http.StatusOK)
		s.send(request{method: http.MethodDelete, path: "/domains/" + url.PathEscape(row.input), token: in.token}).wantStatus(t, http.StatusNoContent)
	}
}

func namesThatAreRejected(t *testing.T, s *server) {
	rows := []struct{ name, input string }{
		{"nothing", ""},
		{"blanks", "  "},
		{"a dot", "."},
		{"two dots", ".."},
		{"one label", "localhost"},
		{"one label with a dot", "com."},
		{"two trailing dots", "example.com.."},
		{"leading dot", ".example.com"},
		{"empty label", "a..example"},
		{"label of 64", label63 + "a.example"},
		{"name of 254", name253 + "b"},
		{"hyphen in front", "-a.example"},
		{"hyphen at the end", "a-.example"},
		{"hyphen at the end of the last label", "example.com-"},
		{"underscore", "a_b.example"},
		{"underscore in front", "_dmarc.example.com"},
		{"last label all digits", "example.123"},
		{"IPv4 address", "192.0.2.1"},
		{"IPv6 address", "2001:db8::1"},
		{"IPv6 address in brackets", "[2001:db8::1]"},
		{"URL", "https://example.com"},
		{"URL without a scheme", "//example.com"},
		{"path", "example.com/path"},
		{"query", "example.com?x"},
		{"wildcard", "*.example.com"},
		{"port", "example.com:25"},
		{"mail address", "user@example.com"},
		{"blank inside", "exam ple.com"},
		{"line break inside", "example\n.com"},
		{"NUL", "example.com\x00"},
		{"quotes", `"example".com`},
		{"percent sign", "example%2Ecom"},
		{"A-label that decodes to nothing", "xn--.example"},
		{"A-label that is no encoding", "xn--99999999.example"},
		{"A-label of plain ASCII", "xn--abc-.example"},
		{"joiner out of place", "a\u200db.example"},
		{"too long after the conversion", strings.Repeat("ü", 63) + ".example"},
	}
	in := s.in
	for _, row := range rows {
		s.send(adding(in.token, row.input)).wantStatus(t, http.StatusUnprocessableEntity)
		escaped := url.PathEscape(row.input)
		for _, e := range []endpoint{
			{http.MethodGet, "/domains/" + escaped, false},
			{http.MethodDelete, "/domains/" + escaped, true},
			{http.MethodPost, "/domains/" + escaped + "/verify", true},
			{http.MethodGet, "/reports/" + escaped, false},
		} {
			s.send(e.request(in.token)).wantStatus(t, http.StatusNotFound)
		}
	}
	if got := s.list(); len(got) != 0 {
		t.Errorf("got the domains %q want none", got)
	}
}

func namesInPathsAreDecodedOnce(t *testing.T, s *server) {
	in := s.in
	s.add("example.com")
	s.add("bücher.example")
	rows := []struct {
		name, path string
		want       int
	}{
		{"upper case and a dot", "EXAMPLE.com.", 200},
		{"an encoded dot", "example%2Ecom", 200},
		{"all encoded", "%65%78%61%6d%70%6c%65%2e%63%6f%6d%2E", 200},
		{"encoded blanks around", "%20example.com%20%09", 200},
		{"encoded Unicode", "b%C3%BCcher.example", 200},
		{"encoded Unicode in upper case", "B%C3%9CCHER.EXAMPLE", 200},
		{"the A-label", "xn--bcher-kva.example", 200},
		{"encoded twice", "example%252Ecom", 404},
		{"blanks encoded twice", "%2520example.com", 404},
		{"a plus is no blank", "+example.com", 404},
		{"not UTF-8", "%FFexample.com", 404},
		{"an encoded slash", "example.com%2F", 404},
		{"an encoded NUL", "example.com%00", 404},
	}
	for _, row := range rows {
		for _, collection := range []string{"/domains/", "/reports/"} {
			s.get(collection+row.path).wantStatus(t, row.want)
		}
		s.send(request{method: http.MethodPost, path: "/domains/" + row.path + "/verify", token: in.token}).wantStatus(t, row.want)
	}
}
