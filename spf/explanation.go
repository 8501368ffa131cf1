package spf

import (
	"net/netip"
	"time"

	"github.com/dmarcd/dmarcd/dns"
)

// Status is what the records of a domain come to, in one word.
type Status string

const (
	// StatusOK means that there is one record, and every record below it can be
	// evaluated.
	StatusOK Status = "ok"
	// StatusNone means that there is no record.
	StatusNone Status = "none"
	// StatusMultiple means that there are several, which is a permerror.
	StatusMultiple Status = "multiple"
	// StatusPermError means that a client that matches nothing before gets a
	// permerror.
	StatusPermError Status = "permerror"
	// StatusInconclusive means that not everything could be looked up, and that
	// what could gives no other status.
	StatusInconclusive Status = "inconclusive"
)

// Limits bound the work of Explain. A field that is zero stands for its default.
type Limits struct {
	// Questions is how many different questions may be asked, 100 by default.
	Questions int
	// Depth is how many records may stand above one another, 20 by default.
	Depth int
	// Concurrency is how many questions are asked at a time, 8 by default.
	Concurrency int
}

// Voids counts terms whose look-up comes back empty (RFC 7208 §4.6.4). The number
// depends on the client: for the same a term, a client with an IPv6 address makes
// the receiver ask for AAAA records and not for A records.
type Voids struct {
	IPv4 int
	IPv6 int
}

// Explanation is the tree of records below a domain, and what it comes to.
type Explanation struct {
	Domain string
	Status Status
	// Root is the domain's own record and all that follows from it.
	Root *Node
	// Lookups is the number of terms that ask the DNS if nothing matches, in all
	// records together, and Voids how many of these find nothing. Receivers stop
	// after 10 and 2; the explanation goes on.
	Lookups int
	Voids   Voids
	// Questions is how many questions were asked to find all this.
	Questions int
	// Truncated reports that a limit kept the tree incomplete.
	Truncated bool
	// Problems holds everything that is wrong, in the order of the tree, with
	// what concerns the whole of it last.
	Problems []Problem
}

// Node is one record in the tree.
type Node struct {
	Domain string
	// Status says what is found at Domain itself. It does not look below.
	Status Status
	// Outcome, Reason, Aliases and TTL are those of the answer that the record
	// came in.
	Outcome dns.Outcome
	Reason  string
	Aliases []string
	TTL     time.Duration
	// Texts holds the SPF records found. Unless there is exactly one, Record and
	// Terms are empty.
	Texts  []string
	Record Record
	Terms  []Step
	// Lookups and Voids count the terms of this record and of all below it. Where
	// a term leads to a record that does not exist, the void look-up is told here,
	// not in the Step.
	Lookups int
	Voids   Voids
	// Truncated says which limit was reached before all terms were taken in, ""
	// if none was.
	Truncated string

	others     []string // TXT records at Domain that are no SPF records
	longString int      // the length of a string of the record, if it is over 255
}

// Step is one term of a record and what came of it.
type Step struct {
	Term Term
	// Target is the name that the term leads to, "" if it has none or if it is
	// Dynamic.
	Target string
	// Provider is the name of the well-known mail service behind the target.
	Provider string
	// Dynamic reports that what the term stands for depends on the message: its
	// domain holds macros for the client or the local part, or it is a ptr.
	Dynamic bool
	// Ignored reports that the term has no effect: it stands after all, or is a
	// redirect beside one.
	Ignored bool
	// Cost is how many look-ups the term adds, with those of the records that it
	// leads to. Lookups and Voids are the running totals behind it. A redirect is
	// evaluated after all mechanisms, wherever it stands (RFC 7208 §6.1).
	Cost    int
	Lookups int
	Voids   Voids
	// Void tells whether the term's own look-up finds nothing: 0 or 1 for the
	// two families of clients.
	Void Voids
	// Questions holds what came of the term's own questions: for A and AAAA
	// records of an a term, MX records of an mx, A records of an exists. What an
	// include or redirect leads to is in Child.
	Questions []Lookup
	// Hosts holds the mail exchangers of an mx, in order of preference and at
	// most ten of them.
	Hosts []Host
	// Exchangers is how many there are.
	Exchangers int
	// Ranges holds the addresses that the term stands for.
	Ranges []netip.Prefix
	// Child is the record that an include or redirect leads to. It is nil if
	// the term is Dynamic or Ignored, if Loop or Repeated says so, or if a limit
	// was reached.
	Child *Node
	// Loop reports that the term leads to a record that it is part of.
	Loop bool
	// Repeated reports that the record is shown elsewhere in the tree. Its
	// look-ups count again.
	Repeated bool
	// Truncated says which limit was reached before the term was looked up
	// completely, "" if none was.
	Truncated string
}

// Host is a mail exchanger of an mx term.
type Host struct {
	Name string
	// Questions holds what came of the questions for its A and AAAA records.
	Questions []Lookup
}

// Lookup is what a question came to, without the records.
type Lookup struct {
	dns.Question

	Outcome dns.Outcome
	// Reason says why the outcome is inconclusive.
	Reason string
	// Aliases holds the CNAME targets that were followed.
	Aliases []string
	// Records is how many records came back.
	Records int
}
