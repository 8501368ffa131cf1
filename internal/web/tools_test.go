package web_test

import (
	"html"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/dns/dnstest"
)

// TestBuildersOfOtherRecords wants the right record and the right conclusion about it.
func TestBuildersOfOtherRecords(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.zone.zone = dnstest.New(strings.Join([]string{
		`example.org MX 10 mx1.example.org`,
		`mx1.example.org A 192.0.2.25`,
		`example.org A 192.0.2.80`,
		`_spf.mailbox.example TXT "v=spf1 ip4:192.0.2.0/24 ~all"`,
		`_dmarc.example.org TXT "v=DMARC1; p=none"`,
		`_dmarc.example.com TXT "v=DMARC1; p=none"`,
	}, "\n"))
	value := func(text string) string { return "<code data-copy>" + text + "</code>" }
	for _, row := range []struct {
		name, path string
		query      url.Values
		want, not  []string
	}{
		{
			"a good SPF record", "spf",
			url.Values{"domain": {"example.org"}, "mx": {"yes"}, "addresses": {"198.51.100.7, 2001:db8::/64"}, "include": {"_spf.mailbox.example"}, "all": {"-all"}},
			[]string{value("v=spf1 mx ip4:198.51.100.7 ip6:2001:db8::/64 include:_spf.mailbox.example -all"), value("example.org"), "Ready to publish.", "needs 2 of 10 lookups", "Lookups by term: 2 of 10"},
			nil,
		},
		{
			"an SPF record that includes nothing", "spf",
			url.Values{"domain": {"example.org"}, "include": {"gone.example"}, "all": {"~all"}},
			[]string{value("v=spf1 include:gone.example ~all"), "Do not publish this yet: 1 problem.", "that name does not exist"},
			nil,
		},
		{
			"an address that is none", "spf",
			url.Values{"domain": {"example.org"}, "addresses": {"192.0.2.300"}, "all": {"~all"}},
			[]string{"192.0.2.300 is not a valid address", ">192.0.2.300</textarea>"},
			[]string{"Ready to publish"},
		},
		{
			"a pasted SPF record, in the order that matters", "spf",
			url.Values{"domain": {"example.org"}, "record": {"v=spf1 -ip4:192.0.2.9 ip4:192.0.2.0/24 ~all"}},
			[]string{`name="other" value="-ip4:192.0.2.9 ip4:192.0.2.0/24"`, "Ready to publish."},
			nil,
		},
		{
			"a policy that covers the servers", "mta-sts",
			url.Values{"domain": {"example.org"}, "mode": {"enforce"}, "mx": {"mx1.example.org"}, "max_age": {"604800"}},
			[]string{"version: STSv1\nmode: enforce\nmx: mx1.example.org\nmax_age: 604800\n", value("_mta-sts.example.org"), "https://mta-sts.example.org/.well-known/mta-sts.txt", "Ready to publish."},
			nil,
		},
		{
			"a policy that forgets a server", "mta-sts",
			url.Values{"domain": {"example.org"}, "mode": {"enforce"}, "mx": {"mx2.example.org"}, "max_age": {"604800"}},
			[]string{"mx1.example.org", "Do not publish this yet"},
			[]string{"Ready to publish"},
		},
		{
			"the servers of a domain of the team", "mta-sts",
			url.Values{"domain": {sampleDomain}},
			[]string{"mode: testing\nmx: mx1.example.com\n"},
			nil,
		},
		{
			"TLS reports", "tls-rpt",
			url.Values{"domain": {"example.org"}, "rua": {"tls@example.org"}},
			[]string{value("v=TLSRPTv1; rua=mailto:tls@example.org"), value("_smtp._tls.example.org"), "Ready to publish."},
			nil,
		},
		{
			"TLS reports without a destination", "tls-rpt",
			url.Values{"domain": {"example.org"}, "rua": {""}},
			[]string{"Do not publish this yet"},
			nil,
		},
		{
			"a logo without a policy", "bimi",
			url.Values{"domain": {"example.org"}, "l": {"https://logo.example/logo.svg"}},
			[]string{value("v=BIMI1; l=https://logo.example/logo.svg"), value("default._bimi.example.org"), "Raise the DMARC policy", "Do not publish this yet"},
			[]string{"Ready to publish", "<img"},
		},
		{
			"a name that is none", "spf",
			url.Values{"domain": {"example..org"}, "all": {"-all"}},
			[]string{`value="example..org"`, `id="error-domain"`},
			[]string{"Ready to publish"},
		},
	} {
		body := html.UnescapeString(s.body(t, viewer, "/app/tools/"+row.path+"?"+row.query.Encode()))
		for _, want := range row.want {
			if !strings.Contains(body, want) {
				t.Errorf("%s: got a page without %q, want it:\n%s", row.name, want, main(body))
			}
		}
		for _, not := range row.not {
			if strings.Contains(body, not) {
				t.Errorf("%s: got a page with %q, want none", row.name, not)
			}
		}
	}
}

// main returns the content of a page.
func main(body string) string {
	_, content, _ := strings.Cut(body, "<main")
	return content
}

// TestAnyDomainIsChecked wants the conclusion about a domain that the team does not have, and
// nothing stored.
func TestAnyDomainIsChecked(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.zone.zone = dnstest.New(`other.example TXT "v=spf1 -all"` + "\n" + `_dmarc.other.example TXT "v=DMARC1; p=none"`)
	body := html.UnescapeString(s.body(t, viewer, "/app/tools/check?domain=Other.Example"))
	for _, want := range []string{"other.example", "policy is none", "v=spf1 -all"} {
		if !strings.Contains(body, want) {
			t.Errorf("got a page without %q, want it:\n%s", want, main(body))
		}
	}
	if strings.Contains(body, "Open the domain") {
		t.Error("got a link to a domain that the team does not have")
	}
	if own := s.body(t, viewer, "/app/tools/check?domain="+sampleDomain); !strings.Contains(own, `href="/app/domains/example.com"`) {
		t.Error("got no link to the domain of the team")
	}
	for path, want := range map[string]string{
		"/app/tools/check?domain=a..b":                 `value="a..b"`,
		"/app/tools/simulate?simulated=other.example":  "Your team has no domain with this name.",
		"/app/tools/simulate?simulated=" + hostileName: "Your team has no domain with this name.",
	} {
		response := s.get(viewer, path)
		if response.Code != http.StatusUnprocessableEntity || !strings.Contains(html.UnescapeString(response.Body.String()), want) {
			t.Errorf("%s: got %d, want 422 and %q", path, response.Code, want)
		}
	}
	if response := s.get(viewer, "/app/tools/simulate?simulated="+sampleDomain); response.Header().Get("Location") != "/app/domains/example.com/policy" {
		t.Errorf("got %d to %q, want the simulation", response.Code, response.Header().Get("Location"))
	}
}

const hostileName = "%22%3E%3Cscript%3E"
