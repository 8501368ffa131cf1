package api_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// TestRecordFiles reads the record of a finding and of the next action, for a domain in a zone of
// its own, and for one in the zone of its organization.
func TestRecordFiles(t *testing.T) {
	t.Parallel()
	s := newService(t, storetest.SQLite(t).Open(t, store.Options{}))
	for domain, zone := range map[string]string{"shop.example.com": "shop.example.com", "blog.example.com": "example.com"} {
		s.add(domain)
		finding := dmarcd.Finding{ID: "dmarc.missing", Level: dmarcd.LevelError, What: "x", Record: dmarcd.DNSRecord{
			Name: "_dmarc." + domain, Type: "TXT", Data: "v=DMARC1; p=none",
		}}
		check := facts.Check{
			At: time.Now(), Conclusive: true, Asked: true, Facts: &facts.Facts{Domain: domain, DNSSEC: facts.DNSSEC{Zone: zone}},
			Findings: []dmarcd.Finding{finding}, Next: &finding,
		}
		musttest.Get(s.team.SaveCheck(t.Context(), domain, check, dmarcd.Plan{Next: time.Now().Add(time.Hour)}))(t)
		for _, path := range []string{"/domains/" + domain + "/checks/latest?format=bind", "/insights/advice?format=bind&domain=" + domain} {
			got := s.get(path)
			if want := `; Add to the zone ` + zone + `.`; got.status != http.StatusOK || !strings.Contains(string(got.body), want) ||
				!strings.Contains(string(got.body), "\n_dmarc."+domain+`. 3600 IN TXT "v=DMARC1; p=none`) {
				t.Errorf("%s: got %d %s want the record for %s", path, got.status, got.body, zone)
			}
			if media, name := got.header.Get("Content-Type"), got.header.Get("Content-Disposition"); media != "text/plain; charset=utf-8" || name != `attachment; filename="`+zone+`.zone"` {
				t.Errorf("%s: got the type %s and the disposition %s want a file of text", path, media, name)
			}
			request := s.request(http.MethodGet, path, http.NoBody)
			request.Header.Set("If-None-Match", got.header.Get("ETag"))
			if again := s.send(request); again.status != http.StatusNotModified {
				t.Errorf("%s: got %d want 304", path, again.status)
			}
		}
	}
	for path, code := range map[string]string{
		"/domains/shop.example.com/setup?format=bind":                            "no_record",
		"/domains/shop.example.com/setup?format=csv":                             "unknown_format",
		"/domains/shop.example.com/setup?format=":                                "unknown_format",
		"/domains/shop.example.com/setup?zone=example.com":                       "invalid_input",
		"/domains/shop.example.com/checks/latest?format=bind&zone=example.org":   "no_record",
		"/domains/shop.example.com/checks/latest?format=bind&zone=..":            "invalid_input",
		"/insights/advice?format=bind":                                           "invalid_input",
		"/insights/advice?format=csv&domain=shop.example.com":                    "unknown_format",
		"/insights/advice?format=bind&domain=shop.example.com&zone=notample.com": "no_record",
	} {
		if got := s.get(path); got.status != http.StatusUnprocessableEntity || got.header.Get("Dmarcd-Error") != code {
			t.Errorf("%s: got %d %s want 422 %s", path, got.status, got.body, code)
		}
	}
	if got := s.get("/domains/none.example/setup?format=bind"); got.status != http.StatusNotFound {
		t.Errorf("got %d want 404 for a domain of another team", got.status)
	}
}
