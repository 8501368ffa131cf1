// Package dkim parses and looks up DKIM public keys: the key record (RFC 6376 §3.6.1), the
// key strength rules of RFC 8301, and the Ed25519 keys of RFC 8463.
//
// ParseKey parses one record and lists all its problems. LookupKey looks up the key of one
// selector. Probe queries many selectors of a domain. DNS has no list of selectors, so
// Probe can find keys but can prove their absence only if _domainkey itself does not
// exist.
//
// The package uses a dns.Resolver, which is responsible for deadlines, retries and
// caching. It neither signs nor verifies messages, and it returns typed problems without
// user-facing text.
//
// Domain names and selectors are A-labels in any case, with or without a trailing dot;
// results are in the form of dns.Name.
package dkim

// maxListed bounds the tags and problems per record, so that a hostile record stays cheap.
const maxListed = 100

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
