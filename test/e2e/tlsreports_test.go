package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/test/daemon"
)

// tlsReport returns a TLS report (RFC 8460 §4) about a domain.
func tlsReport(name, id string) string {
	return fmt.Sprintf(`{
		"organization-name": "Reporter Inc.",
		"date-range": {"start-datetime": "2026-11-14T00:00:00Z", "end-datetime": "2026-11-14T23:59:59Z"},
		"contact-info": "tls@reporter.example",
		"report-id": %q,
		"policies": [{
			"policy": {"policy-type": "no-policy-found", "policy-domain": %q},
			"summary": {"total-successful-session-count": 40, "total-failure-session-count": 2},
			"failure-details": [{
				"result-type": "certificate-expired", "sending-mta-ip": "192.0.2.1",
				"receiving-mx-hostname": "mx.example.com", "failed-session-count": 2
			}]
		}]
	}`, id, name)
}

// reporter sends a request outside the prefix without a token, and checks the status.
func (s *server) reporter(method, path, media, content string, want int) {
	s.in.t.Helper()
	sent := musttest.Get(http.NewRequestWithContext(s.in.t.Context(), method, "http://"+s.HTTP+path, strings.NewReader(content)))(s.in.t)
	sent.Header.Set("Content-Type", media)
	received, err := s.client.Do(sent)
	musttest.Do(s.in.t, err)
	musttest.Do(s.in.t, received.Body.Close())
	if received.StatusCode != want {
		s.in.t.Errorf("%s %s: got status %d want %d", method, path, received.StatusCode, want)
	}
}

// TestTLSReportsAreDelivered delivers TLS reports over HTTPS (RFC 8460 §5.4), by upload
// and by mail.
func TestTLSReportsAreDelivered(t *testing.T) {
	each(t, "", func(t *testing.T, in *installation) {
		s := in.serve(receiving()...)
		s.add("example.com")
		address := in.reportAddress("default", "example.com", reporting)
		mailbox, _, _ := strings.Cut(address, "@")
		path := "/tlsrpt/" + mailbox
		first, second := tlsReport("example.com", "first"), tlsReport("example.com", "second")

		const plain, packed = "application/tlsrpt+json", "application/tlsrpt+gzip"
		s.reporter(http.MethodPost, path, packed, gzipped(first), http.StatusCreated)
		s.reporter(http.MethodPost, path, plain, first, http.StatusOK)
		s.reporter(http.MethodPost, path, plain, second, http.StatusCreated)
		s.reporter(http.MethodPost, "/tlsrpt/unknown", plain, second, http.StatusNotFound)
		s.reporter(http.MethodPost, path+"/", plain, second, http.StatusNotFound)
		s.reporter(http.MethodGet, path, plain, "", http.StatusMethodNotAllowed)
		s.reporter(http.MethodPost, path, plain, `{"policies": 1}`, http.StatusUnprocessableEntity)
		s.reporter(http.MethodPost, path, plain, about("example.com", "1", 1, 1).xml(), http.StatusUnprocessableEntity)

		if got := statuses(s.upload(second, http.StatusOK)); got != "duplicate" {
			t.Errorf("uploaded: got %s want duplicate", got)
		}
		s.mail(address, mailWith(gzipped(tlsReport("example.com", "third"))))
		daemon.Eventually(t, seenLimit, "three TLS reports are kept", func() bool {
			return len(s.reports("?kind=tls&domain=example.com")) == 3
		})
		for _, r := range s.reports("?kind=tls") {
			if r.Sessions != 42 || r.FailedSessions != 2 || r.Messages != 0 {
				t.Errorf("got %d sessions, %d of them failed, and %d messages, want 42, 2 and none", r.Sessions, r.FailedSessions, r.Messages)
			}
		}
		// TLS reports count no messages.
		s.wantCounted("the summary", "", 0, 0)
	})
}
