package app_test

import (
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

var tlsReportURL = regexp.MustCompile(`mailto:([a-z2-7]+)@reports\.example,https://dmarc\.example(/tlsrpt/[a-z2-7]+)"`)

// TestTLSReportsComeWhereTheSetupSays delivers a report by HTTPS to the address that a
// domain's owner is told to publish.
func TestTLSReportsComeWhereTheSetupSays(t *testing.T) {
	t.Parallel()
	d := start(t, storetest.SQLite(t), "DMARCD_BASE_URL=https://dmarc.example/api", "DMARCD_REPORT_DOMAIN=reports.example")
	origin, token := "http://"+d.listen, tokenForm.FindString(d.out)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	if status := ask(t, client, http.MethodPost, origin+"/api/domains", token, `{"domain": "example.com"}`); status != http.StatusCreated {
		t.Fatalf("got %d, want 201", status)
	}
	_, setup := get(t, origin+"/api/domains/example.com/setup", token)
	uri := tlsReportURL.FindStringSubmatch(setup)
	if uri == nil || !strings.HasSuffix(uri[2], "/"+uri[1]) {
		t.Fatalf("got %s, want a record with both ways to the mailbox of the domain", setup)
	}
	report := musttest.Get(os.ReadFile("../../tlsrpt/testdata/report/details-exceed.json"))(t)
	if status := ask(t, client, http.MethodPost, origin+uri[2], "", string(report)); status != http.StatusCreated {
		t.Errorf("got %d, want the report to be taken", status)
	}
}
