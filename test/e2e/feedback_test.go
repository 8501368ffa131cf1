package e2e_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd/internal/packtest"
)

// feedback is an aggregate report.
type feedback struct {
	org, id string
	domain  string
	day     string // such as 2026-11-15
	rows    []feedbackRow
}

// feedbackRow is a record of an aggregate report.
type feedbackRow struct {
	from      string // From domain
	count     int64
	compliant bool
}

// feedbackDay is the default day of reports.
const feedbackDay = "2026-11-14"

// about returns a report about a domain with these numbers of messages.
func about(name, id string, compliant, nonCompliant int64) feedback {
	return feedback{
		org: "Reporter Inc.", id: id, domain: name, day: feedbackDay,
		rows: []feedbackRow{{name, compliant, true}, {name, nonCompliant, false}},
	}
}

// xml returns the report in the schema of RFC 7489, appendix C.
func (f feedback) xml() string {
	begin, err := time.Parse(time.DateOnly, f.day)
	if err != nil {
		panic(err) // invalid date in a test
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<?xml version="1.0" encoding="UTF-8"?>
<feedback>
  <version>1.0</version>
  <report_metadata>
    <org_name>%s</org_name>
    <email>reports@reporter.example</email>
    <report_id>%s</report_id>
    <date_range><begin>%d</begin><end>%d</end></date_range>
  </report_metadata>
  <policy_published>
    <domain>%s</domain><adkim>r</adkim><aspf>r</aspf><p>none</p><sp>none</sp><pct>100</pct>
  </policy_published>
`, f.org, f.id, begin.Unix(), begin.Unix()+86399, f.domain)
	for i, row := range f.rows {
		result := map[bool]string{true: "pass", false: "fail"}[row.compliant]
		fmt.Fprintf(&b, `  <record>
    <row>
      <source_ip>192.0.2.%[1]d</source_ip><count>%[2]d</count>
      <policy_evaluated><disposition>none</disposition><dkim>%[3]s</dkim><spf>fail</spf></policy_evaluated>
    </row>
    <identifiers><header_from>%[4]s</header_from></identifiers>
    <auth_results><dkim><domain>%[4]s</domain><selector>s1</selector><result>%[3]s</result></dkim></auth_results>
  </record>
`, i+1, row.count, result, row.from)
	}
	b.WriteString("</feedback>\n")
	return b.String()
}

// wrapping is a container format.
type wrapping struct {
	name string
	wrap func(content string) string
}

// wrappings returns the container formats of a report.
func wrappings() []wrapping {
	return []wrapping{
		{"report.xml", func(content string) string { return content }},
		{"report.xml.gz", gzipped},
		{"report.zip", func(content string) string { return zipped("report.xml", content) }},
		{"report.eml", func(content string) string { return mailWith(gzipped(content)) }},
		{"report.mbox", func(content string) string { return mailboxOf(mailWith(content)) }},
		{"nested.zip", func(content string) string {
			return zipped("folder/forwarded.eml", forwarded(mailWith(zipped("report.xml", content))))
		}},
	}
}

func gzipped(content string) string { return string(packtest.Gzip(content)) }

// zipped returns a zip archive of pairs of name and content.
func zipped(pairs ...string) string { return string(packtest.Zip(pairs...)) }

// mailHeader is the header of a mail with a report from reporter.example.
const mailHeader = "From: Reports <noreply@reporter.example>\r\n" +
	"To: reports@reports.example\r\n" +
	"Subject: Report Domain: example.com Submitter: reporter.example\r\n" +
	"Date: Sun, 15 Nov 2026 09:30:00 +0000\r\n" +
	"Message-ID: <1@reporter.example>\r\n" +
	"MIME-Version: 1.0\r\n"

// mailWith returns a mail with an attachment.
func mailWith(attachment string) string {
	encoded := base64.StdEncoding.EncodeToString([]byte(attachment))
	var lines strings.Builder
	for len(encoded) > 76 {
		lines.WriteString(encoded[:76] + "\r\n")
		encoded = encoded[76:]
	}
	lines.WriteString(encoded + "\r\n")
	return mailHeader + "Content-Type: multipart/mixed; boundary=\"edge\"\r\n\r\n" +
		"--edge\r\nContent-Type: text/plain\r\n\r\nA report is attached.\r\n" +
		"--edge\r\nContent-Type: application/octet-stream\r\nContent-Transfer-Encoding: base64\r\n" +
		"Content-Disposition: attachment; filename=report\r\n\r\n" + lines.String() + "--edge--\r\n"
}

// forwarded returns a mail that contains another one.
func forwarded(mail string) string {
	return mailHeader + "Content-Type: multipart/mixed; boundary=\"outer\"\r\n\r\n" +
		"--outer\r\nContent-Type: message/rfc822\r\n\r\n" + mail + "\r\n--outer--\r\n"
}

// mailboxOf returns a mail in mbox format (RFC 4155).
func mailboxOf(mail string) string {
	return "From noreply@reporter.example Sun Nov 15 09:30:00 2026\n" + strings.ReplaceAll(mail, "\r\n", "\n") + "\n"
}
