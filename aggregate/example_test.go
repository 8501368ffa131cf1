package aggregate_test

import (
	"fmt"
	"log"
	"os"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd/aggregate"
)

func ExampleReader() {
	document := strings.NewReader(`<feedback>
  <report_metadata>
    <org_name>Receiver</org_name>
    <report_id>17</report_id>
    <date_range><begin>1767225600</begin><end>1767311999</end></date_range>
  </report_metadata>
  <policy_published><domain>example.com</domain><p>reject</p></policy_published>
  <record>
    <row>
      <source_ip>[2001:db8::1]</source_ip>
      <count>12</count>
      <policy_evaluated><disposition>none</disposition><dkim>Pass</dkim><spf>fail</spf></policy_evaluated>
    </row>
    <identifiers><header_from>example.com</header_from></identifiers>
    <auth_results><dkim><domain>example.com</domain><result>pass</result></dkim></auth_results>
  </record>
</feedback>`)
	r := aggregate.NewReader(document, aggregate.DefaultLimits())
	for record, err := range r.All() {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(record.Source, record.Count, record.Compliant())
	}
	fmt.Println(r.Report().Metadata.OrgName, r.Report().Policy.Domain)
	for _, q := range r.Report().Quirks {
		fmt.Println(q.Count, q.Quirk)
	}
	// Output:
	// 2001:db8::1 12 true
	// Receiver example.com
	// 1 declaration_missing
	// 1 value_case
	// 1 version_missing
	// 1 email_missing
	// 2 policy_incomplete
	// 1 source_ip_form
	// 1 spf_missing
}

func ExampleRender() {
	report := aggregate.Report{
		Version:  "1.0",
		Metadata: aggregate.Metadata{OrgName: "Receiver & Sons", ReportID: "17", Begin: 1767225600, End: 1767311999},
		Policy:   aggregate.PublishedPolicy{Domain: "example.com", P: aggregate.PolicyReject},
	}
	record := aggregate.Record{
		Source: "192.0.2.1", Count: 12, DKIM: aggregate.ResultPass, HeaderFrom: "example.com",
		DKIMResults: []aggregate.DKIMResult{{Domain: "example.com", Result: aggregate.ResultPass}},
	}
	if err := aggregate.Render(os.Stdout, report, slices.Values([]aggregate.Record{record})); err != nil {
		log.Fatal(err)
	}
	// Output:
	// <?xml version="1.0" encoding="UTF-8"?>
	// <feedback xmlns="urn:ietf:params:xml:ns:dmarc-2.0">
	//   <version>1.0</version>
	//   <report_metadata>
	//     <org_name>Receiver &amp; Sons</org_name>
	//     <report_id>17</report_id>
	//     <date_range>
	//       <begin>1767225600</begin>
	//       <end>1767311999</end>
	//     </date_range>
	//   </report_metadata>
	//   <policy_published>
	//     <domain>example.com</domain>
	//     <p>reject</p>
	//   </policy_published>
	//   <record>
	//     <row>
	//       <source_ip>192.0.2.1</source_ip>
	//       <count>12</count>
	//       <policy_evaluated>
	//         <dkim>pass</dkim>
	//       </policy_evaluated>
	//     </row>
	//     <identifiers>
	//       <header_from>example.com</header_from>
	//     </identifiers>
	//     <auth_results>
	//       <dkim>
	//         <domain>example.com</domain>
	//         <result>pass</result>
	//       </dkim>
	//     </auth_results>
	//   </record>
	// </feedback>
}
