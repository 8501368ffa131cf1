package failure

import (
	"regexp"
	"strings"
)

// headerEnd finds the empty line between a header and a body.
var headerEnd = regexp.MustCompile(`\r?\n\r?\n`)

// original reads the header of the mail that failed.
func (p *parser) original() {
	text := strings.TrimLeft(strings.ToValidUTF8(string(p.message.Original), "�"), "\r\n")
	p.quirks.noteIf(text == "", OriginalMissing)
	header, body := text, ""
	if at := headerEnd.FindStringIndex(text); at != nil {
		header, body = text[:at[0]], text[at[1]:]
	}
	f, _ := parseFields(header)
	r := &p.report
	r.Header = strings.ReplaceAll(header, "\r\n", "\n")
	r.From = f.first("from")
	if id := f.first("message-id"); id != "" {
		r.MessageID = id
	}
	if when, ok := date(f.first("date")); ok {
		r.Date = when
	}
	if p.options.KeepBody {
		r.Body = strings.ReplaceAll(body, "\r\n", "\n")
	}
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
}
