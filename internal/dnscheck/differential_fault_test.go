package dnscheck_test

import (
	"math/rand/v2"

	"github.com/dmarcd/dmarcd/internal/resolver/resolvertest"
)

// effect is the result of a pair of faults for a query.
type effect uint8

const (
	harmless   effect = iota // the correct answer arrives
	useless                  // both servers answer SERVFAIL
	silent                   // no server sends a valid answer
	deniesName               // both servers answer NXDOMAIN
	deniesData               // both servers answer NODATA
	oneLink                  // both servers answer with only the first CNAME of a chain
)

// faultPair is how the two servers misbehave for a name. A pair that leads to a wrong
// answer applies to both servers, since the resolver chooses which one to query first.
type faultPair struct {
	name          string
	first, second resolvertest.Fault
	effect        effect
	weight        int // relative frequency; pairs that cause a timeout are rare
}

const (
	often  = 12
	seldom = 3
	rarely = 2
)

var faultPairs = []faultPair{
	{"truncated", resolvertest.Truncate, resolvertest.Truncate, harmless, often},
	{"oversize", resolvertest.Oversize, resolvertest.Oversize, harmless, often},
	{"stray packets first", resolvertest.Stray, resolvertest.Stray, harmless, often},
	{"no EDNS", resolvertest.FormErrToEDNS, resolvertest.NotImpToEDNS, harmless, often},
	{"no EDNS version 0", resolvertest.BadVersToEDNS, resolvertest.FormErrToEDNS, harmless, often},
	{"SERVFAIL of one", resolvertest.ServFail, resolvertest.None, harmless, often},
	{"REFUSED of one", resolvertest.None, resolvertest.Refused, harmless, often},
	{"lame one", resolvertest.Referral, resolvertest.None, harmless, often},
	{"one truncated over TCP too", resolvertest.None, resolvertest.TruncateAlways, harmless, often},

	{"silent one", resolvertest.Drop, resolvertest.None, harmless, seldom},
	{"garbage of one", resolvertest.None, resolvertest.Garbage, harmless, seldom},
	{"wrong id of one", resolvertest.WrongID, resolvertest.Truncate, harmless, seldom},
	{"lost once", resolvertest.DropOnce, resolvertest.DropOnce, harmless, seldom},
	{"lost once, SERVFAIL of the other", resolvertest.DropOnce, resolvertest.ServFail, harmless, seldom},
	{"late", resolvertest.Late, resolvertest.Late, harmless, seldom},
	{"late one, lame other", resolvertest.Referral, resolvertest.Late, harmless, seldom},

	{"SERVFAIL", resolvertest.ServFail, resolvertest.ServFail, useless, often},
	{"REFUSED and SERVFAIL", resolvertest.Refused, resolvertest.ServFail, useless, often},
	{"lame", resolvertest.Referral, resolvertest.Referral, useless, often},
	{"other names, truncated over TCP", resolvertest.Unrelated, resolvertest.TruncateAlways, useless, often},

	{"silent", resolvertest.Drop, resolvertest.Drop, silent, rarely},
	{"silent one, SERVFAIL of the other", resolvertest.Drop, resolvertest.ServFail, silent, rarely},
	{"garbage and wrong id", resolvertest.Garbage, resolvertest.WrongID, silent, rarely},
	{"wrong question, lame other", resolvertest.WrongQuestion, resolvertest.Referral, silent, rarely},

	{"NXDOMAIN without SOA", resolvertest.NXDomain, resolvertest.NXDomain, deniesName, often},
	{"nothing at all", resolvertest.Empty, resolvertest.Empty, deniesData, often},
	{"one alias", resolvertest.OneAlias, resolvertest.OneAlias, oneLink, often},
}

// drawFault picks a pair by its weight.
func drawFault(r *rand.Rand) faultPair {
	total := 0
	for _, p := range faultPairs {
		total += p.weight
	}
	n := r.IntN(total)
	for _, p := range faultPairs {
		if n -= p.weight; n < 0 {
			return p
		}
	}
	panic("the weights add up to less than their sum")
}
