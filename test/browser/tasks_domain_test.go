package browser_test

import (
	"fmt"
	"iter"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/senders"
	"github.com/dmarcd/dmarcd/internal/senders/mmdb"
)

// TestTask01 asks whether the domains are safe, and what is next.
func TestTask01(t *testing.T) {
	t.Parallel()
	s := serve(t, zoneOf("safe.example", "reject")+zoneOf("open.example", "none"))
	s.plant("safe.example", office("safe.example"))
	s.plant("open.example", office("open.example"), spoofer("open.example"))
	inBothWays(t, s.shared, func(_ *testing.T, b *task) {
		b.wants("1 of 2 domains is protected. 1 needs you.", "open.example Publish p=quarantine 0 of yours affected, 1,000 spoofed to the spam folder",
			"-safe.example Publish", "Messages 3,800", "Yours passing 100 %", "Spoofed 1,000", "Blocked 0 %")
		b.inspect("the overview of planted mail")
		b.click(`main a[href="/app/domains/open.example"]`)
		b.took(1)
		b.wants("Not protected: 1,000 spoofed messages were delivered. Your own mail passes.", "Publish p=quarantine",
			"In 30 days, it would have put 0 of yours, 0 forwarded, 0 unknown and 1,000 spoofed messages into the spam folder", "p=quarantine; rua=mailto:d@open.example")
		b.inspect("the summary of planted mail")
		b.visit("/app/domains/safe.example", http.StatusOK)
		b.wants("Enforced. Your own mail passes.", "Nothing to do.")
	})
}

// TestTask02 asks who spoofs a domain. Neither its own servers nor the mail of another domain are in
// the answer.
func TestTask02(t *testing.T) {
	t.Parallel()
	s := serve(t, zoneOf("example.com", "none")+zoneOf("other.example", "none"), "DMARCD_DATA="+networks(t,
		mmdb.Range{First: netip.MustParseAddr("192.0.2.0"), Last: netip.MustParseAddr("192.0.2.255"), Number: 64496, Name: "Office Fibre"},
		mmdb.Range{First: netip.MustParseAddr("198.51.100.0"), Last: netip.MustParseAddr("198.51.100.255"), Number: 64497, Name: "Bulk Hosting"},
		mmdb.Range{First: netip.MustParseAddr("203.0.113.0"), Last: netip.MustParseAddr("203.0.113.63"), Number: 64498, Name: "Cheap Servers"},
		mmdb.Range{First: netip.MustParseAddr("203.0.113.64"), Last: netip.MustParseAddr("203.0.113.127"), Number: 64499, Name: "Elsewhere"},
	))
	second := spoofer("example.com")
	second.source, second.messages = "203.0.113.7", 5
	s.plant("example.com", append(shop("example.com"), office("example.com"), spoofer("example.com"), second)...)
	elsewhere := spoofer("other.example")
	elsewhere.source = "203.0.113.99"
	s.plant("other.example", office("other.example"), elsewhere)
	inBothWays(t, s.shared, func(_ *testing.T, b *task) {
		b.click(`main a[href="/app/domains/example.com"]`)
		b.wants("Spoofing 2 · 1,100 messages")
		b.click(`main a[href*="class=spoofing"]`)
		b.took(2)
		b.wants("Spoofing 2 senders 1,100 messages, 0 % pass DMARC", "Bulk Hosting (others) 1,000 0 %", "Cheap Servers (others) 100 0 %",
			"None of them ever authenticates as your domain", "-Elsewhere")
		if list := b.text("details.sendergroup"); strings.Contains(list, "Office Fibre") {
			b.t.Errorf("got your own servers among those who spoof: %q", list)
		}
	})
}

// networks writes the database of networks into a new folder for data.
func networks(t *testing.T, ranges ...mmdb.Range) (folder string) {
	t.Helper()
	folder = t.TempDir()
	file := musttest.Get(os.Create(filepath.Join(folder, senders.NetworksFile)))(t)
	var all iter.Seq2[mmdb.Range, error] = func(yield func(mmdb.Range, error) bool) {
		for _, r := range ranges {
			if !yield(r, nil) {
				return
			}
		}
	}
	musttest.Do(t, mmdb.Write(file, mmdb.Options{Type: "Test", Built: time.Unix(0, 0)}, all))
	musttest.Do(t, file.Close())
	return folder
}

// TestTask03 asks why a sender fails, and for the record that fixes it.
func TestTask03(t *testing.T) {
	t.Parallel()
	s := serve(t, zoneOf("example.com", "none"))
	s.plant("example.com", append(shop("example.com"), office("example.com"))...)
	inBothWays(t, s.shared, func(_ *testing.T, b *task) {
		b.wants("600 messages of yours fail")
		b.click(`main a[href="/app/domains/example.com"]`)
		b.wants("1,600 of your 2,200 messages pass", "v=spf1 ip4:192.0.2.10 ip4:192.0.2.20 -all")
		b.click(`.way a[href^="/app/senders/sender/"]`)
		b.took(2)
		b.wants("Why mail fails", "The SPF record of example.com does not list the address", "Add the address to the SPF record")
	})
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
			inBothWays(t, s.shared, func(_ *testing.T, b *task) {
				b.click(`main a[href="/app/domains/example.com"]`)
				b.click(`main a[href$="/policy?p=reject"]`)
				b.took(2)
				b.wants(row.want...)
			})
		})
	}
}

// TestTask06 adds a domain and publishes what the guide shows. The guide says when it works.
func TestTask06(t *testing.T) {
	t.Parallel()
	inBothWays(t, empty, func(_ *testing.T, b *task) {
		b.click(`main a[href="/app/domains/new"]`)
		b.enter("domain", "example.com")
		b.click(`main form[action="/app/domains/new"] button`)
		b.wants("-It works")
		var zone strings.Builder
		for _, record := range read(b.tab, evaluate[[]step](readSteps)) {
			if record.Type != "" {
				fmt.Fprintf(&zone, "%s. %s %q\n", record.Name, record.Type, record.Value)
			}
		}
		b.site.setZone(zone.String())
		b.becomes("main", "The records are published")
		b.site.deliver(aggregateReport("example.com"))
		b.becomes("main", "It works")
		b.click(`main a.works`)
		b.took(3)
		b.wants("Wait for more reports")
	})
}
