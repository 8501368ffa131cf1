package dmarc

import "strings"

// Miss is why a text at a DMARC name is not a DMARC record. The values are stable.
type Miss string

const (
	// Unrelated: the text has nothing to do with DMARC.
	Unrelated Miss = "unrelated"
	// VersionCase: the version is not written DMARC1, such as in v=dmarc1.
	VersionCase Miss = "version-case"
	// OtherVersion: the version is another one, such as DMARC2 or DMARC1.0.
	OtherVersion Miss = "other-version"
	// LeadingSpace: there is white space before the version.
	LeadingSpace Miss = "leading-space"
	// Quoted: the text itself is wrapped in quotation marks.
	Quoted Miss = "quoted"
	// EscapedSeparator: the semicolons are escaped by backslashes.
	EscapedSeparator Miss = "escaped-separator"
	// MissingSeparator: no semicolon follows the version.
	MissingSeparator Miss = "missing-separator"
	// VersionNotFirst: there is a version, but another tag precedes it.
	VersionNotFirst Miss = "version-not-first"
	// SPFRecord: the text is an SPF record at the wrong name.
	SPFRecord Miss = "spf-record"
	// NoMiss: the text is a DMARC record.
	NoMiss Miss = ""
)

// quotationMarks are the straight and the typographic ones.
const quotationMarks = "\"'“”„‘’"

// ClassifyMiss returns the first error of a text that Parse does not accept as a DMARC
// record.
func ClassifyMiss(txt string) Miss {
	if _, _, ok := cutVersion(txt); ok {
		return NoMiss
	}
	trimmed := strings.TrimSpace(txt)
	lower := strings.ToLower(trimmed)
	if lower == "v=spf1" || strings.HasPrefix(lower, "v=spf1 ") {
		return SPFRecord
	}
	if unquoted := strings.Trim(trimmed, quotationMarks); unquoted != trimmed && namesVersion(unquoted) {
		return Quoted
	}
	if !namesVersion(trimmed) {
		if _, after, ok := strings.Cut(lower, ";"); ok && hasVersionElement(after) {
			return VersionNotFirst
		}
		return Unrelated
	}
	if !strings.HasPrefix(txt, trimmed) {
		return LeadingSpace
	}
	return versionMiss(trimmed)
}

// versionMiss classifies a text that starts with a DMARC version.
func versionMiss(txt string) Miss {
	_, value, _ := strings.Cut(txt, "=")
	value = strings.TrimLeft(value, whitespace)
	end := strings.IndexAny(value, "; \t\\,")
	if end < 0 {
		end = len(value)
	}
	word, after := value[:end], strings.TrimLeft(value[end:], whitespace)
	switch {
	case word != version && strings.EqualFold(word, version):
		return VersionCase
	case word != version:
		return OtherVersion
	case strings.HasPrefix(after, `\`):
		return EscapedSeparator
	default:
		return MissingSeparator
	}
}

// namesVersion reports whether txt begins with v=DMARC in any case.
func namesVersion(txt string) bool {
	name, value, ok := strings.Cut(txt, "=")
	if !ok || !strings.EqualFold(strings.Trim(name, whitespace), tagV) {
		return false
	}
	value = strings.TrimLeft(value, whitespace)
	const word = "dmarc"
	return len(value) >= len(word) && strings.EqualFold(value[:len(word)], word)
}

// hasVersionElement reports whether one of the elements is a version of DMARC.
func hasVersionElement(elements string) bool {
	for element := range strings.SplitSeq(elements, ";") {
		if namesVersion(strings.Trim(element, whitespace)) {
			return true
		}
	}
	return false
}
