// Package bimi parses BIMI assertion records and validates what they refer to, following
// draft-brand-indicators-for-message-identification: the record (§4.3), its lookup
// (§7.2), the required DMARC policy (§7.1), the image (SVG Tiny Portable/Secure,
// draft-svg-tiny-ps-abrotman), and the evidence document with a mark certificate
// (draft-fetch-validation-vmc-wchuang).
//
// The caller provides the dns.Resolver, the HTTP client, deadlines and trusted root
// certificates. The package does not evaluate messages, and checks neither revocation nor
// certificate transparency. A Problem is a kind, a subject and a text; the caller turns
// it into a message for users.
package bimi

import (
	"slices"
	"strings"
)

// maxListed limits the tags, problems and other items per source, so that hostile input
// stays cheap.
const maxListed = 100

// problems is a list without duplicates.
type problems []Problem

// note adds a problem if the condition holds.
func (p *problems) note(condition bool, kind Kind, subject, text string) {
	problem := Problem{Kind: kind, Subject: subject, Text: shorten(text)}
	if condition && len(*p) < maxListed && !slices.Contains(*p, problem) {
		*p = append(*p, problem)
	}
}

// maxTextBytes limits the text of one problem.
const maxTextBytes = 500

// shorten truncates a long text between two characters.
func shorten(text string) string {
	if len(text) > maxTextBytes {
		return strings.ToValidUTF8(text[:maxTextBytes], "")
	}
	return text
}
