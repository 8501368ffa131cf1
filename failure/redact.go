package failure

import (
	"regexp"
	"strings"
)

// hidden replaces a local part (RFC 6590 §3).
const hidden = "redacted"

var (
	// anyAddress matches an address: a local part, quoted or not, and a domain. The local
	// part may contain an equals sign, as in VERP addresses, which contain the
	// recipient's address; with several at signs everything up to the last is redacted.
	anyAddress = regexp.MustCompile(`(?:(?:"[^"\r\n]*"|[^\s<>()\[\],;:@"])+@)+(?:\[[^\]\s]*\]|[^\s<>()\[\],;:@"'/?&=]+)`)
	// property matches a property name directly before an address, as in
	// "smtp.mailfrom=name@example.com" (RFC 8601 §2.2): a property type with any
	// property, or a name that Received-SPF and DKIM use. It is not part of the address.
	property = regexp.MustCompile(`(?i)^((?:smtp|header|body|policy|auth|dns)\.[a-z0-9-]+|envelope-(?:from|to)|from|i)=`)
	// peopleFields are the fields that may contain names of persons next to addresses.
	peopleFields = regexp.MustCompile(`(?i)^(from|to|cc|bcc|sender|reply-to|resent-[a-z-]+|delivered-to|x-original-to|return-path|errors-to|disposition-notification-to):`)
)

// Redact removes the personal data that o does not retain. Parse with the same options
// returns the same report for the result as for m. Parts of a mail that are not in a
// Message, such as text next to the feedback, are not in the result either.
func Redact(m Message, o Options) Message {
	if !isFeedback(m) {
		m = withoutQuote(m)
	}
	header, body := splitOriginal(m.Original)
	if !o.KeepBody {
		body = ""
	}
	feedback, text := strings.ToValidUTF8(string(m.Feedback), "�"), strings.ToValidUTF8(string(m.Text), "�")
	if !o.KeepLocalParts {
		feedback = hideHeader(strings.ReplaceAll(feedback, "\r\n", "\n"))
		text, header, body = hideLocalParts(text), hideHeader(header), hideLocalParts(body)
	}
	redacted := Message{Date: m.Date, Feedback: []byte(feedback), Text: []byte(text)}
	if header != "" || body != "" {
		redacted.Original = []byte(header + "\n\n" + body)
	}
	return redacted
}

// redact redacts the local parts of all addresses, unless they are to be retained. A
// Message-ID looks like an address but is not one.
func (p *parser) redact() {
	if p.options.KeepLocalParts {
		return
	}
	r := &p.report
	for _, text := range []*string{
		&r.UserAgent, &r.DKIMIdentity, &r.DKIMSelectorDNS, &r.OriginalEnvelopeID, &r.OriginalMailFrom,
		&r.SourceText, &r.DeliveryText, &r.Body,
	} {
		*text = hideLocalParts(*text)
	}
	for _, texts := range [][]string{r.AuthenticationResults, r.SPFDNS, r.OriginalRcptTo} {
		for i := range texts {
			texts[i] = hideLocalParts(texts[i])
		}
	}
	r.From = addressesOnly(r.From)
	r.Header = hideHeader(r.Header)
}

// hideLocalParts redacts the local part of every address in a text.
func hideLocalParts(text string) string {
	return anyAddress.ReplaceAllStringFunc(text, func(found string) string {
		before := property.FindString(found)
		return before + hidden + found[strings.LastIndexByte(found, '@'):]
	})
}

// addressesOnly returns the redacted addresses of a field without names of persons.
func addressesOnly(text string) string {
	return hideLocalParts(strings.Join(anyAddress.FindAllString(text, -1), ", "))
}

// hideHeader redacts a header.
func hideHeader(header string) string {
	var b strings.Builder
	for _, field := range unfoldedFields(header) {
		name, value, _ := strings.Cut(field, ":")
		switch {
		case strings.EqualFold(strings.TrimSpace(name), "message-id"):
			b.WriteString(field)
		case peopleFields.MatchString(field):
			b.WriteString(name + ": " + addressesOnly(value))
		default:
			b.WriteString(hideLocalParts(field))
		}
		b.WriteByte('\n')
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// unfoldedFields returns the fields of a header with their folded lines.
func unfoldedFields(header string) []string {
	var all []string
	start, end := 0, 0
	for line := range strings.Lines(header) {
		if end > start && line[0] != ' ' && line[0] != '\t' {
			all = append(all, strings.TrimRight(header[start:end], "\n"))
			start = end
		}
		end += len(line)
	}
	return append(all, strings.TrimRight(header[start:], "\n"))
}
