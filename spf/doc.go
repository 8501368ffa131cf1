// Package spf reads, evaluates and explains Sender Policy Framework records
// (RFC 7208).
//
// Parse reads one record and says everything that is wrong with it. Check is
// the check_host() function of the RFC: it decides whether a client may use an
// identity, and tells which term decided. Explain needs no client: it walks the
// tree of records below a domain and shows what every term costs, what it stands
// for, and where the tree breaks.
//
// The package asks through a dns.Resolver and does nothing else with the
// network. It judges nothing as good or bad: it returns typed problems, and
// leaves to its callers how much each of them matters and how to phrase it. It
// does not convert Unicode names to A-labels; callers do (RFC 7208 §4.3).
package spf
