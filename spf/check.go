package spf

import (
	"context"
	"net/netip"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd/dns"
)

// The limits of RFC 7208 §4.6.4.
const (
	// MaxLookups limits the terms that cause queries, MaxVoids those of them that find nothing.
	MaxLookups = 10
	MaxVoids   = 2
	maxHosts   = 10 // addresses looked up for one mx, ptr or %{p}
)

// Scope is the checked identity of a message (RFC 7208 §2).
type Scope string

const (
	// MailFrom is the identity of the reverse-path.
	MailFrom Scope = "mfrom"
	// Helo is the identity of the HELO or EHLO command.
	Helo Scope = "helo"
)

// Identity is the input of Check: what a client claims, and where it connects from.
type Identity struct {
	// IP is the address of the client. An IPv4-mapped IPv6 address is treated as IPv4 (RFC
	// 7208 §5).
	IP netip.Addr
	// Helo is the argument of HELO or EHLO.
	Helo string
	// MailFrom is the reverse-path without angle brackets. If it is empty,
	// postmaster at Helo is checked instead (§2.4); to check the HELO identity
	// of a message with a reverse-path, leave it empty too. Domains are in
	// A-labels.
	MailFrom string
	// Receiver is the name of the receiving host, for explanations. It may be
	// empty.
	Receiver string
	// Time is when the check is made, for explanations.
	Time time.Time
}

// Evaluation is what Check found.
type Evaluation struct {
	Result Result
	// Domain is the checked domain, and Scope the identity it was taken from.
	Domain string
	Scope  Scope
	// Path leads to the mechanism that matched: from the record of Domain, through include
	// and redirect terms, to the mechanism. It is empty if none matched.
	Path []Position
	// Problem is the reason for None, TempError or PermError; nil for other results.
	Problem *Problem
	// Lookups is the number of terms that caused DNS queries, Voids the number of those that
	// found nothing (RFC 7208 §4.6.4).
	Lookups int
	Voids   int
	// Explanation is the domain's explanation for a Fail, with macros expanded (§6.2), or
	// "". It is untrusted text: macros can insert any byte of the sender's address.
	Explanation string
}

// Check implements check_host() of RFC 7208 §4: whether the client may use its identity.
// It queries sequentially, in the order of the terms, and makes at most 123 queries
// because of the limits of §4.6.4. The deadline of ctx bounds the time; §4.6.4 recommends
// at least 20 seconds. After it, the result is TempError.
func Check(ctx context.Context, r dns.Resolver, id Identity) Evaluation {
	return check(ctx, r, id, MaxLookups, MaxVoids)
}

// check is Check with other limits.
func check(ctx context.Context, r dns.Resolver, id Identity, maxLookups, maxVoids int) Evaluation {
	s := id.sender()
	c := &checker{
		resolver: r, identity: id, sender: s, ip: id.client(),
		maxLookups: maxLookups, maxVoids: maxVoids,
		validated: make(map[string]bool),
	}
	v := Evaluation{Domain: dns.Name(s.domain), Scope: s.scope}
	if !c.ip.IsValid() || !isDomain(v.Domain) {
		v.Problem = &Problem{Kind: MalformedName, Name: v.Domain}
		return v
	}
	d := c.host(ctx, v.Domain)
	v.Result, v.Path, v.Problem = d.result, d.path, d.problem
	v.Lookups, v.Voids = c.lookups, c.voids
	if d.result == Fail {
		v.Explanation = c.explanation(ctx, d)
	}
	return v
}

type checker struct {
	resolver dns.Resolver
	identity Identity
	sender   sender
	ip       netip.Addr
	lookups  int
	voids    int

	maxLookups, maxVoids int
	// reverse is the answer to the PTR query for the client, nil until it is sent;
	// validated caches which names resolve to the client.
	reverse   *dns.Answer
	validated map[string]bool
}

// decision is the result of evaluating one record.
type decision struct {
	result  Result
	path    []Position
	problem *Problem
	// domain and record are where the decision was made: after a redirect, in its target.
	domain string
	record Record
	// void is true if the query for the record returned nothing.
	void bool
}

// stop is an error that ends the check.
type stop struct {
	result  Result
	problem Problem
}

func (c *checker) host(ctx context.Context, domain string) decision {
	answer := c.resolver.Resolve(ctx, dns.Question{Name: domain, Type: dns.TXT})
	texts := recordTexts(answer)
	problem := Problem{Position: Position{Domain: domain}, Name: domain}
	switch {
	case answer.Outcome == dns.Inconclusive:
		problem.Kind, problem.Reason = Inconclusive, answer.Reason
		return decision{result: TempError, problem: &problem}
	case answer.Outcome == dns.NoSuchName:
		problem.Kind = NoSuchName
		return decision{problem: &problem, void: true}
	case len(texts) == 0:
		problem.Kind = NoRecord
		return decision{problem: &problem, void: answer.Outcome == dns.NoData}
	case len(texts) > 1:
		problem.Kind, problem.Count = MultipleRecords, len(texts)
		return decision{result: PermError, problem: &problem}
	}
	record := parse(texts[0])
	if len(record.Problems) > 0 {
		problem = record.Problems[0]
		problem.Domain = domain
		return decision{result: PermError, problem: &problem}
	}
	return c.evaluate(ctx, domain, record)
}

