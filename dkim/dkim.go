// Package dkim reads and finds the public keys of DomainKeys Identified Mail: the
// key record (RFC 6376 §3.6.1), what RFC 8301 says about its strength, and the
// Ed25519 keys of RFC 8463.
//
// ParseKey reads one record and says everything that is wrong with it. LookupKey
// finds the key of one selector. Probe asks for many selectors of a domain; since
// nothing lists the selectors that a domain has, it can show keys but never their
// absence, unless the DNS itself says that there are none.
//
// The package asks through a dns.Resolver and leaves deadlines, retries and
// caching to it. It neither signs nor verifies messages, and it knows nothing of
// how a problem is told to people: a Problem is a kind, a tag and the text
// concerned.
//
// Domain names and selectors go in as A-labels in any case, with or without a
// trailing dot, and come out in the form of dns.Name.
package dkim

// maxKept bounds the tags and problems that are kept of one source, so that a hostile
// record stays cheap.
const maxKept = 100

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
