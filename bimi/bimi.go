// Package bimi reads BIMI assertion records and judges what they lead to, as
// draft-brand-indicators-for-message-identification describes: the record (§4.3),
// where it is looked for (§7.2), what the DMARC policy must say (§7.1), the image
// (SVG Tiny Portable/Secure, draft-svg-tiny-ps-abrotman), and the evidence document
// with a mark certificate (draft-fetch-validation-vmc-wchuang).
//
// The package asks DNS through a dns.Resolver and the web through an HTTP client,
// both of which the caller brings along together with deadlines and the root
// certificates to trust. It evaluates no messages, and checks neither revocation
// nor certificate transparency. How a problem is told to people is left to others:
// a Problem is a kind, a subject and the text concerned.
package bimi

import (
	"slices"
	"strings"
)

// maxKept bounds the tags, problems and other things that are kept of one source,
// so that a hostile one stays cheap.
const maxKept = 100

// problems collects each problem once.
type problems []Problem

// note keeps a problem where the condition holds.
func (p *problems) note(condition bool, kind Kind, subject, text string) {
	problem := Problem{Kind: kind, Subject: subject, Text: shorten(text)}
	if condition && len(*p) < maxKept && !slices.Contains(*p, problem) {
		*p = append(*p, problem)
	}
}

// maxTextBytes bounds the text of one problem.
const maxTextBytes = 500

// shorten cuts a text that is too long to be told, between two characters.
func shorten(text string) string {
	if len(text) > maxTextBytes {
		return strings.ToValidUTF8(text[:maxTextBytes], "")
	}
	return text
}
