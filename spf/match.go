package spf

import (
	"cmp"
	"context"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/dmarcd/dmarcd/dns"
)

// match evaluates a mechanism of the record of domain. It returns the path to the match,
// or nil.
func (c *checker) match(ctx context.Context, domain string, t Term) ([]Position, *stop) {
	var matched bool
	var halt *stop
	switch t.Kind {
	case All:
		matched = true
	case IP4, IP6:
		matched = t.Network.Contains(c.ip)
	case Include:
		return c.include(ctx, domain, t)
	case A:
		matched, halt = c.matchA(ctx, domain, t)
	case MX:
		matched, halt = c.matchMX(ctx, domain, t)
	case PTR:
		matched, halt = c.matchPTR(ctx, domain, t)
	case Exists:
		matched, halt = c.matchExists(ctx, domain, t)
	}
	if halt != nil || !matched {
		return nil, halt
	}
	return []Position{t.position(domain)}, nil
}

func (c *checker) matchA(ctx context.Context, domain string, t Term) (bool, *stop) {
	name, halt := c.target(ctx, domain, t)
	if halt != nil {
		return false, halt
	}
	answer, halt := c.ask(ctx, domain, t, name, addressType(c.ip))
	return c.anyWithin(answer, t), halt
}

// matchMX checks the exchangers in order of preference, so that the result for a domain
// with too many of them does not depend on the order of an answer.
func (c *checker) matchMX(ctx context.Context, domain string, t Term) (bool, *stop) {
	name, halt := c.target(ctx, domain, t)
	if halt != nil {
		return false, halt
	}
	answer, halt := c.ask(ctx, domain, t, name, dns.MX)
	if halt != nil {
		return false, halt
	}
	exchangers := exchangers(answer)
	for i, host := range exchangers {
		if i == maxHosts {
			return false, &stop{PermError, Problem{
				Kind: MXLimit, Position: t.position(domain), Name: name,
				Count: len(exchangers), Limit: maxHosts,
			}}
		}
		if !askable(host) {
			continue
		}
		addresses := c.resolver.Resolve(ctx, dns.Question{Name: host, Type: addressType(c.ip)})
		if addresses.Outcome == dns.Inconclusive {
			return false, c.inconclusive(domain, t, addresses)
		}
		if c.anyWithin(addresses, t) {
			return true, nil
		}
	}
	return false, nil
}

// matchPTR matches if a validated name of the client is the target or below it. A failed
// lookup is not a match, and not an error (RFC 7208 §5.5).
func (c *checker) matchPTR(ctx context.Context, domain string, t Term) (bool, *stop) {
	name, halt := c.target(ctx, domain, t)
	if halt != nil {
		return false, halt
	}
	names := c.clientNames(ctx)
	if halt := c.countVoid(domain, t, *c.reverse); halt != nil {
		return false, halt
	}
	for _, n := range names {
		if isWithin(n, name) && c.isValidated(ctx, n) {
			return true, nil
		}
	}
	return false, nil
}

// matchExists looks up an A record, whatever the client's address family (RFC 7208 §5.7).
func (c *checker) matchExists(ctx context.Context, domain string, t Term) (bool, *stop) {
	name, halt := c.target(ctx, domain, t)
	if halt != nil {
		return false, halt
	}
	answer, halt := c.ask(ctx, domain, t, name, dns.A)
	return answer.Outcome == dns.Data, halt
}

// target counts a term that causes queries, and returns the name to query.
func (c *checker) target(ctx context.Context, domain string, t Term) (string, *stop) {
	if halt := c.countLookup(domain, t); halt != nil {
		return "", halt
	}
	if t.Domain.IsZero() {
		return domain, nil
	}
	if strings.IndexByte(t.Domain.Macros(), 'p') >= 0 {
		// The macro causes another query, which counts (§4.6.4).
		if halt := c.countLookup(domain, t); halt != nil {
			return "", halt
		}
	}
	name, ok := expand(t.Domain.parts, c.values(ctx, domain))
	if !ok {
		return "", nil
	}
	return fitName(name), nil
}

// countLookup counts a term towards the limit of ten (RFC 7208 §4.6.4).
func (c *checker) countLookup(domain string, t Term) *stop {
	if c.lookups == c.maxLookups {
		return &stop{PermError, Problem{
			Kind: LookupLimit, Position: t.position(domain),
			Count: c.maxLookups + 1, Limit: c.maxLookups,
		}}
	}
	c.lookups++
	return nil
}

// countVoid counts a term whose own query returned nothing. RFC 7208 §4.6.4 limits the
// number of terms, so exchangers without an address of the client's family do not count.
func (c *checker) countVoid(domain string, t Term, answer dns.Answer) *stop {
	if !isVoid(answer.Outcome) {
		return nil
	}
	c.voids++
	if c.voids <= c.maxVoids {
		return nil
	}
	family := IPv6
	if c.ip.Is4() {
		family = IPv4
	}
	return &stop{PermError, Problem{
		Kind: VoidLimit, Position: t.position(domain), Name: answer.Name,
		Family: family, Count: c.voids, Limit: c.maxVoids,
	}}
}

