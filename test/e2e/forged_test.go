package e2e_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/emersion/go-msgauth/dkim"
	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/test/daemon"
)

// reporterKey returns the fixed key of the reporter, which is only used in tests.
func reporterKey() ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed([]byte(strings.Repeat("reporter", 4)))
}

// reporterZone contains the key of reporter.example, and another reporter that only
// passes SPF.
func reporterZone() string {
	public := reporterKey().Public().(ed25519.PublicKey) // the type is certain
	return fmt.Sprintf(`
		s1._domainkey.reporter.example. TXT "v=DKIM1; k=ed25519; p=%s"
		listed.example. TXT "v=spf1 ip4:127.0.0.1 -all"
		reports.example. MX 10 mx.reports.example.
	`, base64.StdEncoding.EncodeToString(public))
}

// signed returns a mail with a DKIM signature of a domain.
func signed(t *testing.T, mail, domain string) string {
	t.Helper()
	var out bytes.Buffer
	err := dkim.Sign(&out, strings.NewReader(mail), &dkim.SignOptions{
		Domain: domain, Selector: "s1", Signer: reporterKey(), HeaderKeys: []string{"From", "Subject", "Message-Id"},
		HeaderCanonicalization: dkim.CanonicalizationRelaxed, BodyCanonicalization: dkim.CanonicalizationRelaxed,
	})
	musttest.Do(t, err)
	return out.String()
}

// mailCase is a mail with a report, whose id is the name of the case.
type mailCase struct {
	name string
	mail func(t *testing.T, mail string) string
	from string // envelope sender
	// bySMTP and byUpload are the expected results.
	bySMTP, byUpload string
}

func mailCases() []mailCase {
	const reporter, listed = "bounce@reporter.example", "bounce@listed.example"
	asIs := func(_ *testing.T, mail string) string { return mail }
	return []mailCase{
		{"signed", func(t *testing.T, mail string) string { return signed(t, mail, "reporter.example") }, reporter, "yes", "yes"},
		{"unsigned", asIs, reporter, "no", "unknown"},
		{"signed and changed", func(t *testing.T, mail string) string {
			return strings.Replace(signed(t, mail, "reporter.example"), "A report is", "A report was", 1)
		}, reporter, "no", "no"},
		{"signed by another domain", func(t *testing.T, mail string) string {
			return signed(t, mail, "outsider.example")
		}, reporter, "no", "unknown"},
		{"sent from the right server", func(_ *testing.T, mail string) string {
			return strings.Replace(mail, "noreply@reporter.example", "noreply@listed.example", 1)
		}, listed, "yes", "unknown"},
		{"sent from the server of another domain", asIs, listed, "no", "unknown"},
	}
}

// genuineByID returns the authentication result of each report by its id.
func genuineByID(reports []listedReport) map[string]string {
	found := map[string]string{}
	for _, r := range reports {
		found[*r.ReportID] = r.Genuine
	}
	return found
}

func TestForgedReportsAreMarked(t *testing.T) {
	each(t, reporterZone(), func(t *testing.T, in *installation) {
		s := in.serve(receiving()...)
		s.add("example.com")
		address := in.reportAddress("default", "example.com", reporting)
		want := map[string]string{}
		for _, c := range mailCases() {
			byMail, uploaded := "mailed: "+c.name, "uploaded: "+c.name
			s.mailFrom(c.from, address, c.mail(t, mailWith(about("example.com", byMail, 1, 0).xml())))
			s.upload(c.mail(t, mailWith(about("example.com", uploaded, 1, 0).xml())), http.StatusCreated)
			want[byMail], want[uploaded] = c.bySMTP, c.byUpload
		}
		s.upload(about("example.com", "a bare file", 1, 0).xml(), http.StatusCreated)
		want["a bare file"] = "unknown"
		s.awaitCounted("example.com", seenLimit, int64(len(want)), 0)
		if diff := cmp.Diff(want, genuineByID(s.reports(""))); diff != "" {
			t.Errorf("which reports are genuine (-want +got):\n%s", diff)
		}
		if got := len(s.reports("?genuine=no")); got != 5 {
			t.Errorf("got %d reports that are not genuine want 5", got)
		}
	})
}

func TestForgedReportsAreRejected(t *testing.T) {
	each(t, reporterZone(), func(t *testing.T, in *installation) {
		s := in.serve(receiving("DMARCD_INTAKE_FORGED=refuse")...)
		s.add("example.com")
		address := in.reportAddress("default", "example.com", reporting)
		var genuine, forged int
		for _, c := range mailCases() {
			// The sender gets no error.
			s.mailFrom(c.from, address, c.mail(t, mailWith(about("example.com", c.name, 1, 0).xml())))
			if c.bySMTP == "yes" {
				genuine++
			} else {
				forged++
			}
		}
		var refusals []listedRejection
		daemon.Eventually(t, seenLimit, "the forged reports are kept aside", func() bool {
			refusals = s.rejected()
			return len(refusals) == forged
		})
		s.awaitCounted("example.com", seenLimit, int64(genuine), 0)
		for _, r := range refusals {
			if r.Genuine != "no" || r.Intake != "smtp" || r.Reason == "" {
				t.Errorf("got %+v want a forged mail with the reason", r)
			}
		}
	})
}

// TestForgedVersionReplacesNothing sends a forged version of a genuine report with other
// numbers.
func TestForgedVersionReplacesNothing(t *testing.T) {
	each(t, reporterZone(), func(t *testing.T, in *installation) {
		s := in.serve(receiving()...)
		s.add("example.com")
		address := in.reportAddress("default", "example.com", reporting)
		s.mail(address, signed(t, mailWith(about("example.com", "1", 5, 5).xml()), "reporter.example"))
		s.mail(address, mailWith(about("example.com", "1", 0, 1000).xml()))
		s.mail(address, mailWith(about("example.com", "2", 1, 0).xml()))
		s.awaitCounted("example.com", seenLimit, 6, 5)
		s.mail(address, signed(t, mailWith(about("example.com", "1", 8, 8).xml()), "reporter.example"))
		s.awaitCounted("example.com", seenLimit, 9, 8)
	})
}
