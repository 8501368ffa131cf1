package recordfile_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/goldentest"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/recordfile"
)

func txt(name, text string) dmarcd.DNSRecord {
	return dmarcd.DNSRecord{Name: name, Type: "TXT", Data: text}
}

var long = "v=spf1 " + strings.Repeat("ip4:192.0.2.1 ", 40) + "-all"

// TestFiles shows a file of each format, for a domain below its zone and for the zone itself.
func TestFiles(t *testing.T) {
	t.Parallel()
	records := []dmarcd.DNSRecord{
		txt("_dmarc.shop.example.com", "v=DMARC1; p=none; rua=mailto:r4x7@reports.example.net"),
		txt("_smtp._tls.shop.example.com", "v=TLSRPTv1; rua=mailto:r4x7@reports.example.net"),
		txt("example.com", "v=spf1 exists:%{i}._spf.example.com -all"),
		{Name: "example.com", Type: "MX", Data: "0 ."},
		txt("example.com", "not the first of its name"),
		txt("shop.example.com._report._dmarc.reports.example.net", "v=DMARC1"),
		txt("notexample.com", "another zone"),
		{Name: "_dmarc.example.com", Type: "CNAME", Data: "k3jq7a.dns.example.net."},
	}
	for _, f := range recordfile.Formats() {
		file := musttest.Get(f.File("example.com", records))(t)
		goldentest.Check(t, "testdata/"+f.ID+".golden", file)
	}
}

// hostile are records whose characters mean something in a format.
func hostile() []dmarcd.DNSRecord {
	records := []dmarcd.DNSRecord{
		txt("example.com", "v=spf1 -all"),
		{Name: "example.com", Type: "MX", Data: "0 ."},
		{Name: "_dmarc.shop.example.com", Type: "CNAME", Data: "k3jq7a.dns.example.net."},
	}
	for _, value := range []string{
		"", "v=DMARC1; p=reject", `quote " backslash \ dollar $ {`, `${x} $${x} $$${x} %{i} %%{i} %%%{i} $`, `a\;b " "`, `"quoted"`,
		`\`, `\"`, `*/ // # <!-- </script> {{x}}`, "- [x]: &a !b |", long, strings.Repeat("x", 255), strings.Repeat("x", 256),
		strings.Repeat(`\`, 300), strings.Repeat(`"`, 254) + ` "` + strings.Repeat("; ", 200), strings.Repeat("${", 400),
	} {
		records = append(records, txt("_dmarc.shop.example.com", value))
	}
	return records
}

// TestParsersReadWhatWasWritten writes records, and compares what the parser of each format reads.
func TestParsersReadWhatWasWritten(t *testing.T) {
	t.Parallel()
	for _, record := range hostile() {
		checkFormats(t, record)
	}
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.StringOfN(rapid.RuneFrom([]rune(`a"\$%{};'# `)), 0, 600, 600).Draw(t, "value")
		checkFormats(t, txt("_dmarc.shop.example.com", value))
	})
}

type tester interface {
	musttest.TB
	Errorf(format string, args ...any)
}

// checkFormats writes a record of the zone example.com in all formats but DNSControl's, reads it and
// compares.
func checkFormats(t tester, want dmarcd.DNSRecord) {
	t.Helper()
	readers := map[string]func(t tester, file string) dmarcd.DNSRecord{
		"bind": zoneValue, "terraform": terraformValue, "cloudflare": cloudflareValue, "route53": route53Value, "octodns": octodnsValue,
	}
	for id, read := range readers {
		file, err := musttest.Get(recordfile.Parse(id))(t).File("example.com", []dmarcd.DNSRecord{want})
		if id == "octodns" && (strings.HasPrefix(want.Data, `"`) || strings.Contains(want.Data, `" "`) || strings.Contains(want.Data, `\;`)) {
			if codeOf(err) != "unsupported_value" {
				t.Errorf("%q as octodns: got %v want %s", want.Data, err, "unsupported_value")
			}
			continue
		}
		musttest.Do(t, err)
		if diff := cmp.Diff(want, read(t, file)); diff != "" {
			t.Errorf("%q as %s (-want +got):\n%s\n%s", want.Data, id, diff, file)
		}
	}
}

