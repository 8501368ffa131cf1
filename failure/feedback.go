package failure

import (
	"net/mail"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd/internal/quirk"
	"github.com/dmarcd/dmarcd/internal/reporttext"
)

// onceOnly are the fields that may occur once (RFC 5965 §3.1, §3.2, RFC 6591
// §3.2, RFC 9991).
var onceOnly = []string{
	"feedback-type", "user-agent", "version", "arrival-date", "source-ip", "incidents", "reporting-mta",
	"original-envelope-id", "original-mail-from", "auth-failure", "delivery-result", "identity-alignment",
}

type parser struct {
	message Message
	options Options
	report  Report
	quirks  quirk.Tally[Quirk]
}

// feedback parses the machine-readable part.
func (p *parser) feedback() error {
	f, malformed := parseFields(lineEnds(p.message.Feedback))
	if err := p.feedbackType(f); err != nil {
		return err
	}
	p.quirks.NoteIf(malformed > 0, FieldMalformed)
	for _, name := range onceOnly {
		p.quirks.NoteIf(len(f[name]) > 1, FieldRepeated)
	}
	r := &p.report
	r.UserAgent = f.first("user-agent")
	r.Version = f.first("version")
	p.quirks.NoteIf(r.Version == "", VersionMissing)
	p.quirks.NoteIf(r.Version != "" && r.Version != "1", VersionUnusual)

	p.authFailure(f.first("auth-failure"))
	r.AuthenticationResults = f.filled("authentication-results")
	p.alignment(f)
	p.source(f.first("source-ip"))
	if port, err := strconv.ParseUint(f.first("source-port"), 10, 16); err == nil {
		r.SourcePort = uint16(port)
	}
	r.ReportedDomain = domain(f.first("reported-domain"))
	r.ReportingMTA = afterType(f.first("reporting-mta"))
	p.arrival(f)
	p.delivery(f.first("delivery-result"))
	r.Incidents = incidents(f.first("incidents"))

	r.DKIMDomain = domain(f.first("dkim-domain"))
	r.DKIMIdentity = f.first("dkim-identity")
	r.DKIMSelector = f.first("dkim-selector")
	r.DKIMSelectorDNS = f.first("dkim-selector-dns")
	r.SPFDNS = f.filled("spf-dns")
	r.OriginalEnvelopeID = f.first("original-envelope-id")
	r.OriginalMailFrom = unbracketed(f.first("original-mail-from"))
	for _, rcpt := range f.filled("original-rcpt-to") {
		r.OriginalRcptTo = append(r.OriginalRcptTo, unbracketed(rcpt))
	}
	r.MessageID = f.first("message-id") // not in any RFC, but some reporters send it
	return nil
}

// feedbackType rejects reports that are not about authentication.
func (p *parser) feedbackType(f fields) error {
	word := strings.ToLower(f.first("feedback-type"))
	if word == "" {
		if f.first("auth-failure") == "" {
			return &RejectedError{Why: RejectedNone}
		}
		p.quirks.Note(FeedbackTypeMissing)
		word = "auth-failure"
	}
	if word != "auth-failure" {
		return &RejectedError{Why: RejectedOther, FeedbackType: word}
	}
	p.report.FeedbackType = word
	return nil
}

func (p *parser) authFailure(text string) {
	word := AuthFailure(strings.ToLower(withoutComments(text)))
	p.report.AuthFailure = word
	switch word {
	case FailureADSP, FailureBodyHash, FailureRevoked, FailureSignature, FailureSPF, FailureDMARC:
	case "":
		p.quirks.Note(AuthFailureMissing)
	default:
		p.quirks.Note(AuthFailureUnknown)
	}
}

// alignment parses the mechanisms without an aligned identifier (RFC 9991): a
// comma-separated list, or "none".
func (p *parser) alignment(f fields) {
	text := strings.ToLower(withoutComments(f.first("identity-alignment")))
	if text == "" {
		p.quirks.NoteIf(p.report.AuthFailure == FailureDMARC, AlignmentMissing)
		return
	}
	p.report.AlignmentReported = true
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' || r == ' ' }) {
		switch word {
		case "dkim", "spf":
			p.report.Misaligned = append(p.report.Misaligned, word)
		case "none":
		default:
			p.quirks.Note(AlignmentUnknown)
		}
	}
}

