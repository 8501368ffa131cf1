package adversary_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/emersion/go-msgauth/dkim"
)

// TestReportsOfOthers has evil.test, which signs its mail, send reports that
// say they are from google.test.
func TestReportsOfOthers(t *testing.T) {
	// delivery is a mail about the same report, signed by a domain or by none.
	type delivery struct {
		by       string
		messages int64
	}
	const google, evil, none = "google.test", "evil.test", ""
	rows := []struct {
		name       string
		deliveries []delivery
		want       int64 // messages that count in the end
	}{
		{"evil after google", []delivery{{google, 5}, {evil, 500}}, 5},
		{"google after evil", []delivery{{evil, 500}, {google, 5}}, 5},
		{"evil after an unverified one", []delivery{{none, 7}, {evil, 500}}, 500},
		{"google after an unverified one", []delivery{{none, 500}, {google, 5}}, 5},
		{"unverified after google", []delivery{{google, 5}, {none, 500}}, 5},
		{"google corrects itself", []delivery{{google, 5}, {google, 6}}, 6},
		{"the same twice", []delivery{{google, 5}, {google, 5}}, 5},
		{"evil between", []delivery{{google, 5}, {evil, 500}, {google, 6}}, 6},
	}
	onEach(t, func(t *testing.T, a *arena) {
		a.dns.setZone(t, dkimZone(google, evil))
		to := a.address("victim", "victim.test")
		want, marks := int64(0), int64(0)
		for i, row := range rows {
			for _, d := range row.deliveries {
				r := about("victim.test", row.name, d.messages, 0)
				r.org, r.email = "google.test", "noreply-dmarc@google.test"
				from := d.by
				if from == none {
					from = google
				}
				mail := mailFrom(from, r.xml())
				if d.by != none {
					mail = signed(t, mail, d.by)
				}
				a.mail("127.1.0.1", "bounce@"+from, to, mail)
				// Mails are worked off side by side: a mark that counts shows that
				// this one is done.
				marks++
				a.reported(fmt.Sprintf("mark %d after %s %d", marks, row.name, i), to, 1)
			}
			want += row.want
			eventually(t, patience, fmt.Sprintf("%s: %d messages count", row.name, row.want), func() bool {
				return a.victim.counted("victim.test").Compliant == want+marks
			})
		}
		for _, r := range a.victim.reports("") {
			if r.Org == nil || *r.Org != google || r.Genuine != "yes" {
				continue
			}
			got := a.victim.send("GET", "/insights/reports/"+r.ID, "", nil)
			if !bytes.Contains(got.body, []byte(`"`+google+`"`)) && !bytes.Contains(got.body, []byte(`"`+evil+`"`)) {
				t.Errorf("a verified report: got %v want the authenticated domain shown", got)
			}
		}
		events := string(a.victim.send("GET", "/events", "", nil).body)
		if !strings.Contains(events, evil) {
			t.Errorf("the events: got %.500s want one about a report that evil.test signed", events)
		}
		a.d.Stop()
	})
}

// dkimKey returns the key of a domain, the same every time: it says nothing
// outside the tests.
func dkimKey(domain string) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed([]byte(fmt.Sprintf("%-32.32s", domain)))
}

// dkimZone publishes the keys of domains.
func dkimZone(domains ...string) string {
	var b strings.Builder
	for _, domain := range domains {
		public := dkimKey(domain).Public().(ed25519.PublicKey) // no other kind of key has this type
		fmt.Fprintf(&b, "s1._domainkey.%s. TXT \"v=DKIM1; k=ed25519; p=%s\"\n", domain, base64.StdEncoding.EncodeToString(public))
	}
	return b.String()
}

// signed returns a mail with a signature of a domain.
func signed(t testing.TB, mail, domain string) string {
	t.Helper()
	var out bytes.Buffer
	err := dkim.Sign(&out, strings.NewReader(mail), &dkim.SignOptions{
		Domain: domain, Selector: "s1", Signer: dkimKey(domain), HeaderKeys: []string{"From", "Subject", "Message-Id"},
		HeaderCanonicalization: dkim.CanonicalizationRelaxed, BodyCanonicalization: dkim.CanonicalizationRelaxed,
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}
