package failure

import (
	"strings"

	"github.com/dmarcd/dmarcd/internal/reporttext"
)

// original reads the header of the mail that failed.
func (p *parser) original() {
	header, body := splitOriginal(p.message.Original)
	p.quirks.noteIf(header == "" && body == "", OriginalMissing)
	f, _ := parseFields(header)
	r := &p.report
	r.Header = header
	r.From = f.first("from")
	if id := f.first("message-id"); id != "" {
		r.MessageID = id
	}
	if when, ok := date(f.first("date")); ok {
		r.Date = when
	}
	if p.options.KeepBody {
		r.Body = body
	}
}

// splitOriginal returns the header and the body of the mail that failed, as valid UTF-8
// with line feeds alone.
func splitOriginal(original []byte) (header, body string) {
	text := strings.TrimLeft(strings.ToValidUTF8(string(original), "�"), "\r\n")
	text = strings.ReplaceAll(text, "\r\n", "\n")
	header, body, _ = strings.Cut(text, "\n\n")
	return header, body
}

// fillIn takes from the mails what the report itself does not tell.
func (p *parser) fillIn() {
	r := &p.report
	if r.ReportedDomain == "" {
		p.quirks.noteIf(true, ReportedDomainMissing)
		if found := anyAddress.FindAllString(r.From, -1); len(found) > 0 {
			r.ReportedDomain = domain(found[len(found)-1])
		}
	}
	if r.ArrivalDate.IsZero() {
		p.quirks.noteIf(!p.quirks[DateUnreadable], ArrivalDateMissing)
		if when, ok := date(p.message.Date); ok {
			r.ArrivalDate = when
		}
	}
	p.quirks.noteIf(!r.ArrivalDate.IsZero() && !reporttext.Plausible(r.ArrivalDate.Unix(), p.options.Latest), DateImplausible)
}
