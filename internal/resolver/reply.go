package resolver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	mdns "github.com/miekg/dns"

	"github.com/dmarcd/dmarcd/dns"
)

// maxAliases bounds the CNAME records that are followed.
const maxAliases = 8

// Errors that make a reply with NOERROR unusable; the text follows the server's address.
var (
	errReferral      = errors.New("sent a referral instead of an answer")
	errUnrelated     = errors.New("sent only records of other names")
	errTruncated     = errors.New("sent a truncated reply over TCP")
	errContradiction = errors.New("sent records together with NXDOMAIN")
)

// part is the content of one reply: the complete answer, or a part of an alias chain.
type part struct {
	// outcome is Inconclusive if the chain continues: query the last alias next.
	outcome   dns.Outcome
	aliases   []string
	records   []dns.Record
	ttl       time.Duration
	authentic bool
}

// follow resolves a query, with further queries if a server returns only the beginning of
// an alias chain.
func (r *Resolver) follow(ctx context.Context, q dns.Question, deadline func() time.Time) dns.Answer {
	answer := dns.Answer{Question: q, Authentic: true, TTL: maxPositiveTTL}
	start, _ := wireName(q.Name) // Resolve refused the others
	for name := start; ; {
		found, failed := r.askServers(ctx, dns.Question{Name: name, Type: q.Type}, deadline)
		if failed != nil {
			return inconclusive(q, failed.reason)
		}
		for _, alias := range found.aliases {
			if alias == start || slices.Contains(answer.Aliases, alias) {
				return inconclusive(q, fmt.Sprintf("the aliases of %s lead in a circle", q.Name))
			}
			if len(answer.Aliases) == maxAliases {
				return inconclusive(q, fmt.Sprintf("%s has more than %d aliases in a row", q.Name, maxAliases))
			}
			answer.Aliases = append(answer.Aliases, alias)
			name = alias
		}
		answer.TTL = min(answer.TTL, found.ttl)
		answer.Authentic = answer.Authentic && found.authentic
		if found.outcome != dns.Inconclusive {
			answer.Outcome, answer.Records = found.outcome, found.records
			return answer
		}
	}
}

// Read returns the answer to a question from a complete reply.
func Read(reply *mdns.Msg, q dns.Question) (dns.Answer, error) {
	p, err := read(reply, q)
	return dns.Answer{
		Question: q, Outcome: p.outcome, Aliases: p.aliases, Records: p.records, TTL: p.ttl, Authentic: p.authentic,
	}, err
}

// read extracts the answer to a query from a reply. An error means that another server
// should be tried.
func read(reply *mdns.Msg, q dns.Question) (part, error) {
	if reply.Rcode != mdns.RcodeSuccess && reply.Rcode != mdns.RcodeNameError {
		return part{}, fmt.Errorf("answered %s", codeName(reply.Rcode))
	}
	if reply.Truncated {
		return part{}, errTruncated
	}
	p := part{ttl: maxPositiveTTL, authentic: reply.AuthenticatedData}
	name := p.followAliases(reply.Answer, q)
	if err := p.takeRecords(reply.Answer, dns.Question{Name: name, Type: q.Type}); err != nil {
		return part{}, fmt.Errorf("sent a malformed record: %w", err)
	}
	if len(p.records) > 0 {
		if reply.Rcode == mdns.RcodeNameError {
			return part{}, errContradiction
		}
		p.outcome = dns.Data
		return p, nil
	}

	lifetime, hasSOA := negativeTTL(reply.Ns, name)
	switch {
	case reply.Rcode == mdns.RcodeNameError:
		// RFC 6604 §3: the code is about the last name of the chain.
		p.outcome = dns.NoSuchName
	case hasSOA:
		p.outcome = dns.NoData
	case len(p.aliases) > 0:
		return p, nil // the server did not resolve the target
	case len(reply.Answer) > 0:
		return part{}, errUnrelated
	case slices.ContainsFunc(reply.Ns, isNS), !reply.RecursionAvailable && !reply.Authoritative:
		// RFC 2308 §2.2: NS records without an SOA record are a referral, not NODATA.
		return part{}, errReferral
	default:
		p.outcome = dns.NoData
	}
	p.ttl = min(p.ttl, lifetime, maxNegativeTTL)
	return p, nil
}

// followAliases follows the CNAME records of an answer section and returns the last name.
// It stops one record after the limit, so a loop cannot block it.
func (p *part) followAliases(answers []mdns.RR, q dns.Question) (end string) {
	end = q.Name
	if q.Type == dns.CNAME {
		return end
	}
	for len(p.aliases) <= maxAliases {
		alias, ok := aliasAt(answers, end)
		if !ok {
			break
		}
		end = dns.Name(alias.Target)
		p.aliases = append(p.aliases, end)
		p.ttl = min(p.ttl, ttl(alias.Hdr))
	}
	return end
}

func aliasAt(answers []mdns.RR, name string) (*mdns.CNAME, bool) {
	for _, rr := range answers {
		if alias, ok := rr.(*mdns.CNAME); ok && isAt(rr, name) {
			return alias, true
		}
	}
	return nil, false
}

// takeRecords returns the records of the queried name and type, without empty ones, which
// only updates may contain (RFC 2136 §2.4).
func (p *part) takeRecords(answers []mdns.RR, q dns.Question) error {
	for _, rr := range answers {
		if rr.Header().Rrtype != uint16(q.Type) || rr.Header().Rdlength == 0 || !isAt(rr, q.Name) {
			continue
		}
		record, err := newRecord(rr)
		if err != nil {
			return err
		}
		p.records = append(p.records, record)
		p.ttl = min(p.ttl, record.TTL)
	}
	return nil
}

// negativeTTL returns how long a negative answer may be cached: by RFC 2308 §5 the smaller
// of the SOA record's TTL and its MINIMUM field, and not at all without an SOA record. The
// SOA of another zone, as returned with an alias out of the zone, is ignored.
func negativeTTL(authority []mdns.RR, name string) (lifetime time.Duration, found bool) {
	for _, rr := range authority {
		soa, ok := rr.(*mdns.SOA)
		if ok && mdns.IsSubDomain(soa.Hdr.Name, mdns.Fqdn(name)) {
			return min(ttl(soa.Hdr), time.Duration(soa.Minttl)*time.Second), true
		}
	}
	return 0, false
}

func isNS(rr mdns.RR) bool { return rr.Header().Rrtype == mdns.TypeNS }

// isAt reports whether a record of class IN is owned by a name.
func isAt(rr mdns.RR, name string) bool {
	return rr.Header().Class == mdns.ClassINET && dns.Name(rr.Header().Name) == name
}

// codeName returns the name of a response code as RFC 1035 and its successors
// write it.
func codeName(code int) string {
	if name, ok := mdns.RcodeToString[code]; ok {
		return name
	}
	return fmt.Sprintf("response code %d", code)
}
