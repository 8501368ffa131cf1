package tlsrpt_test

import (
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/tlsrpt"
)

func TestKey(t *testing.T) {
	t.Parallel()
	policies := []tlsrpt.Policy{{}, {Domain: "b.example"}, {Domain: "a.example"}, {}, {Domain: "c.example"}}
	for _, tt := range []struct {
		name   string
		report tlsrpt.Report
		want   tlsrpt.Key
	}{
		{"nothing", tlsrpt.Report{}, tlsrpt.Key{}},
		{
			"all of it",
			tlsrpt.Report{OrgName: "Reporter", ContactInfo: "a@b.example", ReportID: "17+a/b@c", Begin: 1, End: 2, Policies: policies},
			tlsrpt.Key{Organization: "reporter", ReportID: "17+a/b@c", Domain: "a.example", Begin: 1, End: 2},
		},
		{"no name", tlsrpt.Report{ContactInfo: "mailto:a@B.example"}, tlsrpt.Key{Organization: "b.example"}},
		{"no name and no address", tlsrpt.Report{ContactInfo: "+49 30 1234"}, tlsrpt.Key{}},
		{"brackets", tlsrpt.Report{ReportID: "<17@a.example>"}, tlsrpt.Key{ReportID: "17@a.example"}},
	} {
		if got := tt.report.Key(); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

func TestSessions(t *testing.T) {
	t.Parallel()
	const most, saturated = 1<<53 - 1, 1<<52 - 1
	report := tlsrpt.Report{Policies: []tlsrpt.Policy{{Successful: most, Failed: 1}, {Successful: most, Failed: 2}}}
	if successful, failed := report.Sessions(); successful != saturated || failed != 3 {
		t.Errorf("got %d and %d, want %d and 3", successful, failed, int64(saturated))
	}
}

func TestKnownWords(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name      string
		got, want bool
	}{
		{"policy type", tlsrpt.PolicyNotFound.Known(), true},
		{"other policy type", tlsrpt.PolicyType("x").Known(), false},
		{"result type", tlsrpt.STSWebPKIInvalid.Known(), true},
		{"other result type", tlsrpt.ResultType("x").Known(), false},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, tt.got, tt.want)
		}
	}
}

// full has every member, each with a different value.
const full = `{"organization-name":"R","contact-info":"a@r.example","report-id":"i",` +
	`"date-range":{"start-datetime":"2026-04-01T00:00:00Z","end-datetime":"2026-04-01T23:59:59Z"},` +
	`"policies":[{"policy":{"policy-type":"sts","policy-domain":"d.example","policy-string":["s","t"],"mx-host":["m"]},` +
	`"summary":{"total-successful-session-count":10,"total-failure-session-count":20},` +
	`"failure-details":[{"result-type":"tlsa-invalid","sending-mta-ip":"192.0.2.1","receiving-mx-hostname":"h.example",` +
	`"receiving-mx-helo":"helo","receiving-ip":"192.0.2.2","failed-session-count":20,"additional-information":"u","failure-reason-code":"c"}]}]}`

// TestContent checks that the hash depends on content and not on form.
func TestContent(t *testing.T) {
	t.Parallel()
	want := read(t, full).Content
	for _, tt := range []struct {
		name, old, new string
	}{
		{"blanks", `,`, " ,\n"},
		{"escapes", `"R"`, `"\u0052"`},
		{"padding", `"R"`, `" R "`},
		{"case of words", `sts`, `STS`},
		{"case of domains", `d.example`, `D.Example.`},
		{"form of addresses", `192.0.2.1`, `::ffff:192.0.2.1`},
		{"texts for numbers", `:20`, `:"20"`},
		{"names", `report-id`, `reportId`},
		{"zone", `T00:00:00Z`, `T02:00:00+02:00`},
		{"single values", `["m"]`, `"m"`},
		{"order", `"policy-type":"sts","policy-domain":"d.example"`, `"policy-domain":"d.example","policy-type":"sts"`},
	} {
		changed := strings.ReplaceAll(full, tt.old, tt.new)
		if got := read(t, changed); changed == full || got.Content != want {
			t.Errorf("%s: got another content, want the same", tt.name)
		}
	}
	for _, tt := range []struct{ name, old, new string }{
		{"organization", `"R"`, `"S"`},
		{"contact", `a@r`, `b@r`},
		{"id", `"i"`, `"j"`},
		{"begin", `T00:00:00Z`, `T00:00:01Z`},
		{"end", `T23:59:59Z`, `T23:59:58Z`},
		{"no policies", `"policies":`, `"x":`},
		{"policy type", `sts`, `tlsa`},
		{"policy domain", `d.example`, `e.example`},
		{"policy string", `["s","t"]`, `["s","u"]`},
		{"policy strings", `["s","t"]`, `["st"]`},
		{"MX host", `"m"`, `"n"`},
		{"MX host as policy string", `["s","t"],"mx-host":["m"]`, `["s","t","m"]`},
		{"successful", `:10`, `:11`},
		{"failed", `"total-failure-session-count":20`, `"total-failure-session-count":21`},
		{"result type", `tlsa-invalid`, `dane-required`},
		{"sending address", `192.0.2.1`, `192.0.2.3`},
		{"receiving host", `h.example`, `i.example`},
		{"receiving helo", `"helo"`, `"ehlo"`},
		{"receiving address", `192.0.2.2`, `192.0.2.3`},
		{"sessions", `"failed-session-count":20`, `"failed-session-count":19`},
		{"information", `"u"`, `"v"`},
		{"reason", `"c"`, `"d"`},
	} {
		if got := read(t, strings.Replace(full, tt.old, tt.new, 1)); got.Content == want {
			t.Errorf("%s: got the same content, want another", tt.name)
		}
	}
}
