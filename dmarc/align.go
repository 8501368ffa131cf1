package dmarc

import (
	"context"

	"github.com/dmarcd/dmarcd/dns"
)

// Alignment is whether an authenticated identifier is aligned with the author domain.
type Alignment uint8

const (
	// AlignmentUnknown means that a necessary query was inconclusive.
	AlignmentUnknown Alignment = iota
	// Aligned means that it is aligned.
	Aligned
	// NotAligned means that it is not aligned.
	NotAligned
)

var alignmentWords = [...]string{AlignmentUnknown: "unknown", Aligned: "aligned", NotAligned: "not aligned"}

// String returns the alignment in words.
func (a Alignment) String() string { return alignmentWords[a] }

// Align checks whether an authenticated identifier, the d= of a signature or the domain
// that SPF passed for, is aligned with the author domain (RFC 9989 §4.4). Strict mode and
// equal names need no query; relaxed mode walks the tree from each name as far as needed.
func Align(ctx context.Context, r dns.Resolver, author, identifier string, mode Mode) Alignment {
	author, identifier = dns.Name(author), dns.Name(identifier)
	switch {
	case !dns.ValidName(author) || !dns.ValidName(identifier):
		return NotAligned
	case author == identifier:
		return Aligned
	case mode == Strict:
		return NotAligned
	case topLabel(author) != topLabel(identifier):
		// An organizational domain is its name or an ancestor of it, and these two have no
		// common ancestor.
		return NotAligned
	}
	organization, known := Organization(ctx, r, author)
	if !known {
		return AlignmentUnknown
	}
	if !isAtOrBelow(identifier, organization) {
		return NotAligned
	}
	other, known := Organization(ctx, r, identifier)
	switch {
	case !known:
		return AlignmentUnknown
	case other == organization:
		return Aligned
	default:
		return NotAligned
	}
}
