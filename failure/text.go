package failure

import (
	"regexp"
	"strings"
)

// textReport matches the start of reports by Exim with Baruwa.
var textReport = regexp.MustCompile(`(?i)claim\w*\s+to\s+be\s+from\s+you\s+has\s+failed\s+the\s+published\s+DMARC\s+policy`)

// copyOfHeaders matches the line before the quoted header of the mail.
var copyOfHeaders = regexp.MustCompile(`(?im)^-*[^\n]*copy of the headers[^\n]*\n`)

// textLine matches a line such as "  Sender Domain: example.com".
var textLine = regexp.MustCompile(`(?m)^[ \t]*([A-Za-z][A-Za-z ]*):[ \t]*([^\r\n]*)`)

// IsText reports whether text that starts with head is a failure report in the only known
// plain text format.
func IsText(head []byte) bool { return textReport.Match(head) }

// withoutQuote moves the quoted header of a plain text report to Original, unless that is
// set.
func withoutQuote(m Message) Message {
	if at := copyOfHeaders.FindIndex(m.Text); at != nil {
		if len(m.Original) == 0 {
			m.Original = m.Text[at[1]:]
		}
		m.Text = m.Text[:at[0]]
	}
	return m
}

// text parses a report in plain text.
func (p *parser) text() {
	p.message = withoutQuote(p.message)
	text := string(p.message.Text)
	facts := make(fields)
	for _, match := range textLine.FindAllStringSubmatch(text, maxFields) {
		name := strings.ToLower(match[1])
		facts[name] = append(facts[name], bounded(strings.TrimSpace(match[2])))
	}
	p.quirks.Note(TextOnly)
	r := &p.report
	r.ReportedDomain = domain(facts.first("sender domain"))
	p.source(facts.first("sender ip address"))
	p.arrival(fields{"arrival-date": facts["received date"]})
	for _, mechanism := range []string{"dkim", "spf"} {
		switch strings.ToLower(facts.first(mechanism + " alignment")) {
		case "yes":
			r.AlignmentReported = true
		case "no":
			r.AlignmentReported = true
			r.Misaligned = append(r.Misaligned, mechanism)
		}
	}
	r.DeliveryText = facts.first("dmarc results")
	r.Incidents = 1
}
