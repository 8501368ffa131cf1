package ui_test

import (
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/internal/web/ui"
)

// TestDiffTerms compares records: removed terms are written as [-term-], added ones as [+term+].
func TestDiffTerms(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, before, after, want string }{
		{"new", "", "v=DMARC1; p=none", "[+v=DMARC1; p=none+]"},
		{"gone", "v=spf1 -all", "", "[-v=spf1 -all-]"},
		{"a tag", "v=DMARC1; p=none; rua=mailto:a@example.com", "v=DMARC1; p=reject; rua=mailto:a@example.com", "v=DMARC1; [-p=none-]; [+p=reject+]; rua=mailto:a@example.com"},
		{"another order and spacing", "v=DMARC1;p=none;sp=reject", "v=DMARC1; sp=reject; p=none;", "v=DMARC1; sp=reject; p=none"},
		{"an order and a tag", "v=DMARC1; p=none; pct=50; sp=none", "v=DMARC1; sp=none; p=none", "v=DMARC1; sp=none; p=none; [-pct=50-]"},
		{"one of several addresses", "v=DMARC1; rua=mailto:a@x.example,mailto:b@x.example", "v=DMARC1; rua=mailto:b@x.example, mailto:c@x.example", "v=DMARC1; rua=[-mailto:a@x.example-],mailto:b@x.example,[+mailto:c@x.example+]"},
		{"an include", "v=spf1 include:a.example include:b.example -all", "v=spf1 include:b.example include:c.example -all", "v=spf1 include:b.example [-include:a.example-] [+include:c.example+] -all"},
		{"a term in front", "v=spf1 mx -all", "v=spf1 a mx -all", "v=spf1 [+a+] mx -all"},
		{"a qualifier", "v=spf1 mx ~all", "v=spf1 mx -all", "v=spf1 mx [-~all-] [+-all+]"},
		{"a term that stands twice", "v=spf1 mx mx -all", "v=spf1 mx -all", "v=spf1 mx [-mx-] -all"},
		{"a word", "none", "reject", "[-none-] [+reject+]"},
	} {
		var got strings.Builder
		for _, part := range ui.DiffTerms(row.before, row.after) {
			got.WriteString(map[string]string{"": part.Text, "removed": "[-" + part.Text + "-]", "added": "[+" + part.Text + "+]"}[part.Change])
		}
		if got.String() != row.want {
			t.Errorf("%s: got %s, want %s", row.name, got.String(), row.want)
		}
	}
}

// TestShorten keeps what differs, and abridges the rest and long keys.
func TestShorten(t *testing.T) {
	t.Parallel()
	key := "p=" + strings.Repeat("MIIBIjANBgkqhkiG", 20) + "IDAQAB"
	for _, row := range []struct{ name, before, after, want string }{
		{"a short record", "v=spf1 mx ~all", "v=spf1 mx -all", "v=spf1 mx |~all| |-all"},
		{"a policy", "v=DMARC1; p=none; rua=mailto:reports@reports.example; fo=1", "v=DMARC1; p=reject; rua=mailto:reports@reports.example; fo=1", "v=DMARC1; |p=none|; |p=reject|; …"},
		{"the last term", "v=spf1 include:spf.cloudpost.example ip4:192.0.2.1 ~all", "v=spf1 include:spf.cloudpost.example ip4:192.0.2.1 -all", "v=spf1 … |~all| |-all"},
		{"between changes", "v=spf1 a include:spf.cloudpost.example ~all", "v=spf1 include:spf.cloudpost.example -all", "v=spf1 |a| … |~all| |-all"},
		{"a key", "", "v=DKIM1; k=rsa; " + key, "v=DKIM1; k=rsa; p=MIIBIjANBgkqhkiGMIIBIjANBgkq…NBgkqhkiGIDAQAB"},
		{"another order", "v=DMARC1; p=none; rua=mailto:reports@reports.example", "v=DMARC1; rua=mailto:reports@reports.example; p=none", "v=DMARC1; rua=mailto:reports@reports.example; p=none"},
	} {
		var got []string
		for _, part := range ui.Shorten(ui.DiffTerms(row.before, row.after)) {
			got = append(got, part.Text)
		}
		if text := strings.Join(got, "|"); text != row.want {
			t.Errorf("%s: got %s, want %s", row.name, text, row.want)
		}
	}
}
