package failure

import (
	"io"
	"mime"
	"regexp"
	"strings"
	"unicode"
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
	// encodedAddress matches an address whose at sign is percent-encoded, as in URLs, or
	// quoted-printable. The domain needs a dot, because numbers may look the same.
	encodedAddress = regexp.MustCompile(`[^\s<>()\[\],;:@"'/?&#=]+((?:%40|=40)(?:[A-Za-z0-9-]+\.)+[A-Za-z]{2,})`)
	// peopleFields are the fields that may contain names of persons next to addresses.
	peopleFields = regexp.MustCompile(`(?i)^(?:[!-9;-~]*-)?(?:from|to|cc|bcc|sender|recipient|return-path)[ \t]*:`)
	// copies are the fields of a feedback report that contain the header and the body of the
	// mail in base64 (RFC 6591 §3.2.4).
	copies = regexp.MustCompile(`(?im)^DKIM-Canonicalized-(?:Header|Body)[ \t]*:.*\n?(?:[ \t].*\n?)*`)
)

// Redact removes all personal data. Parse returns the same report for the result as for m.
// The body of the failed mail, and parts of a mail that are not in a Message, such as text
// next to the feedback, are not in the result.
func Redact(m Message) Message {
	if !isFeedback(m) {
		m = withoutQuote(m)
	}
	feedback := hideHeader(copies.ReplaceAllString(lineEnds(m.Feedback), ""))
	text := hideLines(strings.ToValidUTF8(string(m.Text), "�"))
	redacted := Message{Date: m.Date, Feedback: []byte(feedback), Text: []byte(text)}
	if header := hideHeader(headerOf(m.Original)); header != "" {
		redacted.Original = []byte(header + "\n\n")
	}
	return redacted
}

// redact redacts the local parts of all addresses, unless they are to be retained. A
// Message-ID looks like an address but is not one.
func (p *parser) redact() {
	if p.options.Unredacted {
		return
	}
	r := &p.report
	for _, text := range []*string{
		&r.UserAgent, &r.DKIMIdentity, &r.DKIMSelectorDNS, &r.OriginalEnvelopeID, &r.SourceText, &r.DeliveryText,
	} {
		*text = hideText(*text)
	}
	for _, texts := range [][]string{r.AuthenticationResults, r.SPFDNS} {
		for i := range texts {
			texts[i] = hideText(texts[i])
		}
	}
	var recipients []string
	for _, text := range r.OriginalRcptTo {
		if recipient := addressesOnly(text); recipient != "" {
			recipients = append(recipients, recipient)
		}
	}
	r.OriginalRcptTo = recipients
	r.From, r.OriginalMailFrom = addressesOnly(r.From), addressesOnly(r.OriginalMailFrom)
	r.Header = hideHeader(r.Header)
}

// hideLocalParts redacts the local part of every address in a text.
func hideLocalParts(text string) string {
	text = anyAddress.ReplaceAllStringFunc(text, func(found string) string {
		before := property.FindString(found)
		return before + hidden + found[strings.LastIndexByte(found, '@'):]
	})
	return encodedAddress.ReplaceAllString(text, hidden+"${1}")
}

// words decodes encoded words (RFC 2047). In unknown character sets too, addresses are ASCII.
var words = mime.WordDecoder{CharsetReader: func(_ string, r io.Reader) (io.Reader, error) { return r, nil }}

// maxEncodings is how often a text may be encoded. What is encoded more often is redacted.
const maxEncodings = 3

// hideText is hideLocalParts for a text with encoded words, which are decoded if one of them
// contains an address.
func hideText(text string) string {
	decoded := text
	for range maxEncodings + 1 {
		next, err := words.DecodeHeader(decoded)
		switch {
		case err == nil && next != decoded:
			decoded = next
			continue
		case hideLocalParts(decoded) == decoded:
			return text // no address
		case decoded == text:
			return hideLocalParts(text)
		}
		return hideLocalParts(oneLine(decoded))
	}
	return " " + hidden
}

// oneLine replaces control characters, which an encoded word may contain, by blanks.
func oneLine(text string) string {
	return strings.ToValidUTF8(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text), "�")
}

// hideLines is hideText for each line of a text.
func hideLines(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		content := strings.TrimRight(line, "\r\n")
		b.WriteString(hideText(content) + line[len(content):])
	}
	return b.String()
}

// addressesOnly returns the redacted addresses of a field without names of persons.
func addressesOnly(text string) string {
	return hideLocalParts(strings.Join(anyAddress.FindAllString(text, -1), ", "))
}

// hideHeader redacts a header.
func hideHeader(header string) string {
	var b strings.Builder
	for _, field := range unfoldedFields(header) {
		name, value, found := strings.Cut(field, ":")
		switch {
		case strings.EqualFold(strings.TrimSpace(name), "message-id"):
			b.WriteString(field)
		case peopleFields.MatchString(field):
			b.WriteString(name + ": " + addressesOnly(value))
		case found:
			b.WriteString(hideLocalParts(name) + ":" + hideText(value))
		default:
			b.WriteString(hideText(field))
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
