package web_test

import (
	"html"
	"net/url"
	"strings"
	"testing"
)

func TestBuilder(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, row := range []struct {
		name  string
		query url.Values
		want  []string
	}{
		{"nothing said", nil, []string{"<code data-copy>v=DMARC1; p=none</code>"}},
		{
			"everything said",
			url.Values{
				"p": {"reject"}, "sp": {"quarantine"}, "np": {"none"}, "adkim": {"s"}, "aspf": {"s"}, "t": {"y"}, "psd": {"n"},
				"rua": {"a@example.com, b@example.net"}, "ruf": {"mailto:c@example.com"}, "fo": {"1"},
			},
			[]string{"v=DMARC1; p=reject; sp=quarantine; np=none; adkim=s; aspf=s; psd=n; t=y; rua=mailto:a@example.com,mailto:b@example.net; ruf=mailto:c@example.com; fo=1"},
		},
		{"words of others", url.Values{"p": {"reject; rua=mailto:x@evil.example"}}, []string{"<code data-copy>v=DMARC1; p=none</code>"}},
		{"an address that would end the tag", url.Values{"rua": {"a@example.com; p=reject"}}, []string{"rua=mailto:a@example.com,mailto:p=reject"}},
		{"fo without ruf", url.Values{"fo": {"1"}}, []string{"<code data-copy>v=DMARC1; p=none</code>"}},
		{
			"testing, to either sort of receiver",
			url.Values{"record": {"v=DMARC1; p=reject; t=y"}},
			[]string{"The tag p sets reject; t=y reduces it by one level.", "These receivers ignore np and t."},
		},
		{
			"pct, to either sort of receiver",
			url.Values{"record": {"v=DMARC1; p=reject; pct=50"}},
			[]string{"has pct=50.", "For 50 % of failing mail (pct)"},
		},
		{
			"below the organization, to receivers that know no tree",
			url.Values{"domain": {"mail.example.co.uk"}, "record": {"v=DMARC1; p=reject"}},
			[]string{"These receivers query only the name itself and example.co.uk, and find no record."},
		},
		{"a tag for subdomains", url.Values{"record": {"v=DMARC1; p=reject; sp=none"}}, []string{"<small>Set by the tag sp.</small></td></tr>"}},
		{"not a record", url.Values{"record": {"v=spf1 -all"}}, []string{"Receivers ignore this text"}},
		{"a broken record", url.Values{"record": {"v=DMARC1; p=all; rua=mailto:a@example.com"}}, []string{"acts as p=none"}},
		{
			"a line of a zone",
			url.Values{"record": {`_dmarc.Example.org. 3600 IN TXT "v=DMARC1; p=reject; " "rua=mailto:a@example.org"`}},
			[]string{"<code data-copy>v=DMARC1; p=reject; rua=mailto:a@example.org</code>", "<code data-copy>_dmarc.example.org</code>"},
		},
		{"a record in quotes", url.Values{"record": {`"v=DMARC1\; p=reject"`}}, []string{"<code data-copy>v=DMARC1; p=reject</code>"}},
		{"a record with bytes as numbers", url.Values{"record": {`"v=DMARC1\059\032p=reject"`}}, []string{"<code data-copy>v=DMARC1; p=reject</code>"}},
		{"numbers that are no bytes", url.Values{"record": {`"v=DMARC1; p=reject; x=\999\12"`}}, []string{"x=99912"}},
		{
			"a line without quotes",
			url.Values{"record": {"_dmarc.example.org. TXT v=DMARC1; p=reject"}},
			[]string{"<code data-copy>v=DMARC1; p=reject</code>", "<code data-copy>_dmarc.example.org</code>"},
		},
		{"a line with another record before", url.Values{"record": {"p=none v=DMARC1"}}, []string{"Receivers ignore this text"}},
		{"quotes in the middle", url.Values{"record": {`v=DMARC1; p=none; x="y"`}}, []string{`<code data-copy>v=DMARC1; p=none; x="y"</code>`}},
		{"the name that has the record", url.Values{"domain": {"_dmarc.example.org"}}, []string{"<code data-copy>_dmarc.example.org</code>"}},
		{
			"not a name",
			url.Values{"domain": {"example..org"}},
			[]string{`value="example..org"`, `id="error-domain"`, "The record shown is for example.com."},
		},
		{
			"a domain of the team",
			url.Values{"domain": {sampleDomain}},
			[]string{"<code data-copy>v=DMARC1; p=quarantine; rua=mailto:" + s.reportAddress + "</code>"},
		},
		{
			"less than a domain of the team has",
			url.Values{"domain": {sampleDomain}, "p": {"none"}, "t": {"y"}, "rua": {"a@example.com"}},
			[]string{
				"v=DMARC1; p=none; rua=mailto:a@example.com; t=y", "Reports are no longer sent to " + s.reportAddress + ".",
				"The policy for the domain becomes weaker: quarantine → none.", "t=y has no effect with p=none.",
			},
		},
		{"a tag twice", url.Values{"record": {"v=DMARC1; p=none; p=reject"}}, []string{"has the tag p more than once.", "Do not publish this yet: 1 problem."}},
	} {
		body := html.UnescapeString(s.body(t, viewer, "/app/tools/dmarc?"+row.query.Encode()))
		for _, want := range row.want {
			if !strings.Contains(body, want) {
				t.Errorf("%s: got a page without %q, want it", row.name, want)
			}
		}
	}
}
