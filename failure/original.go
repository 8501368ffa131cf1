package failure

import (
	"strings"

	"github.com/dmarcd/dmarcd/internal/reporttext"
)

// original parses the header of the failed mail.
func (p *parser) original() {
	header := headerOf(p.message.Original)
	p.quirks.NoteIf(header == "", OriginalMissing)
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
}

// headerOf returns the header of the failed mail, as valid UTF-8 with LF line endings. Lines
// that are no field are not part of it: they may be text of the body.
func headerOf(original []byte) string {
	header, _, _ := strings.Cut(strings.TrimLeft(lineEnds(original), "\n"), "\n\n")
	var b strings.Builder
	inField := false
	for line := range strings.Lines(header) {
		if line[0] != ' ' && line[0] != '\t' {
			inField = fieldLine.MatchString(line)
		}
		if inField {
			b.WriteString(line)
		}
	}
	return strings.TrimRight(b.String(), "\n")
}

// lineEnds returns content as valid UTF-8 with LF line endings.
func lineEnds(content []byte) string {
	text := strings.ReplaceAll(strings.ToValidUTF8(string(content), "�"), "\r\n", "\n")
	return strings.ReplaceAll(text, "\r", "\n")
}

// fillIn fills in missing values from the mails.
func (p *parser) fillIn() {
	r := &p.report
	if r.ReportedDomain == "" {
		p.quirks.Note(ReportedDomainMissing)
		if found := anyAddress.FindAllString(r.From, -1); len(found) > 0 {
			r.ReportedDomain = domain(found[len(found)-1])
		}
	}
	if r.ArrivalDate.IsZero() {
		p.quirks.NoteIf(!p.quirks.Has(DateUnreadable), ArrivalDateMissing)
		if when, ok := date(p.message.Date); ok {
			r.ArrivalDate = when
		}
	}
	p.quirks.NoteIf(!r.ArrivalDate.IsZero() && !reporttext.Plausible(r.ArrivalDate.Unix(), p.options.Latest), DateImplausible)
}
