// Package txt finds the records that protocols publish as TXT records at a name
// made for them, such as _dmarc.example.com. Anything may stand at such a name:
// what belongs to the protocol is told from other texts by how it begins, there
// must be one record and not several, and the name is often an alias that leads
// nowhere.
//
// It also holds the few rules that RFC 8461 §3.1 and RFC 8460 §3 share for the text
// of a record. What a record means, what is wrong with it and whether a name can be
// asked for at all is left to the packages of the protocols.
package txt

import (
	"context"

	"github.com/dmarcd/dmarcd/dns"
)

// maxKept bounds the records and the other texts that are kept of one name, so that
// a hostile answer stays cheap.
const maxKept = 100

// Found is what was found at a name. R is the record of a protocol.
type Found[R any] struct {
	// Answer is the answer as the resolver gave it.
	Answer dns.Answer
	// Records holds the records found, at most 100.
	Records []R
	// Others holds the texts found beside them that are no records of the
	// protocol, at most 100.
	Others []string
}

// Find asks for the TXT records of a name and sorts them: parse reports false for a
// text that is no record of the protocol. It asks one question.
func Find[R any](ctx context.Context, r dns.Resolver, name string, parse func(text string) (R, bool)) Found[R] {
	f := Found[R]{Answer: r.Resolve(ctx, dns.Question{Name: name, Type: dns.TXT})}
	for _, text := range f.Answer.Texts() {
		record, ok := parse(text)
		switch {
		case ok && len(f.Records) < maxKept:
			f.Records = append(f.Records, record)
		case !ok && len(f.Others) < maxKept:
			f.Others = append(f.Others, text)
		}
	}
	return f
}

// Record returns the record of the name, if there is exactly one. Texts beside it
// do not matter.
func (f Found[R]) Record() (R, bool) {
	if len(f.Records) != 1 {
		var none R
		return none, false
	}
	return f.Records[0], true
}

// DanglingAlias returns where the aliases of the name lead, if there are any and
// there is no TXT record at their end.
func (f Found[R]) DanglingAlias() (target string, ok bool) {
	aliases := f.Answer.Aliases
	if len(aliases) == 0 || f.Answer.Outcome == dns.Inconclusive || len(f.Records)+len(f.Others) > 0 {
		return "", false
	}
	return aliases[len(aliases)-1], true
}
