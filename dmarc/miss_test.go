package dmarc_test

import (
	"testing"

	"github.com/dmarcd/dmarcd/dmarc"
)

func TestClassifyMiss(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, txt string
		want      dmarc.Miss
	}{
		{"6 lower case", "v=dmarc1; p=reject", dmarc.VersionCase},
		{"mixed case without a semicolon", "V=Dmarc1", dmarc.VersionCase},
		{"7 version with a fraction", "v=DMARC1.0; p=reject", dmarc.OtherVersion},
		{"7 version twelve", "v=DMARC12; p=none", dmarc.OtherVersion},
		{"version two", "v=DMARC2; p=none", dmarc.OtherVersion},
		{"no number", "v=DMARC; p=none", dmarc.OtherVersion},
		{"no number, and nothing else", "v=DMARC", dmarc.OtherVersion},
		{"8 version last", "p=reject; v=DMARC1", dmarc.VersionNotFirst},
		{"tags without a version", "p=reject; sp=none", dmarc.Unrelated},
		{"9 no separator", "v=DMARC1 p=none", dmarc.MissingSeparator},
		{"comma as separator", "v=DMARC1, p=none", dmarc.MissingSeparator},
		{"10 leading space", " v=DMARC1; p=reject", dmarc.LeadingSpace},
		{"leading line break", "\nv=DMARC1; p=reject", dmarc.LeadingSpace},
		{"trailing line break only", "v=DMARC1 p=reject\n", dmarc.MissingSeparator},
		{"quotes inside", `"v=DMARC1; p=reject"`, dmarc.Quoted},
		{"typographic quotes", "“v=DMARC1; p=reject”", dmarc.Quoted},
		{"escaped semicolons", `v=DMARC1\; p=reject`, dmarc.EscapedSeparator},
		{"39 SPF", "v=spf1 -all", dmarc.SPFRecord},
		{"SPF alone", "V=SPF1", dmarc.SPFRecord},
		{"not quite SPF", "v=spf10 -all", dmarc.Unrelated},
		{"something else", "google-site-verification=abc", dmarc.Unrelated},
		{"something else in quotes", `"hello"`, dmarc.Unrelated},
		{"empty", "", dmarc.Unrelated},
		{"v alone", "v", dmarc.Unrelated},
		{"a record", "v=DMARC1; p=none", dmarc.NoMiss},
		{"a record without anything", "v=DMARC1", dmarc.NoMiss},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := dmarc.ClassifyMiss(tt.txt); got != tt.want {
				t.Errorf("%q: got %q want %q", tt.txt, got, tt.want)
			}
			if _, ok := dmarc.Parse(tt.txt); ok != (tt.want == dmarc.NoMiss) {
				t.Errorf("%q: taken for a DMARC record: got %v want %v", tt.txt, ok, !ok)
			}
		})
	}
}
