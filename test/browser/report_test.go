package browser_test

import (
	"encoding/xml"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// sample is what an aggregate report of the tests says, each in its place.
type sample struct {
	org, email, extra, id, domain        string
	source, envelopeTo, headerFrom       string
	selector, dkimDomain, humanResult    string
	spfDomain, reason, comment, scopeSPF string
	messages, ago                        int // ago is how many days before yesterday
	disposition, dkim, spf               string
}

// aggregateReport returns a report about a domain with seven messages that passed and
// five that did not.
func aggregateReport(domain string) string {
	return document(sample{
		org: "Receiver Inc.", email: "dmarc@receiver.example", id: "report-1", domain: domain,
	}, sample{
		source: "192.0.2.10", headerFrom: domain, selector: "spring", dkimDomain: domain, spfDomain: domain,
		messages: 7, disposition: "none", dkim: "pass", spf: "pass",
	}, sample{
		source: "198.51.100.66", headerFrom: domain, dkimDomain: "elsewhere.example", selector: "autumn", spfDomain: "elsewhere.example",
		messages: 5, disposition: "quarantine", dkim: "fail", spf: "fail", reason: "local_policy", comment: "a comment of the receiver",
	})
}

// document writes a report of yesterday as RFC 9990 has it: the head, and its records.
func document(head sample, records ...sample) string {
	end := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -head.ago)
	var b strings.Builder
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?>` + "\n<feedback>")
	fmt.Fprintf(&b, `<report_metadata><org_name>%s</org_name><email>%s</email><extra_contact_info>%s</extra_contact_info><report_id>%s</report_id><date_range><begin>%d</begin><end>%d</end></date_range></report_metadata>`,
		escape(head.org), escape(head.email), escape(head.extra), escape(head.id), end.Add(-24*time.Hour).Unix(), end.Unix()-1)
	fmt.Fprintf(&b, `<policy_published><domain>%s</domain><p>none</p></policy_published>`, escape(head.domain))
	for _, r := range records {
		fmt.Fprintf(&b, `<record><row><source_ip>%s</source_ip><count>%d</count><policy_evaluated><disposition>%s</disposition><dkim>%s</dkim><spf>%s</spf>`,
			escape(r.source), r.messages, escape(r.disposition), escape(r.dkim), escape(r.spf))
		if r.reason != "" {
			fmt.Fprintf(&b, `<reason><type>%s</type><comment>%s</comment></reason>`, escape(r.reason), escape(r.comment))
		}
		fmt.Fprintf(&b, `</policy_evaluated></row><identifiers><envelope_to>%s</envelope_to><envelope_from>%s</envelope_from><header_from>%s</header_from></identifiers>`,
			escape(r.envelopeTo), escape(r.spfDomain), escape(r.headerFrom))
		fmt.Fprintf(&b, `<auth_results><dkim><domain>%s</domain><selector>%s</selector><result>%s</result><human_result>%s</human_result></dkim><spf><domain>%s</domain><scope>%s</scope><result>%s</result></spf></auth_results></record>`,
			escape(r.dkimDomain), escape(r.selector), escape(r.dkim), escape(r.humanResult), escape(r.spfDomain), escape(r.scopeSPF), escape(r.spf))
	}
	b.WriteString("</feedback>\n")
	return b.String()
}

func escape(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a Builder takes everything
	return b.String()
}

// deliver sends something to the API of the team default, which must be new.
func (s *site) deliver(content string) {
	s.t.Helper()
	if got, body := s.api(http.MethodPost, "/reports", s.token, content); got != http.StatusCreated {
		s.t.Fatalf("upload to the API: got status %d want 201: %s", got, body)
	}
}
