package failure

import (
	"regexp"
	"strings"
)

// textReport finds the opening of the reports that Exim with Baruwa sends.
var textReport = regexp.MustCompile(`(?i)claim\w*\s+to\s+be\s+from\s+you\s+has\s+failed\s+the\s+published\s+DMARC\s+policy`)

// copyOfHeaders finds the line behind which the header of the mail is quoted.
var copyOfHeaders = regexp.MustCompile(`(?im)^-*[^\n]*copy of the headers[^\n]*\n`)

// textLine finds a fact, a line such as "  Sender Domain: example.com".
var textLine = regexp.MustCompile(`(?m)^[ \t]*([A-Za-z][A-Za-z ]*):[ \t]*([^\r\n]*)`)

// IsText reports whether a text that begins with head is a failure report for
// people, of the only kind that is known.
func IsText(head []byte) bool { return textReport.Match(head) }

// withoutQuote moves the header that a report for people quotes to Original, unless the
// mail that failed was sent too.
func withoutQuote(m Message) Message {
	if at := copyOfHeaders.FindIndex(m.Text); at != nil {
		if len(m.Original) == 0 {
			m.Original = m.Text[at[1]:]
		}
		m.Text = m.Text[:at[0]]
	}
	return m
}

// text reads a report for people.
func (p *parser) text() {
	p.message = withoutQuote(p.message)
	text := string(p.message.Text)
	facts := make(fields)
	for _, match := range textLine.FindAllStringSubmatch(text, maxFields) {
		name := strings.ToLower(match[1])
		facts[name] = append(facts[name], bounded(strings.TrimSpace(match[2])))
	}
	p.quirks.noteIf(true, TextOnly)
	r := &p.report
	r.ReportedDomain = domain(facts.first("sender domain"))
	p.source(facts.first("sender ip address"))
	p.arrival(fields{"arrival-date": facts["received date"]})
	for _, mechanism := range []string{"dkim", "spf"} {
		switch strings.ToLower(facts.first(mechanism + " alignment")) {
		case "yes":
			r.AlignmentTold = true
		case "no":
			r.AlignmentTold = true
			r.Misaligned = append(r.Misaligned, mechanism)
		}
	}
	r.DeliveryText = facts.first("dmarc results")
	r.Incidents = 1
}
