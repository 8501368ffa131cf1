package failure

import (
	"strconv"
	"strings"

	"github.com/dmarcd/dmarcd/internal/quirk"
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