// TestNodeReadsWhatWasWritten checks the syntax of files for DNSControl, and runs them.
func TestNodeReadsWhatWasWritten(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Log("-short: Node.js is not started")
		return
	}
	dnscontrol := musttest.Get(recordfile.Parse("dnscontrol"))(t)
	var files strings.Builder
	for _, record := range hostile() {
		files.WriteString(musttest.Get(dnscontrol.File("example.com", []dmarcd.DNSRecord{record}))(t))
	}
	if diff := cmp.Diff(hostile(), runNode(t, files.String())); diff != "" {
		t.Errorf("records (-want +got):\n%s\n%s", diff, files.String())
	}
}

func TestRejectedRecords(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		record dmarcd.DNSRecord
		code   string
	}{
		{"newline", txt("_dmarc.example.com", "v=DMARC1\n; p=none"), "unsupported_value"},
		{"control character", txt("_dmarc.example.com", "v=DMARC1\x00"), "unsupported_value"},
		{"not ASCII", txt("_dmarc.example.com", "v=DMARC1; ü"), "unsupported_value"},
		{"not UTF-8", txt("_dmarc.example.com", "v=DMARC1; \xff"), "unsupported_value"},
		{"name with a quote", txt(`x".example.com`, "v=DMARC1"), "unsupported_value"},
		{"name with a newline", txt("x\n.example.com", "v=DMARC1"), "unsupported_value"},
		{"MX without a preference", dmarcd.DNSRecord{Name: "example.com", Type: "MX", Data: "."}, "unsupported_value"},
		{"MX with code", dmarcd.DNSRecord{Name: "example.com", Type: "MX", Data: "0 x\n}"}, "unsupported_value"},
		{"CNAME with code", dmarcd.DNSRecord{Name: "_dmarc.example.com", Type: "CNAME", Data: "x\n}"}, "unsupported_value"},
		{"CNAME without a target", dmarcd.DNSRecord{Name: "_dmarc.example.com", Type: "CNAME", Data: "."}, "unsupported_value"},
		{"CNAME of a zone", dmarcd.DNSRecord{Name: "example.com", Type: "CNAME", Data: "x.example.net."}, "unsupported_value"},
		{"another type", dmarcd.DNSRecord{Name: "example.com", Type: "AAAA", Data: "2001:db8::1"}, "unsupported_value"},
		{"another zone", txt("_dmarc.example.org", "v=DMARC1"), "no_record"},
		{"a zone that ends alike", txt("_dmarc.notexample.com", "v=DMARC1"), "no_record"},
	} {
		for _, f := range recordfile.Formats() {
			if _, err := f.File("example.com", []dmarcd.DNSRecord{test.record}); codeOf(err) != test.code {
				t.Errorf("%s as %s: got %v want %s", test.name, f.ID, err, test.code)
			}
		}
	}
	if _, err := recordfile.Parse("word"); codeOf(err) != "unknown_format" {
		t.Errorf("unknown format: got %v want %s", err, "unknown_format")
	}
}

func codeOf(err error) string {
	var invalid *dmarcd.InvalidError
	if errors.As(err, &invalid) {
		return invalid.Code
	}
	return ""
}

func TestZone(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, found, want string }{
		{"_dmarc.shop.example.com", "shop.example.com", "shop.example.com"},
		{"_dmarc.shop.example.com", "example.com", "example.com"},
		{"_dmarc.shop.example.com", "", "example.com"},
		{"_dmarc.unregistered.com", "com", "unregistered.com"},
		{"_dmarc.shop.example.co.uk", "", "example.co.uk"},
		{"shop.example.com._report._dmarc.reports.example.net", "shop.example.com", "example.net"},
	} {
		if got := recordfile.Zone(test.name, test.found); got != test.want {
			t.Errorf("%s with %q found: got %s want %s", test.name, test.found, got, test.want)
		}
	}
}
