package aggregate_test

import (
	"strconv"
	"strings"

	"pgregory.net/rapid"
)

// xmlStyle writes well-formed XML in different equivalent styles.
type xmlStyle struct {
	t      *rapid.T
	out    strings.Builder
	prefix string
}

// wellFormed generates a report with all required parts, on which encoding/xml and the
// reader must agree: keywords and domains are in lower case and trimmed.
func wellFormed(t *rapid.T) string {
	s := &xmlStyle{t: t}
	s.out.WriteString(rapid.SampledFrom([]string{
		"", `<?xml version="1.0"?>`, "<?xml version='1.0' encoding='UTF-8' standalone=\"yes\" ?>\r\n", "<!-- <feedback> -->",
		"<!DOCTYPE feedback [<!ENTITY a \"<record>\"><!-- ' ]> -->]>",
	}).Draw(t, "prologue"))
	s.prefix = rapid.SampledFrom([]string{"", "", "d:"}).Draw(t, "prefix")
	root := s.prefix + "feedback"
	s.out.WriteString("<" + root + rapid.SampledFrom([]string{
		` xmlns:d="urn:ietf:params:xml:ns:dmarc-2.0"`,
		` xmlns="urn:ietf:params:xml:ns:dmarc-2.0" xmlns:d='urn:d' d:a="a > b"`,
		"\n\txmlns:d=\"http://dmarc.org/dmarc-xml/0.1\"",
	}).Draw(t, "namespace") + ">")
	parts := []func(){s.version, s.metadata, s.policy}
	for range rapid.IntRange(0, 4).Draw(t, "records") {
		parts = append(parts, s.record)
	}
	s.inAnyOrder(parts)
	s.out.WriteString("</" + root + "\n>")
	return s.out.String()
}

// inAnyOrder writes parts with blanks, comments and instructions between them.
func (s *xmlStyle) inAnyOrder(parts []func()) {
	for _, part := range rapid.Permutation(parts).Draw(s.t, "order") {
		s.out.WriteString(rapid.SampledFrom([]string{"", "", "\n  ", "\r\n\t", "<!-- a < b & c -->", "<?pi a='>' ?>"}).Draw(s.t, "between"))
		part()
	}
}

func (s *xmlStyle) within(name string, parts ...func()) {
	s.out.WriteString("<" + s.prefix + name + ">")
	s.inAnyOrder(parts)
	s.out.WriteString("</" + s.prefix + name + ">")
}

// word returns a part that writes one of the keywords.
func (s *xmlStyle) word(name string, words ...string) func() {
	return func() { s.element(name, rapid.SampledFrom(words).Draw(s.t, name)) }
}

// text returns a part that writes any text.
func (s *xmlStyle) text(name string) func() {
	return func() {
		s.element(name, rapid.SampledFrom([]string{
			"", "a", " padded\n", "AT&T <x@y.example>", "Zürich 日本 \U0001f4e7", "a]]>b", "tab\tand\nline", `"quoted" 'too'`,
		}).Draw(s.t, name))
	}
}

// maybe returns a part that writes the given one or nothing.
func (s *xmlStyle) maybe(part func()) func() {
	return func() {
		if rapid.Bool().Draw(s.t, "present") {
			part()
		}
	}
}

// element writes a value in pieces, each in a random style.
func (s *xmlStyle) element(name, value string) {
	if value == "" && rapid.Bool().Draw(s.t, "self-closing") {
		s.out.WriteString("<" + s.prefix + name + " />")
		return
	}
	s.out.WriteString("<" + s.prefix + name + rapid.SampledFrom([]string{"", " ", ` lang="en"`}).Draw(s.t, "attribute") + ">")
	escape := strings.NewReplacer("&", "&amp;", "<", "&lt;", "]]>", "]]&gt;")
	for chars := []rune(value); len(chars) > 0; {
		n := rapid.IntRange(1, len(chars)).Draw(s.t, "piece")
		piece := string(chars[:n])
		chars = chars[n:]
		switch rapid.IntRange(0, 4).Draw(s.t, "style") {
		case 0:
			if !strings.Contains(piece, "]") {
				s.out.WriteString("<![CDATA[" + piece + "]]>")
				continue
			}
		case 1:
			for _, c := range piece {
				s.out.WriteString("&#" + strconv.Itoa(int(c)) + ";")
			}
			continue
		case 2:
			for _, c := range piece {
				s.out.WriteString("&#x" + strconv.FormatInt(int64(c), 16) + ";")
			}
			continue
		case 3:
			s.out.WriteString("<!-- " + name + " -->")
		}
		s.out.WriteString(strings.ReplaceAll(escape.Replace(piece), ">", "&gt;"))
	}
	s.out.WriteString("</" + s.prefix + name + ">")
}

func (s *xmlStyle) version() { s.element("version", "1.0") }

func (s *xmlStyle) metadata() {
	s.within("report_metadata",
		s.text("org_name"), s.text("email"), s.maybe(s.text("extra_contact_info")), s.text("report_id"),
		func() { s.within("date_range", s.word("begin", "0", "1767225600"), s.word("end", "1767311999")) },
		s.maybe(s.text("error")), s.maybe(s.text("generator")))
}

func (s *xmlStyle) policy() {
	policies := []string{"none", "quarantine", "reject"}
	s.within("policy_published",
		s.word("domain", "example.com", "sub.example.org"), s.word("p", policies...), s.maybe(s.word("sp", policies...)),
		s.maybe(s.word("np", policies...)), s.maybe(s.word("adkim", "r", "s", "")), s.maybe(s.word("aspf", "r", "s")),
		s.maybe(s.word("pct", "100", "0")), s.maybe(s.word("fo", "0", "1:d:s")), s.maybe(s.word("testing", "n", "y")),
		s.maybe(s.word("discovery_method", "psl", "treewalk")))
}

func (s *xmlStyle) record() {
	s.within("record", s.row, s.identifiers, s.authResults)
}

func (s *xmlStyle) row() {
	s.within("row",
		s.word("source_ip", "192.0.2.1", "2001:db8::1", "198.51.100.254"), s.word("count", "0", "1", "9007199254740991"),
		func() {
			s.within("policy_evaluated",
				s.word("disposition", "none", "quarantine", "reject", "pass"), s.word("dkim", "pass", "fail"), s.word("spf", "pass", "fail"),
				s.maybe(s.reason), s.maybe(s.reason))
		})
}

func (s *xmlStyle) reason() {
	s.within("reason", s.word("type", "forwarded", "local_policy", "policy_test_mode"), s.maybe(s.text("comment")))
}

func (s *xmlStyle) identifiers() {
	s.within("identifiers",
		s.word("header_from", "example.com", "news.example.com"), s.maybe(s.word("envelope_from", "", "bounce.example.net")),
		s.maybe(s.word("envelope_to", "receiver.example")))
}

func (s *xmlStyle) authResults() {
	words := []string{"none", "pass", "fail", "policy", "neutral", "temperror", "permerror"}
	signature := func() {
		s.within("dkim", s.word("domain", "example.com", "", "example.net"), s.maybe(s.text("selector")),
			s.word("result", words...), s.maybe(s.text("human_result")))
	}
	check := func() {
		s.within("spf", s.word("domain", "example.com", "bounce.example.net"), s.maybe(s.word("scope", "mfrom", "helo")),
			s.word("result", append(words, "softfail")...), s.maybe(s.text("human_result")))
	}
	s.within("auth_results", s.maybe(signature), s.maybe(signature), s.maybe(signature), s.maybe(check), s.maybe(check))
}
