package api_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/intake"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/packtest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// deliver sends a TLS report as a reporter does, without a token.
func (s *service) deliver(method, mailbox string, body io.Reader) answer {
	s.t.Helper()
	r := httptest.NewRequestWithContext(s.t.Context(), method, "http://api.example"+dmarcd.TLSReportPath+mailbox, body)
	r.Header.Set("Content-Type", "application/tlsrpt+gzip")
	w := httptest.NewRecorder()
	s.api.ServeTLSReport(w, r)
	if got := w.Header().Get("Content-Type"); got != "application/json" {
		s.t.Errorf("Content-Type: got %q, want application/json", got)
	}
	return answer{w.Code, w.Header(), w.Body.Bytes()}
}

// mailbox returns the local part of a domain's reporting address.
func (s *service) mailbox(domain string) string {
	s.t.Helper()
	d := musttest.Get(s.team.Domain(s.t.Context(), domain))(s.t)
	mailbox, _, _ := strings.Cut(d.ReportAddress("reports.example"), "@")
	return mailbox
}

func TestTLSReportsAreDelivered(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := newService(t, db.Open(t, store.Options{}))
		s.add("example.com")
		mailbox := s.mailbox("example.com")
		report := tlsJSON("1", "example.com")
		for _, tt := range []struct {
			name, method, mailbox string
			body                  []byte
			want                  int
			message               string
		}{
			{"a report in gzip", "POST", mailbox, packtest.Gzip(report), 201, "stored"},
			{"the same as it is", "POST", mailbox, report, 200, "duplicate"},
			{"to the mailbox in capitals", "POST", strings.ToUpper(mailbox), report, 200, "duplicate"},
			{"about a domain that the team does not have", "POST", mailbox, tlsJSON("1", "unknown.example"), 201, "stored"},
			{"an aggregate report", "POST", mailbox, aggregateXML("2", "example.com", firstDay), 422, "only TLS reports"},
			{"a text", "POST", mailbox, []byte("hello"), 422, "not a report"},
			{"nothing", "POST", mailbox, nil, 400, "empty"},
			{"too much", "POST", mailbox, bytes.Repeat([]byte("x"), maxUpload+1), 413, "4 MiB"},
			{"to an unknown mailbox", "POST", "unknown", report, 404, "mailbox"},
			{"to no mailbox", "POST", "", report, 404, "mailbox"},
			{"to something below", "POST", mailbox + "/x", report, 404, "mailbox"},
			{"to what cannot be a name", "POST", "%00", report, 404, "mailbox"},
			{"another method", "GET", mailbox, nil, 405, "Allow"},
			{"another method to an unknown mailbox", "PUT", "unknown", report, 405, "Allow"},
		} {
			got := s.deliver(tt.method, tt.mailbox, bytes.NewReader(tt.body))
			if message := read[receipts](t, got, tt.want).Message; !strings.Contains(message, tt.message) {
				t.Errorf("%s: got %q, want it to say %q", tt.name, message, tt.message)
			}
			if allow := got.header.Get("Allow"); (allow == "POST") != (tt.want == 405) {
				t.Errorf("%s: got Allow %q with status %d", tt.name, allow, tt.want)
			}
		}
		if got := ids(read[page[listed]](t, s.get("/insights/reports?domain=example.com"), http.StatusOK)); len(got) != 1 {
			t.Errorf("got the reports %v, want one", got)
		}
		if got := read[page[listed]](t, s.get("/insights/rejected"), http.StatusOK).Items; len(got) != 0 {
			t.Errorf("got %+v, want nothing stored of what could not be read", got)
		}
	})
}

func TestTLSReportsHaveALimitByAddress(t *testing.T) {
	t.Parallel()
	s := newService(t, storetest.SQLite(t).Open(t, store.Options{}), func(o *options) { o.RateLimit = 0.001 })
	if got := s.deliver(http.MethodPost, "unknown", http.NoBody); got.status != http.StatusNotFound {
		t.Fatalf("got status %d, want 404", got.status)
	}
	got := s.deliver(http.MethodPost, "unknown", http.NoBody)
	if got.status != http.StatusTooManyRequests || got.header.Get("Retry-After") == "" {
		t.Errorf("got status %d and Retry-After %q, want 429 with it", got.status, got.header.Get("Retry-After"))
	}
}

// TestQuotasAndTheDisk exhausts the quota of a team, and then the disk.
func TestQuotasAndTheDisk(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		var low error
		s := newService(t, db.Open(t, store.Options{}), func(o *options) { o.Acceptor.Disk = func() error { return low } })
		s.add("example.com")
		mailbox := s.mailbox("example.com")
		set := func(name dmarcd.QuotaName, amount int64) {
			t.Helper()
			musttest.Do(t, s.team.SetQuotas(t.Context(), dmarcd.Quota{name: amount}))
		}
		tls := func(id string, want int, message string) {
			t.Helper()
			got := s.deliver(http.MethodPost, mailbox, bytes.NewReader(tlsJSON(id, "example.com")))
			if text := read[receipts](t, got, want).Message; !strings.Contains(text, message) {
				t.Errorf("a TLS report: got %q, want it to contain %q", text, message)
			}
			if (got.header.Get("Retry-After") != "") != (want != http.StatusCreated) {
				t.Errorf("a TLS report: got Retry-After %q with status %d", got.header.Get("Retry-After"), want)
			}
		}
		upload := func(id string, want int, message string) {
			t.Helper()
			if text := read[receipts](t, s.upload(aggregateXML(id, "example.com", firstDay)), want).Message; !strings.Contains(text, message) {
				t.Errorf("an upload: got %q, want it to contain %q", text, message)
			}
		}
		tls("1", http.StatusCreated, "stored")
		set(dmarcd.QuotaStored, 1)
		tls("2", http.StatusTooManyRequests, "cannot receive more reports")
		upload("2", http.StatusForbidden, "reached its storage quota")
		set(dmarcd.QuotaStored, 0)
		set(dmarcd.QuotaReports, 2)
		tls("3", http.StatusCreated, "stored")
		tls("4", http.StatusTooManyRequests, "cannot receive more reports")
		upload("4", http.StatusForbidden, "daily quota of reports")
		set(dmarcd.QuotaReports, 0)
		set(dmarcd.QuotaUnreadable, 1)
		read[receipts](t, s.upload([]byte("hello")), http.StatusUnprocessableEntity)
		if got := read[receipts](t, s.upload([]byte("hello again")), http.StatusForbidden).Message; !strings.Contains(got, "storage quota for rejected reports") {
			t.Errorf("an upload that cannot be read: got %q, want it to say so", got)
		}
		low = intake.ErrLowDisk
		tls("5", http.StatusServiceUnavailable, "disk")
		upload("5", http.StatusServiceUnavailable, "disk")
		low = nil
		upload("5", http.StatusCreated, "")
	})
}
