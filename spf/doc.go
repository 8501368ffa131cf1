// Package spf parses, evaluates and explains SPF records (RFC 7208).
//
// Parse parses one record and lists all its problems. Check implements check_host(): it
// decides whether a client may use an identity, and returns the term that decided. Explain
// needs no client: it walks the tree of records of a domain and returns the cost and
// meaning of every term, and where the tree breaks.
//
// The package uses a dns.Resolver and no other network access. It returns typed problems;
// callers decide how severe they are and how to phrase them. It does not convert Unicode
// names to A-labels; callers do (RFC 7208 §4.3).
package spf
