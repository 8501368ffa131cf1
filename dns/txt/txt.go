// Package txt looks up protocol records that are published as TXT records at a special
// name, such as _dmarc.example.com. Such a name may have other TXT records, several
// records, or an alias without a target.
//
// It also contains the grammar rules that RFC 8461 §3.1 and RFC 8460 §3 share. The
// protocol packages interpret the records and validate names.
package txt

import (
	"context"

	"github.com/dmarcd/dmarcd/dns"
)

// maxListed bounds the records and other texts per name, so that a hostile answer stays
// cheap.
const maxListed = 100

// Found is the result for a name. R is the record type of a protocol.
type Found[R any] struct {
	// Answer is the answer of the resolver.
	Answer dns.Answer
	// Records are the records found, at most 100.
	Records []R
	// Others are the other texts found, at most 100.
	Others []string
}

// Find looks up the TXT records of a name with one query and classifies them: parse
// returns false for a text that is not a record of the protocol.
func Find[R any](ctx context.Context, r dns.Resolver, name string, parse func(text string) (R, bool)) Found[R] {
	f := Found[R]{Answer: r.Resolve(ctx, dns.Question{Name: name, Type: dns.TXT})}
	for _, text := range f.Answer.Texts() {
		record, ok := parse(text)
		switch {
		case ok && len(f.Records) < maxListed:
			f.Records = append(f.Records, record)
		case !ok && len(f.Others) < maxListed:
			f.Others = append(f.Others, text)
		}
	}
	return f
}

// Record returns the record of the name, if there is exactly one. Other texts are ignored.
func (f Found[R]) Record() (R, bool) {
	if len(f.Records) != 1 {
		var none R
		return none, false
	}
	return f.Records[0], true
}

// DanglingAlias returns the target of the aliases of the name, if there are any and the
// target has no TXT record.
func (f Found[R]) DanglingAlias() (target string, ok bool) {
	aliases := f.Answer.Aliases
	if len(aliases) == 0 || f.Answer.Outcome == dns.Inconclusive || len(f.Records)+len(f.Others) > 0 {
		return "", false
	}
	return aliases[len(aliases)-1], true
}