// ask sends the query of a term. A name that cannot be queried does not match (RFC 7208
// §4.8 leaves this open).
func (c *checker) ask(ctx context.Context, domain string, t Term, name string, typ dns.Type) (dns.Answer, *stop) {
	if !askable(name) {
		return dns.Answer{}, nil
	}
	answer := c.resolver.Resolve(ctx, dns.Question{Name: name, Type: typ})
	if answer.Outcome == dns.Inconclusive {
		return answer, c.inconclusive(domain, t, answer)
	}
	return answer, c.countVoid(domain, t, answer)
}

func (c *checker) inconclusive(domain string, t Term, answer dns.Answer) *stop {
	return &stop{TempError, Problem{
		Kind: Inconclusive, Position: t.position(domain), Name: answer.Name, Reason: answer.Reason,
	}}
}

// anyWithin reports whether the client is in the same network as one of the
// addresses, by the prefix length of the term.
func (c *checker) anyWithin(answer dns.Answer, t Term) bool {
	bits := t.Bits6
	if c.ip.Is4() {
		bits = t.Bits4
	}
	return slices.ContainsFunc(answer.Records, func(r dns.Record) bool {
		return netip.PrefixFrom(r.Addr, bits).Contains(c.ip)
	})
}

// clientNames returns the first ten names of the client's address (RFC 7208 §4.6.4),
// without those that cannot be queried.
func (c *checker) clientNames(ctx context.Context) []string {
	if c.reverse == nil {
		c.reverse = new(c.resolver.Resolve(ctx, dns.Question{Name: reverseName(c.ip), Type: dns.PTR}))
	}
	var names []string
	for _, r := range c.reverse.Records[:min(len(c.reverse.Records), maxHosts)] {
		if askable(r.Host) {
			names = append(names, r.Host)
		}
	}
	return names
}

// isValidated reports whether the name resolves to the client's address. A failed lookup
// counts as no (RFC 7208 §5.5).
func (c *checker) isValidated(ctx context.Context, name string) bool {
	valid, known := c.validated[name]
	if !known {
		answer := c.resolver.Resolve(ctx, dns.Question{Name: name, Type: addressType(c.ip)})
		valid = slices.ContainsFunc(answer.Records, func(r dns.Record) bool { return r.Addr == c.ip })
		c.validated[name] = valid
	}
	return valid
}

// exchangers returns the hosts of the MX records by preference, then by name. A null MX
// (RFC 7505) is skipped.
func exchangers(answer dns.Answer) []string {
	records := slices.Clone(answer.Records)
	slices.SortFunc(records, func(a, b dns.Record) int {
		return cmp.Or(cmp.Compare(a.Preference, b.Preference), strings.Compare(a.Host, b.Host))
	})
	var hosts []string
	for _, r := range records {
		if r.Host != "" {
			hosts = append(hosts, r.Host)
		}
	}
	return hosts
}

// isVoid reports whether a query returned nothing (RFC 7208 §4.6.4).
func isVoid(o dns.Outcome) bool { return o == dns.NoData || o == dns.NoSuchName }

// isWithin reports whether name is domain or a name below it.
func isWithin(name, domain string) bool {
	return name == domain || strings.HasSuffix(name, "."+domain)
}

// unknownValue is the value of an unknown host name (RFC 7208 §7.3).
const unknownValue = "unknown"

// values returns a function that returns the value of a macro letter in the record of domain
// (RFC 7208 §7.2).
func (c *checker) values(ctx context.Context, domain string) func(letter byte) string {
	return func(letter byte) string {
		switch letter {
		case 's':
			return c.sender.local + "@" + c.sender.domain
		case 'l':
			return c.sender.local
		case 'o':
			return c.sender.domain
		case 'd':
			return domain
		case 'i':
			return nibbles(c.ip)
		case 'p':
			return c.validatedName(ctx, domain)
		case 'v':
			return reverseZone(c.ip)
		case 'h':
			return c.identity.Helo
		case 'c':
			return c.ip.String()
		case 'r':
			if c.identity.Receiver == "" {
				return unknownValue
			}
			return c.identity.Receiver
		default: // t, the only other letter that is parsed
			return strconv.FormatInt(c.identity.Time.Unix(), 10)
		}
	}
}

// validatedName returns the value of the macro p: the domain itself if it is a
// validated name of the client, else a name below it, else any (RFC 7208 §7.3).
func (c *checker) validatedName(ctx context.Context, domain string) string {
	names := c.clientNames(ctx)
	rank := func(name string) int {
		switch {
		case name == domain:
			return 0
		case isWithin(name, domain):
			return 1
		default:
			return 2
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return rank(a) - rank(b) })
	for _, name := range names {
		if c.isValidated(ctx, name) {
			return name
		}
	}
	return unknownValue
}

// explanation returns the text for a fail (RFC 7208 §6.2). It is looked up after the
// result is known and counts towards no limit; on any error there is no explanation.
func (c *checker) explanation(ctx context.Context, d decision) string {
	t := d.record.find(Exp)
	if t == nil {
		return ""
	}
	expanded, ok := expand(t.Domain.parts, c.values(ctx, d.domain))
	name := fitName(expanded)
	if !ok || !askable(name) {
		return ""
	}
	answer := c.resolver.Resolve(ctx, dns.Question{Name: name, Type: dns.TXT})
	if len(answer.Records) != 1 {
		return ""
	}
	text := answer.Records[0].Joined()
	if strings.IndexFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) >= 0 {
		return ""
	}
	parts, bad := parseMacroString(text, anyLetter)
	if bad != nil {
		return ""
	}
	expanded, _ = expand(parts, c.values(ctx, d.domain))
	return expanded
}
