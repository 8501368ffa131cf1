package aggregate_test

import (
	"fmt"
	"io"
	"strings"
)

// generated is a document of n records that is generated while it is read, so that it
// does not count in memory measurements.
type generated struct {
	head, tail string
	part       func(i int) string
	n, next    int
	rest       string
}

func (g *generated) Read(p []byte) (int, error) {
	for g.rest == "" {
		switch {
		case g.next == 0:
			g.rest = g.head
		case g.next <= g.n:
			g.rest = g.part(g.next - 1)
		case g.next == g.n+1:
			g.rest = g.tail
		default:
			return 0, io.EOF
		}
		g.next++
	}
	n := copy(p, g.rest)
	g.rest = g.rest[n:]
	return n, nil
}

const sampleHead = `<?xml version="1.0" encoding="UTF-8" ?>
<feedback>
  <version>1.0</version>
  <report_metadata>
    <org_name>receiver.example</org_name>
    <email>dmarc@receiver.example</email>
    <report_id>20260101.17</report_id>
    <date_range>
      <begin>1767225600</begin>
      <end>1767311999</end>
    </date_range>
  </report_metadata>
  <policy_published>
    <domain>example.com</domain>
    <adkim>r</adkim>
    <aspf>r</aspf>
    <p>reject</p>
    <sp>reject</sp>
    <pct>100</pct>
    <fo>1</fo>
  </policy_published>
`

const sampleTail = "</feedback>\n"

// sampleRecord returns a typical record of a large receiver.
func sampleRecord(i int) string {
	return fmt.Sprintf(`  <record>
    <row>
      <source_ip>192.0.%d.%d</source_ip>
      <count>%d</count>
      <policy_evaluated>
        <disposition>none</disposition>
        <dkim>pass</dkim>
        <spf>fail</spf>
      </policy_evaluated>
    </row>
    <identifiers>
      <envelope_from>bounce.sender%d.example</envelope_from>
      <header_from>example.com</header_from>
    </identifiers>
    <auth_results>
      <dkim>
        <domain>example.com</domain>
        <selector>s%d</selector>
        <result>pass</result>
      </dkim>
      <dkim>
        <domain>sender%d.example</domain>
        <selector>k1</selector>
        <result>pass</result>
      </dkim>
      <spf>
        <domain>bounce.sender%d.example</domain>
        <scope>mfrom</scope>
        <result>pass</result>
      </spf>
    </auth_results>
  </record>
`, i/256%256, i%256, i%977+1, i%50, i%7, i%50, i%50)
}

func sample(n int) *generated {
	return &generated{head: sampleHead, tail: sampleTail, part: sampleRecord, n: n}
}

// withHead returns a report with the given record.
func withHead(record string) string {
	return sampleHead + record + sampleTail
}

// edited returns a report with one record in which old is replaced.
func edited(old, piece string) string {
	return strings.Replace(withHead(sampleRecord(0)), old, piece, 1)
}
