package resolver

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
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

const (
	// maxNameBytes is the length limit of a name on the wire (RFC 1035 §3.1),
	// which leaves 253 characters for its text without a trailing dot.
	maxNameBytes = 255
	// maxTTL is the largest TTL in seconds. A larger number counts as zero (RFC 2181 §8).
	maxTTL = 1<<31 - 1
)

// canExist reports whether a name fits the limits of a DNS message.
func canExist(name string) bool {
	_, ok := wireName(name)
	return ok
}

// wireName returns a name as it reads when it comes back in a message: with the
// octets escaped that the text form reserves (RFC 1035 §5.1). It reports false
// for a name that cannot be put into a message.
func wireName(name string) (string, bool) {
	if dns.IsHostname(name) {
		return dns.Name(name), true // nothing to escape
	}
	var buffer [maxNameBytes]byte
	end, err := mdns.PackDomainName(mdns.Fqdn(name), buffer[:], 0, nil, false)
	if err != nil || end > maxNameBytes {
		return "", false
	}
	text, _, err := mdns.UnpackDomainName(buffer[:end], 0)
	return dns.Name(text), err == nil
}

// newRecord converts a record from the message library. It fails if the raw data of a type
// cannot be reassembled.
func newRecord(rr mdns.RR) (record dns.Record, err error) {
	header := rr.Header()
	record = dns.Record{Name: dns.Name(header.Name), Type: dns.Type(header.Rrtype), TTL: ttl(*header)}
	switch rr := rr.(type) {
	case *mdns.TXT:
		record.Text = make([]string, len(rr.Txt))
		for i, text := range rr.Txt {
			record.Text[i] = unescape(text)
		}
	case *mdns.A:
		record.Addr, _ = netip.AddrFromSlice(rr.A.To4())
	case *mdns.AAAA:
		record.Addr, _ = netip.AddrFromSlice(rr.AAAA.To16())
	case *mdns.CNAME:
		record.Host = dns.Name(rr.Target)
	case *mdns.DNAME:
		record.Host = dns.Name(rr.Target)
	case *mdns.NS:
		record.Host = dns.Name(rr.Ns)
	case *mdns.PTR:
		record.Host = dns.Name(rr.Ptr)
	case *mdns.MX:
		record.Host, record.Preference = dns.Name(rr.Mx), rr.Preference
	default:
		record.Raw, err = rawData(rr)
	}
	return record, err
}

// ttl returns the TTL of a record.
func ttl(header mdns.RR_Header) time.Duration {
	if header.Ttl > maxTTL {
		return 0
	}
	return time.Duration(header.Ttl) * time.Second
}

// rawData returns the data of a record as on the wire, its names uncompressed.
func rawData(rr mdns.RR) ([]byte, error) {
	const fixed = 10 // type, class, TTL and length, after the owner
	buffer := make([]byte, mdns.Len(rr))
	end, err := mdns.PackRR(rr, buffer, 0, nil, false)
	if err != nil {
		return nil, err
	}
	_, owner, err := mdns.UnpackDomainName(buffer, 0)
	if err != nil {
		return nil, err
	}
	return buffer[owner+fixed : end], nil
}

// unescape converts a character-string from the text form of RFC 1035 §5.1, which the message
// library uses, to the octets of the wire: \" and \\ are the character, \DDD an octet in
// decimal.
func unescape(text string) string {
	if !strings.Contains(text, `\`) {
		return text
	}
	octets := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] != '\\' || i+1 == len(text):
			octets = append(octets, text[i])
		case i+3 < len(text) && isDigit(text[i+1]):
			octets = append(octets, (text[i+1]-'0')*100+(text[i+2]-'0')*10+(text[i+3]-'0'))
			i += 3
		default:
			octets = append(octets, text[i+1])
			i++
		}
	}
	return string(octets)
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
