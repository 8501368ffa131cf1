package browser_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/test/daemon"
)

// task is a tab in which the clicks of a task of docs/tasks.md are counted.
type task struct {
	*tab
	clicks int
}

// begin opens the overview of a site as its owner.
func (s *site) begin(t *testing.T) *task {
	t.Helper()
	b := &task{tab: s.open(t)}
	b.acceptInvitation(s.link, "ada@example.com")
	b.visit("/app/", http.StatusOK)
	return b
}

// clicked counts a click. The task may take at most that many.
func (b *task) clicked(most int) {
	b.t.Helper()
	if b.clicks++; b.clicks > most {
		b.t.Errorf("%s: this is click %d, want at most %d", b.path(), b.clicks, most)
	}
}

func (b *task) click(selector string, most int) {
	b.t.Helper()
	b.tab.click(selector)
	b.clicked(most)
}

// wants wants the page to say all of these, and none of the texts after a "-".
func (b *task) wants(texts ...string) {
	b.t.Helper()
	got := strings.Join(strings.Fields(b.text("main")), " ")
	for _, text := range texts {
		unwanted, not := strings.CutPrefix(text, "-")
		if strings.Contains(got, unwanted) == not {
			b.t.Errorf("%s: got %q\nwant it to contain %q: %v", b.path(), got, unwanted, !not)
		}
	}
}

// The mail of a day that tests plant. The office passes. The shop is yours, since a part of its mail
// carries a signature of the domain; the rest fails because SPF does not list it. The spoofer has
// nothing to do with the domain.
func office(domain string) sample {
	return sample{source: "192.0.2.10", headerFrom: domain, selector: "spring", dkimDomain: domain, spfDomain: domain, messages: 70, disposition: "none", dkim: "pass", spf: "pass"}
}

func shop(domain string) []sample {
	return []sample{
		{source: "192.0.2.20", headerFrom: domain, selector: "shop", dkimDomain: domain, spfDomain: domain, messages: 10, disposition: "none", dkim: "pass", spf: "fail"},
		{source: "192.0.2.20", headerFrom: domain, spfDomain: domain, messages: 30, disposition: "none", dkim: "fail", spf: "fail"},
	}
}

func spoofer(domain string) sample {
	return sample{source: "198.51.100.66", headerFrom: domain, spfDomain: "elsewhere.example", messages: 50, disposition: "none", dkim: "fail", spf: "fail"}
}

// plant adds a domain whose DNS is in the zone, with the same mail on each of 20 days.
func (s *site) plant(domain string, mail ...sample) {
	s.t.Helper()
	s.run("domain", "add", "--team", "default", domain)
	s.run("domain", "verify", "--team", "default", domain)
	for ago := range 20 {
		s.deliver(document(sample{org: "Receiver Inc.", id: fmt.Sprint(domain, ago), domain: domain, ago: ago}, mail...))
	}
}

// zoneOf is the DNS of a domain with a policy whose SPF record lists the office.
func zoneOf(domain, policy string) string {
	return fmt.Sprintf("_dmarc.%[1]s. TXT \"v=DMARC1; p=%[2]s; rua=mailto:d@%[1]s\"\n%[1]s. TXT \"v=spf1 ip4:192.0.2.10 -all\"\n", domain, policy)
}

// TestTask01 asks whether the domains are safe, and what is next.
func TestTask01(t *testing.T) {
	t.Parallel()
	s := serve(t, zoneOf("safe.example", "reject")+zoneOf("open.example", "none"))
	s.plant("safe.example", office("safe.example"))
	s.plant("open.example", office("open.example"), spoofer("open.example"))
	b := s.begin(t)
	b.wants("1 of 2 domains is protected. 1 needs you.", "open.example Publish p=quarantine 0 of yours affected, 1,000 spoofed to the spam folder",
		"-safe.example Publish", "Messages 3,800", "Yours passing 100 %", "Spoofed 1,000", "Blocked 0 %")
	b.inspect("the overview of planted mail")
	b.click(`main a[href="/app/domains/open.example"]`, 1)
	b.wants("Not protected: 1,000 spoofed messages were delivered. Your own mail passes.", "Publish p=quarantine",
		"Of 30 days: 0 of yours, 0 forwarded, 0 unknown, 1,000 spoofed to the spam folder", "p=quarantine; rua=mailto:d@open.example")
	b.inspect("the summary of planted mail")
	b.visit("/app/domains/safe.example", http.StatusOK)
	b.wants("Enforced. Your own mail passes.", "Nothing to do.")
}

// TestTask03 asks why a sender fails, and for the record that fixes it.
func TestTask03(t *testing.T) {
	t.Parallel()
	s := serve(t, zoneOf("example.com", "none"))
	s.plant("example.com", append(shop("example.com"), office("example.com"))...)
	b := s.begin(t)
	b.wants("600 messages of yours fail")
	b.click(`main a[href="/app/domains/example.com"]`, 2)
	b.wants("1,600 of your 2,200 messages pass", "v=spf1 ip4:192.0.2.10 ip4:192.0.2.20 -all")
	b.click(`.way a[href^="/app/senders/sender/"]`, 2)
	b.wants("Why mail fails", "The SPF record of example.com does not list the address", "Add the address to the SPF record")
}

// TestTask04 asks whether the domain may move to reject, and what would break.
func TestTask04(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		mail []sample
		want []string
	}{
		"safe":  {[]sample{office("example.com"), spoofer("example.com")}, []string{"p=reject affects 1,000 of 1,000 spoofed messages, and 0 of yours", "-Not yet", "v=DMARC1; p=reject"}},
		"harms": {append(shop("example.com"), office("example.com"), spoofer("example.com")), []string{"Not yet: p=reject affects 600 of 2,200 legitimate messages", "Legitimate 600 of 2,200 affected", "Fix the senders"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, zoneOf("example.com", "none"))
			s.plant("example.com", row.mail...)
			b := s.begin(t)
			b.click(`main a[href="/app/domains/example.com"]`, 2)
			b.click(`main a[href$="/policy?p=reject"]`, 2)
			b.wants(row.want...)
		})
	}
}

// TestTask06 adds a domain and publishes what the guide shows. The guide says when it works.
func TestTask06(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	b := s.begin(t)
	b.click(`main a[href="/app/domains/new"]`, 3)
	b.write("domain", "example.com")
	b.press("Add domains")
	b.clicked(3)
	b.wants("-It works")
	var zone strings.Builder
	for _, record := range read(b.tab, evaluate[[]step](readSteps)) {
		if record.Type != "" {
			fmt.Fprintf(&zone, "%s. %s %q\n", record.Name, record.Type, record.Value)
		}
	}
	b.site.setZone(zone.String())
	awaits := func(want string) {
		t.Helper()
		daemon.Eventually(t, guideLimit, "the guide says "+want, func() bool { return strings.Contains(b.text("main"), want) })
	}
	awaits("The records are published")
	b.site.deliver(aggregateReport("example.com"))
	awaits("It works")
	b.click(`main a.works`, 3)
	b.wants("Wait for more reports")
}