func (p *parser) source(text string) {
	if text == "" {
		p.quirks.Note(SourceIPMissing)
		return
	}
	addr, ok := address(text)
	if !ok {
		p.report.SourceText = text
		p.quirks.Note(SourceIPUnreadable)
		return
	}
	p.report.SourceIP = addr
	p.quirks.NoteIf(addr.String() != text, SourceIPForm)
}

func (p *parser) arrival(f fields) {
	text := f.first("arrival-date")
	if text == "" {
		text = f.first("received-date")
		p.quirks.NoteIf(text != "", ArrivalDateAlias)
	}
	if text == "" {
		return // defaults to the date of the report
	}
	when, ok := date(text)
	p.quirks.NoteIf(!ok, DateUnreadable)
	p.report.ArrivalDate = when
}

func (p *parser) delivery(text string) {
	if text == "" {
		return
	}
	p.report.DeliveryText = text
	switch word := DeliveryResult(strings.ToLower(withoutComments(text))); word {
	case Delivered, Spam, Policy, Rejected, Other:
		p.report.DeliveryResult = word
	default:
		p.report.DeliveryResult = Other
		p.quirks.Note(DeliveryResultUnknown)
	}
}

// incidents parses the number of mails that the report represents (RFC 5965 §3.2).
func incidents(text string) int {
	if n, err := strconv.ParseInt(text, 10, 32); err == nil && n > 0 {
		return int(n)
	}
	return 1
}

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

// comment matches a comment without nested ones (RFC 5322 §3.2.2).
var comment = regexp.MustCompile(`\([^()]*\)`)

// zones are the time zone names of RFC 5322 §4.3; the standard library treats them as
// UTC.
var zones = map[string]string{
	"EST": "-0500", "EDT": "-0400", "CST": "-0600", "CDT": "-0500",
	"MST": "-0700", "MDT": "-0600", "PST": "-0800", "PDT": "-0700",
	"UT": "+0000", "UTC": "+0000", "GMT": "+0000", "Z": "+0000",
}

// withoutComments removes comments.
func withoutComments(text string) string {
	return strings.TrimSpace(comment.ReplaceAllString(text, ""))
}

// date parses a date of RFC 5322 §3.3 and converts it to UTC. Years before email existed
// or after 9999 are invalid.
func date(text string) (time.Time, bool) {
	words := strings.Fields(withoutComments(text))
	if n := len(words); n > 0 {
		if offset, known := zones[strings.ToUpper(words[n-1])]; known {
			words[n-1] = offset
		}
	}
	plain := strings.Join(words, " ")
	for _, read := range []func(string) (time.Time, error){mail.ParseDate, rfc3339} {
		if when, err := read(plain); err == nil && when.Year() >= 1970 && when.Year() <= 9999 {
			return when.UTC().Truncate(time.Second), true
		}
	}
	return time.Time{}, false
}

func rfc3339(text string) (time.Time, error) { return time.Parse(time.RFC3339, text) }

// address parses the first word of a text as an IP address.
func address(text string) (netip.Addr, bool) {
	if addr, ok := reporttext.Address(text); ok {
		return addr, true
	}
	words := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t[]<>(),;", r) })
	if len(words) == 0 {
		return netip.Addr{}, false
	}
	return reporttext.Address(words[0])
}

// domain returns a domain in lower-case A-labels, without trailing dot and local part.
func domain(text string) string {
	text = unbracketed(withoutComments(text))
	text = text[strings.LastIndexByte(text, '@')+1:]
	return reporttext.ALabels(strings.ToLower(strings.TrimSuffix(strings.TrimSpace(text), ".")))
}

// unbracketed removes angle brackets.
func unbracketed(text string) string {
	text = strings.TrimSpace(text)
	return strings.TrimSuffix(strings.TrimPrefix(text, "<"), ">")
}

// afterType returns the name after a type such as "dns;" (RFC 3464 §2.1.2).
func afterType(text string) string {
	if _, name, found := strings.Cut(text, ";"); found {
		text = name
	}
	return strings.TrimSpace(text)
}