// evaluate processes the terms of a record (RFC 7208 §4.6 and §4.7).
func (c *checker) evaluate(ctx context.Context, domain string, record Record) decision {
	for _, t := range record.Terms {
		if t.Kind.Modifier() {
			continue
		}
		path, halt := c.match(ctx, domain, t)
		if halt != nil {
			return decision{result: halt.result, problem: &halt.problem}
		}
		if path != nil {
			return decision{result: t.Qualifier, path: path, domain: domain, record: record}
		}
	}
	if t := record.find(Redirect); t != nil {
		return c.redirect(ctx, domain, *t)
	}
	return decision{result: Neutral, domain: domain, record: record}
}

// redirect continues with another record instead of this one (RFC 7208 §6.1).
func (c *checker) redirect(ctx context.Context, domain string, t Term) decision {
	d, halt := c.follow(ctx, domain, t)
	if halt != nil {
		return decision{result: halt.result, problem: &halt.problem}
	}
	if d.result == None {
		d.result = PermError
		d.problem.Position = t.position(domain)
	}
	if d.path != nil {
		d.path = append([]Position{t.position(domain)}, d.path...)
	}
	return d
}

// include evaluates another record and matches if it passes (RFC 7208 §5.2).
func (c *checker) include(ctx context.Context, domain string, t Term) ([]Position, *stop) {
	d, halt := c.follow(ctx, domain, t)
	if halt != nil {
		return nil, halt
	}
	switch d.result {
	case Pass:
		return append([]Position{t.position(domain)}, d.path...), nil
	case TempError, PermError:
		return nil, &stop{d.result, *d.problem}
	case None:
		d.problem.Position = t.position(domain)
		return nil, &stop{PermError, *d.problem}
	default:
		return nil, nil
	}
}

// follow evaluates the record that an include or redirect refers to. An invalid target
// gives None (RFC 7208 §4.3).
func (c *checker) follow(ctx context.Context, domain string, t Term) (decision, *stop) {
	name, halt := c.target(ctx, domain, t)
	if halt != nil {
		return decision{}, halt
	}
	if !checkable(name) {
		return decision{problem: &Problem{Kind: MalformedName, Name: name}}, nil
	}
	d := c.host(ctx, name)
	if d.void {
		// It counts, but needs no comparison with the limit: without a record the result
		// is already a permerror.
		c.voids++
	}
	return d, nil
}

// recordTexts returns the SPF records among the TXT records of an answer.
func recordTexts(answer dns.Answer) []string {
	var texts []string
	for _, text := range answer.Texts() {
		if IsRecord(text) {
			texts = append(texts, text)
		}
	}
	return texts
}

// postmaster is the local part of a sender that has none (RFC 7208 §4.3).
const postmaster = "postmaster"

// sender is the identity that is checked, taken apart.
type sender struct {
	scope  Scope
	local  string
	domain string // as written, without a trailing dot
}

// sender returns the identity to check.
func (id Identity) sender() sender {
	if id.MailFrom == "" {
		return sender{Helo, postmaster, strings.TrimSuffix(id.Helo, ".")}
	}
	// A quoted local part may contain at signs.
	at := strings.LastIndexByte(id.MailFrom, '@')
	s := sender{MailFrom, postmaster, strings.TrimSuffix(id.MailFrom[at+1:], ".")}
	if at > 0 {
		s.local = id.MailFrom[:at]
	}
	return s
}

// client returns the address to compare with.
func (id Identity) client() netip.Addr { return id.IP.Unmap().WithZone("") }

// addressType returns the type of address records for ip's family.
func addressType(ip netip.Addr) dns.Type {
	if ip.Is4() {
		return dns.A
	}
	return dns.AAAA
}

// nibbles returns the address as the dotted text of the macro i: the usual form
// for IPv4, sixteen bytes as hexadecimal digits for IPv6 (RFC 7208 §7.3).
func nibbles(ip netip.Addr) string {
	if ip.Is4() {
		return ip.String()
	}
	const hex = "0123456789abcdef"
	var b strings.Builder
	for i, octet := range ip.As16() {
		if i > 0 {
			b.WriteByte('.')
		}
		b.WriteByte(hex[octet>>4])
		b.WriteByte('.')
		b.WriteByte(hex[octet&0xf])
	}
	return b.String()
}

// reverseZone returns the word of the macro v, the label below arpa.
func reverseZone(ip netip.Addr) string {
	if ip.Is4() {
		return "in-addr"
	}
	return "ip6"
}

// reverseName returns the name whose PTR records name the address.
func reverseName(ip netip.Addr) string {
	reversed := part{reverse: true}.transform(nibbles(ip))
	return reversed + "." + reverseZone(ip) + ".arpa"
}
