package genuine

import (
	"io"
	"net/mail"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/intake/unpack"
)

// Limits of a header, far above what mail systems write. They bound the work of the library,
// which grows with their product.
const (
	maxHeaderBytes = 128 << 10
	maxFieldBytes  = 32 << 10
	maxFields      = 500
)

// fieldName matches the start of a header field, with the characters used in practice. RFC
// 5322 §3.6.8 allows every printable character, which would make JSON a mail.
var fieldName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]*[ \t]*:`)

// header has the fields that identify the sender.
type header struct {
	// mail means that there is a header.
	mail bool
	// problem is why the header is not usable; "" if it is.
	problem string
	// from and signatures are the unfolded values of the From and DKIM-Signature fields.
	from, signatures []string
}

// readHeader reads the header of a mail. It returns errors of r only.
func readHeader(r io.ReadSeeker) (header, error) {
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return header{}, err
	}
	beginning, err := io.ReadAll(io.LimitReader(r, maxHeaderBytes))
	if err != nil {
		return header{}, err
	}
	var h header
	fields, whole := splitFields(string(beginning))
	if len(fields) == 0 {
		return h, nil
	}
	h.mail = true
	if !whole {
		h.problem = "The header of the mail is too long, or does not end."
		return h, nil
	}
	if len(fields) > maxFields {
		h.problem = "The header of the mail has too many fields."
		return h, nil
	}
	for _, field := range fields {
		if len(field) > maxFieldBytes {
			h.problem = "The header of the mail has a field that is too long."
			return h, nil
		}
		h.add(field)
	}
	h.problem = ambiguity(fields, beginning)
	return h, nil
}

// ambiguity returns why the reports may be read from content that no signature covers, "" if
// they are not. Anyone can add unsigned fields to a mail: they must not change how unpack reads
// it.
func ambiguity(fields []string, beginning []byte) string {
	seen := make(map[string]bool)
	for _, field := range fields {
		line, _, _ := strings.Cut(field, "\n")
		if unpack.EndsHeader([]byte(line)) {
			return "The header of the mail has a line at which its body could begin."
		}
		name, _, _ := strings.Cut(field, ":")
		// The library trims line endings from a name too.
		name = unpack.FieldName(strings.TrimSpace(name))
		if decidesBody[name] && seen[name] {
			return "The header of the mail has more than one Content-Type or Content-Transfer-Encoding field."
		}
		seen[name] = true
	}
	if !unpack.IsMail(beginning) {
		return "The header of the mail looks like content of another format."
	}
	return ""
}

// decidesBody are the fields that decide how unpack reads the body, by unpack.FieldName. It uses
// the first of a repeated field, and a signature covers the last (RFC 6376 §5.4.2).
var decidesBody = map[string]bool{"contenttype": true, "contenttransferencoding": true}

// splitFields splits the header of a text into fields. A text that does not start with a field
// has none; later lines that are not fields count as fields. The header ends exactly where it
// ends for the library, so that the limits apply to all that the library reads. whole is false
// if the header does not end.
func splitFields(text string) (fields []string, whole bool) {
	start := 0 // of the current field
	for at := 0; ; {
		end := strings.IndexByte(text[at:], '\n')
		if end < 0 {
			return fields, false
		}
		line := text[at : at+end+1]
		empty := line == "\n" || line == "\r\n" // other CRs are content
		continues := at > 0 && (line[0] == ' ' || line[0] == '\t')
		if !continues {
			if at > 0 {
				fields = append(fields, text[start:at])
			}
			start = at
			if empty || at == 0 && !fieldName.MatchString(line) {
				return fields, true
			}
		}
		at += end + 1
	}
}

func (h *header) add(field string) {
	name, value, _ := strings.Cut(field, ":")
	value = strings.NewReplacer("\r", "", "\n", "").Replace(value)
	name = strings.TrimSpace(name)
	// EqualFold, as in the library: it equates other letters with k and s too.
	switch {
	case strings.EqualFold(name, "from"):
		h.from = append(h.from, value)
	case strings.EqualFold(name, "dkim-signature"):
		h.signatures = append(h.signatures, value)
	}
}

// author returns the domain of the single address in the From field, or a sentence why there is
// none. RFC 9989 leaves mail with several authors to receivers.
func (h header) author() (domain, problem string) {
	switch len(h.from) {
	case 0:
		return "", "The mail has no From field."
	case 1:
	default:
		return "", "The mail has more than one From field."
	}
	address, problem := onlyAddress(h.from[0])
	if problem != "" {
		return "", problem
	}
	domain = domainOf(inALabels(address))
	if !dns.ValidName(domain) {
		return "", "The address in the From field has no domain."
	}
	return domain, ""
}

func onlyAddress(value string) (address, problem string) {
	list, err := mail.ParseAddressList(value)
	switch {
	case err == nil && len(list) == 1:
		return list[0].Address, ""
	case err == nil:
		return "", "The From field of the mail has more than one address."
	case strings.Count(value, "@") == 1:
		// Reporters forget to quote display names (RFC 5322). With a single at sign the
		// address is still clear.
		before, after, _ := strings.Cut(value, "@")
		local := before[strings.LastIndexAny(before, " \t<")+1:]
		end := strings.IndexAny(after, " \t>")
		if end < 0 {
			end = len(after)
		}
		return local + "@" + after[:end], ""
	default:
		return "", "The From field of the mail cannot be read."
	}
}

// domainOf returns the domain of an address in the form of dns.Name.
func domainOf(address string) string {
	return dns.Name(address[strings.LastIndexByte(address, '@')+1:])
}

// inALabels converts the domain of an address to A-labels. It returns an address without a
// domain unchanged.
func inALabels(address string) string {
	at := strings.LastIndexByte(address, '@')
	domain := address[at+1:]
	if strings.IndexFunc(domain, func(r rune) bool { return r >= utf8.RuneSelf }) < 0 {
		return address
	}
	name, err := dmarcd.ParseName(domain)
	if err != nil {
		return address
	}
	return address[:at+1] + name
}
