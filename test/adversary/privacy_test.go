package adversary_test

import (
	"encoding/base64"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/dmarcd/dmarcd/internal/packtest"
)

// TestPrivacy sends a failure report with what must not be stored, and looks
// for it everywhere.
func TestPrivacy(t *testing.T) {
	const secretUser, secretBody = "jane.roe.private", "the merger is on friday"
	onEach(t, func(t *testing.T, a *arena) {
		to := a.address("victim", "victim.test")
		failure := func(id string) string {
			return "From: noreply@reporter.test\r\nTo: " + to + "\r\nSubject: Failure report\r\nMessage-ID: <" + id + "@reporter.test>\r\nMIME-Version: 1.0\r\n" +
				"Content-Type: multipart/report; report-type=feedback-report; boundary=b\r\n\r\n" +
				"--b\r\nContent-Type: text/plain\r\n\r\nA message to " + secretUser + "@receiver.test failed.\r\n" +
				"--b\r\nContent-Type: message/feedback-report\r\n\r\n" +
				"Feedback-Type: auth-failure\r\nUser-Agent: reporter/1.0\r\nVersion: 1\r\nAuth-Failure: dmarc\r\n" +
				"Original-Mail-From: <" + secretUser + "@victim.test>\r\nOriginal-Rcpt-To: <" + secretUser + "@receiver.test>\r\n" +
				"Authentication-Results: receiver.test; dmarc=fail header.from=victim.test; dkim=fail header.id=no-reply@victim.test; spf=fail smtp.mailfrom=" + secretUser + "@victim.test\r\n" +
				"DKIM-Canonicalized-Body: " + base64.StdEncoding.EncodeToString([]byte(secretBody)) + "\r\n" +
				"Reported-Domain: victim.test\r\nSource-IP: 192.0.2.1\r\nDelivery-Result: reject\r\nArrival-Date: Sat, 14 Nov 2026 09:30:00 +0000\r\n" +
				"--b\r\nContent-Type: message/rfc822\r\n\r\n" +
				"From: " + secretUser + "@victim.test\r\nTo: " + secretUser + "@receiver.test\r\nSubject: hello " + mime.BEncoding.Encode("utf-8", "ü "+secretUser+"@receiver.test") + "\r\nMessage-ID: <" + id + "1@victim.test>\r\n\r\n" +
				secretBody + "\r\n--b--\r\n"
		}
		a.victim.upload([]byte(failure("uploaded")))
		a.mail("127.2.0.1", "noreply@reporter.test", to, failure("mailed"))
		a.victim.upload(packtest.Gzip(failure("packed")))
		var reports []listedReport
		eventually(t, patience, "three failure reports are stored", func() bool {
			reports = a.victim.reports("?kind=failure")
			return len(reports) == 3
		})
		encode := base64.StdEncoding.EncodeToString
		secrets := []string{secretUser, secretBody, "no-reply@", encode([]byte(secretBody)), encode([]byte("ü " + secretUser))[:16]}
		for _, r := range reports {
			for _, path := range []string{"", "/original"} {
				got := a.victim.send(http.MethodGet, "/insights/reports/"+r.ID+path, "", nil)
				if got.status != http.StatusOK {
					t.Errorf("GET %s: got %v want 200", path, got)
				}
				text := unpack(t, got.body)
				for _, secret := range secrets {
					if strings.Contains(text, secret) {
						t.Errorf("%s: the report has %q", path, secret)
					}
				}
				if path == "/original" && !strings.Contains(text, "header.id=") {
					t.Errorf("the original: got %.2000s want the property header.id to keep its name", text)
				}
			}
		}
		a.d.Stop()
		for name, content := range a.files() {
			for _, secret := range []string{secretUser, secretBody} {
				if strings.Contains(content, secret) {
					t.Errorf("the file %s has %q", name, secret)
				}
			}
		}
	})
}

// TestManySignIns tries many passwords at once, for the victim and for users
// that do not exist, from many addresses: each try costs the daemon memory and
// time on purpose.
func TestManySignIns(t *testing.T) {
	const clients, tries = 20, 4
	onSQLite(t, func(t *testing.T, a *arena) {
		a.watch("many sign-ins", func() {
			var attacking sync.WaitGroup
			for i := range clients {
				attacking.Go(func() {
					attacker := *a.mallory
					attacker.client = newClient(t, fmt.Sprintf("127.1.%d.1", i))
					for n := range tries {
						form := url.Values{"email": {fmt.Sprintf("user%d-%d@elsewhere.test", i, n)}, "password": {"guess"}}
						got, err := attacker.try(t.Context(), http.MethodPost, "/app/sign-in", "application/x-www-form-urlencoded", []byte(form.Encode()))
						if err != nil {
							t.Errorf("sign in: %v", err)
							return
						}
						if got.status == http.StatusSeeOther || got.status == http.StatusInternalServerError {
							t.Errorf("sign in: got %v want it refused", got)
						}
					}
				})
			}
			attacking.Wait()
		})
		a.d.Stop()
	})
}
