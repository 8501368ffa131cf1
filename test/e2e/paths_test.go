package e2e_test

import (
	"net/http"
	"strings"
	"testing"
)

func pathsAreTakenAsTheyStand(t *testing.T, s *server) {
	in := s.in
	s.add("example.com")
	paths := []string{
		"/", "//", "//domains", "/domains/", "/domains//", "/domains//example.com", "/domains/example.com/",
		"/domains/example.com//verify", "/domains/example.com/other", "/./domains", "/x/../domains",
		"/domains/../reports", "/domains/example.com/..", "/domains/example.com/../example.com",
		"/domains%2Fexample.com", "/domains/example.com%2Fverify", "/%2e%2e/api/domains", "/Domains", "/DOMAINS",
		"/reports/", "/reports//", "/docs/", "/openapi.json/", "/openapi", "/index.html", "/healthz", "/metrics", "/mcp",
	}
	for _, path := range paths {
		s.send(request{method: http.MethodGet, path: path, token: in.token}).wantStatus(t, http.StatusNotFound)
		s.send(request{method: http.MethodGet, path: path}).wantStatus(t, http.StatusUnauthorized)
	}
	for _, path := range []string{"/domains/example.com/verify/", "//domains/example.com/verify", "/domains/a/b/verify"} {
		s.send(request{method: http.MethodPost, path: path, token: in.token}).wantStatus(t, http.StatusNotFound)
	}
	s.send(request{method: http.MethodGet, path: "", token: in.token, undocumented: true}).wantStatus(t, http.StatusNotFound)
	s.outside("/apis/domains").wantStatus(t, http.StatusNotFound)
}

func TestPrefixIsConfigured(t *testing.T) {
	rows := []struct{ name, baseURL, prefix string }{
		{"the root with a slash", "https://dmarc.example.org/", ""},
		{"the root without a slash", "https://dmarc.example.org", ""},
		{"two segments", "https://dmarc.example.org/monitor/v1", "/monitor/v1"},
		{"two segments with a slash", "https://dmarc.example.org/monitor/v1/", "/monitor/v1"},
	}
	t.Parallel()
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			onSQLite(t, exampleZone, func(t *testing.T, in *installation) {
				s := in.serve("DMARCD_BASE_URL=" + row.baseURL)
				a := s.send(adding(in.token, "example.com"))
				a.wantStatus(t, http.StatusCreated)
				want := "https://dmarc.example.org" + row.prefix + "/domains/example.com"
				if got := a.header.Get("Location"); got != want {
					t.Errorf("Location: got %s want %s", got, want)
				}
				s.add("example.net")
				if got := s.nextPage(s.get("/domains?limit=1")); !strings.HasPrefix(got, "/domains?") {
					t.Errorf("the next page: got %s want one of /domains", got)
				}
				s.get("/no/such/path").wantStatus(t, http.StatusNotFound)
				s.send(request{method: http.MethodGet, path: "/no/such/path"}).wantStatus(t, http.StatusUnauthorized)
				for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
					s.outside(path).wantStatus(t, http.StatusOK)
				}
				other := s.outside("/api/domains")
				if row.prefix == "" {
					other.wantStatus(t, http.StatusUnauthorized)
				} else {
					other.wantStatus(t, http.StatusNotFound)
				}
			})
		})
	}
}

func TestCrossOriginRequests(t *testing.T) {
	const origin = "https://app.example.org"
	preflight := func(from string) request {
		return request{
			method: http.MethodOptions, path: "/domains/example.com", undocumented: true,
			header: map[string]string{
				"Origin": from, "Access-Control-Request-Method": "DELETE",
				"Access-Control-Request-Headers": "authorization,content-type",
			},
		}
	}
	t.Parallel()
	t.Run("off", func(t *testing.T) {
		t.Parallel()
		onSQLite(t, "", func(t *testing.T, in *installation) {
			s := in.serve()
			r := preflight(origin)
			r.token = in.token
			s.send(r).wantStatus(t, http.StatusMethodNotAllowed)
			a := s.send(request{method: http.MethodGet, path: "/domains", token: in.token, header: map[string]string{"Origin": origin}})
			if got := a.header.Get("Access-Control-Allow-Origin"); got != "" {
				t.Errorf("Access-Control-Allow-Origin: got %q want none", got)
			}
		})
	})
	t.Run("on", func(t *testing.T) {
		t.Parallel()
		onSQLite(t, "", func(t *testing.T, in *installation) {
			s := in.serve("DMARCD_HTTP_CORS_ORIGINS=" + origin)
			a := s.send(preflight(origin))
			if a.status != http.StatusNoContent && a.status != http.StatusOK {
				t.Errorf("preflight: got status %d want 204", a.status)
			}
			if got := a.header.Get("Access-Control-Allow-Origin"); got != origin {
				t.Errorf("Access-Control-Allow-Origin: got %q want %q", got, origin)
			}
			if got := a.header.Get("Access-Control-Allow-Methods"); !strings.Contains(got, "PUT") || !strings.Contains(got, "DELETE") {
				t.Errorf("Access-Control-Allow-Methods: got %q want PUT and DELETE in it", got)
			}
			allowed := strings.ToLower(a.header.Get("Access-Control-Allow-Headers"))
			if !strings.Contains(allowed, "authorization") || !strings.Contains(allowed, "content-type") {
				t.Errorf("Access-Control-Allow-Headers: got %q want Authorization and Content-Type in it", allowed)
			}
			if got := s.send(preflight("https://evil.example")).header.Get("Access-Control-Allow-Origin"); got != "" {
				t.Errorf("preflight of another origin: got %q want none", got)
			}
			read := s.send(request{method: http.MethodGet, path: "/domains", token: in.token, header: map[string]string{"Origin": origin}})
			if got := read.header.Get("Access-Control-Allow-Origin"); got != origin {
				t.Errorf("a request of the page: Access-Control-Allow-Origin: got %q want %q", got, origin)
			}
			rejected := s.send(request{method: http.MethodGet, path: "/domains", header: map[string]string{"Origin": origin}})
			rejected.wantStatus(t, http.StatusUnauthorized)
			if got := rejected.header.Get("Access-Control-Allow-Origin"); got != origin {
				t.Errorf("a refusal that the page must read: Access-Control-Allow-Origin: got %q want %q", got, origin)
			}
		})
	})
}
