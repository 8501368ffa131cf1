// Package dnstest answers DNS questions from memory, for tests of packages that use a
// dns.Resolver.
//
// A Zone is the whole DNS of a test: a name that is not in it does not exist. It distinguishes
// missing names from missing types, implements empty non-terminals (RFC 8020), wildcards (RFC
// 4592), CNAME and DNAME, can fail lookups, and records every question.
package dnstest

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dmarcd/dmarcd/dns"
)

const (
	// defaultTTL is the TTL of records whose line has none.
	defaultTTL = time.Hour
	// negativeTTL is the TTL of answers without records.
	negativeTTL = 5 * time.Minute
	// maxAliases is the maximum number of CNAME or DNAME redirections.
	maxAliases = 8
	// everyType marks a name as failing for all types; 255 is "ANY".
	everyType dns.Type = 255
)

// Zone is a dns.Resolver with records in memory. It is safe for concurrent use.
type Zone struct {
	mu        sync.Mutex
	records   map[dns.Question][]dns.Record
	failing   map[dns.Question]bool
	existing  map[string]bool // every owner and all of its ancestors
	authentic map[string]bool
	asked     []dns.Question
}

// New returns a zone with the records of text, one on a line in the manner of a
// master file: name, TTL in seconds (optional), type, data.
//
//	_dmarc.example.com   TXT   "v=DMARC1; " "p=none"   ; strings of one record
//	example.com      60  MX    10 mail.example.com
//	mail.example.com     A     192.0.2.1
//	www.example.com      CNAME example.com
//	*.example.net        AAAA  2001:db8::1
//	_25._tcp.example.com TLSA  030101 00ff               ; wire form in hexadecimal
//	slow.example.com     INCONCLUSIVE                    ; for every type
//	odd.example.com      MX INCONCLUSIVE                 ; for one type
//
// Names are absolute with or without the trailing dot. SOA, DS, RRSIG, DNSKEY and
// TLSA are written like the TLSA record above. New panics on text that it cannot
// read: a wrong fixture is a mistake in the test.
func New(text string) *Zone {
	z := &Zone{
		records:   make(map[dns.Question][]dns.Record),
		failing:   make(map[dns.Question]bool),
		existing:  map[string]bool{"": true},
		authentic: make(map[string]bool),
	}
	for n, line := range strings.Split(text, "\n") {
		if err := z.addLine(line); err != nil {
			panic(fmt.Sprintf("dnstest: line %d %q: %v", n+1, line, err))
		}
	}
	return z
}

// Add adds records to the zone. It normalizes names like dns.Name.
func (z *Zone) Add(records ...dns.Record) {
	z.mu.Lock()
	defer z.mu.Unlock()
	for _, r := range records {
		r.Name, r.Host = dns.Name(r.Name), dns.Name(r.Host)
		q := dns.Question{Name: r.Name, Type: r.Type}
		z.records[q] = append(z.records[q], r)
		z.markExisting(r.Name)
	}
}

// Fail makes questions for the name inconclusive, only those for the given types if there are
// any. The name and its ancestors exist.
func (z *Zone) Fail(name string, types ...dns.Type) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if len(types) == 0 {
		types = []dns.Type{everyType}
	}
	name = dns.Name(name)
	for _, t := range types {
		z.failing[dns.Question{Name: name, Type: t}] = true
	}
	z.markExisting(name)
}

// Authenticate marks answers to questions at and below the name as validated by DNSSEC.
func (z *Zone) Authenticate(name string) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.authentic[dns.Name(name)] = true
}

// Asked returns the questions so far, in order.
func (z *Zone) Asked() []dns.Question {
	z.mu.Lock()
	defer z.mu.Unlock()
	return slices.Clone(z.asked)
}

// Resolve answers q. The answer is inconclusive if ctx is cancelled.
func (z *Zone) Resolve(ctx context.Context, q dns.Question) dns.Answer {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.asked = append(z.asked, q)
	if err := ctx.Err(); err != nil {
		return dns.Answer{Question: q, Reason: err.Error()}
	}
	a := z.follow(q)
	if a.Outcome == dns.Inconclusive {
		return dns.Answer{Question: q, Aliases: a.Aliases, Reason: a.Reason}
	}
	a.Authentic = z.isAuthentic(q.Name)
	for _, alias := range a.Aliases {
		a.Authentic = a.Authentic && z.isAuthentic(alias)
	}
	return a
}

// follow answers q and follows aliases.
func (z *Zone) follow(q dns.Question) dns.Answer {
	a := dns.Answer{Question: q, TTL: defaultTTL}
	name := dns.Name(q.Name)
	for range maxAliases + 1 {
		if z.fails(name, q.Type) {
			a.Outcome, a.Reason = dns.Inconclusive, "the zone says that "+name+" cannot be looked up"
			return a
		}
		if target, ttl, ok := z.alias(name, q.Type); ok {
			a.Aliases = append(a.Aliases, target)
			a.TTL = min(a.TTL, ttl)
			name = target
			continue
		}
		a.Outcome, a.Records = z.look(name, q.Type)
		if a.Outcome != dns.Data {
			a.TTL = min(a.TTL, negativeTTL)
		}
		for _, r := range a.Records {
			a.TTL = min(a.TTL, r.TTL)
		}
		return a
	}
	a.Outcome, a.Reason = dns.Inconclusive, "too many aliases"
	return a
}

// alias returns the target of a CNAME at the name or a DNAME above it.
func (z *Zone) alias(name string, asked dns.Type) (target string, ttl time.Duration, ok bool) {
	if asked != dns.CNAME {
		if _, records := z.look(name, dns.CNAME); len(records) > 0 {
			return records[0].Host, records[0].TTL, true
		}
	}
	for above := dns.Parent(name); above != ""; above = dns.Parent(above) {
		if records := z.records[dns.Question{Name: above, Type: dns.DNAME}]; len(records) > 0 {
			return strings.TrimSuffix(name, above) + records[0].Host, records[0].TTL, true
		}
	}
	return "", 0, false
}

// look returns the records of exactly this name, or of the wildcard that applies to it.
func (z *Zone) look(name string, t dns.Type) (dns.Outcome, []dns.Record) {
	source := name
	if !z.existing[name] {
		source = z.wildcard(name)
		if !z.existing[source] {
			return dns.NoSuchName, nil
		}
	}
	records := slices.Clone(z.records[dns.Question{Name: source, Type: t}])
	if len(records) == 0 {
		return dns.NoData, nil
	}
	for i := range records {
		records[i].Name = name
	}
	return dns.Data, records
}

// wildcard returns the wildcard at the closest existing ancestor of name, the only one that can
// apply (RFC 4592 §3.3.1).
func (z *Zone) wildcard(name string) string {
	encloser := dns.Parent(name)
	for !z.existing[encloser] {
		encloser = dns.Parent(encloser)
	}
	return strings.TrimSuffix("*."+encloser, ".")
}

func (z *Zone) fails(name string, t dns.Type) bool {
	return z.failing[dns.Question{Name: name, Type: everyType}] || z.failing[dns.Question{Name: name, Type: t}]
}

func (z *Zone) isAuthentic(name string) bool {
	for ; name != ""; name = dns.Parent(name) {
		if z.authentic[name] {
			return true
		}
	}
	return z.authentic[""]
}

func (z *Zone) markExisting(name string) {
	for ; name != ""; name = dns.Parent(name) {
		z.existing[name] = true
	}
}

// inconclusive is the word for a failing lookup in a line.
const inconclusive = "INCONCLUSIVE"

// typeNames are the types in a line.
var typeNames = map[string]dns.Type{
	"A": dns.A, "NS": dns.NS, "CNAME": dns.CNAME, "SOA": dns.SOA, "PTR": dns.PTR,
	"MX": dns.MX, "TXT": dns.TXT, "AAAA": dns.AAAA, "DNAME": dns.DNAME, "DS": dns.DS,
	"RRSIG": dns.RRSIG, "DNSKEY": dns.DNSKEY, "TLSA": dns.TLSA,
}

var (
	errIncomplete = errors.New("want name, type and data")
	errQuote      = errors.New("the quote does not end")
	errFamily     = errors.New("the address is of the other family")
)

// token is one field of a line; quoted ones are the strings of a TXT record.
type token struct {
	text   string
	quoted bool
}

// addLine parses a line as described at New.
func (z *Zone) addLine(line string) error {
	tokens, err := split(line)
	if err != nil || len(tokens) == 0 {
		return err
	}
	if len(tokens) == 2 && tokens[1].text == inconclusive {
		z.Fail(tokens[0].text)
		return nil
	}
	r := dns.Record{Name: tokens[0].text, TTL: defaultTTL}
	tokens = tokens[1:]
	if len(tokens) > 0 {
		if seconds, err := strconv.ParseUint(tokens[0].text, 10, 31); err == nil {
			r.TTL = time.Duration(seconds) * time.Second
			tokens = tokens[1:]
		}
	}
	if len(tokens) < 2 {
		return errIncomplete
	}
	t, ok := typeNames[tokens[0].text]
	if !ok {
		return fmt.Errorf("unknown type %q", tokens[0].text)
	}
	r.Type = t
	data := tokens[1:]
	if data[0].text == inconclusive && !data[0].quoted {
		z.Fail(r.Name, t)
		return nil
	}
	if err := setData(&r, data); err != nil {
		return err
	}
	z.Add(r)
	return nil
}

// setData fills the fields of r that its type uses.
func setData(r *dns.Record, data []token) error {
	switch r.Type {
	case dns.TXT:
		for _, d := range data {
			if !d.quoted {
				return fmt.Errorf("the string %q of a TXT record is not quoted", d.text)
			}
			r.Text = append(r.Text, d.text)
		}
		return nil
	case dns.A, dns.AAAA:
		addr, err := netip.ParseAddr(data[0].text)
		if err != nil {
			return fmt.Errorf("read address: %w", err)
		}
		if addr.Is4() != (r.Type == dns.A) {
			return errFamily
		}
		r.Addr = addr
		return nil
	case dns.MX:
		if len(data) != 2 {
			return errIncomplete
		}
		preference, err := strconv.ParseUint(data[0].text, 10, 16)
		if err != nil {
			return fmt.Errorf("read preference: %w", err)
		}
		r.Preference, r.Host = uint16(preference), data[1].text
		return nil
	case dns.NS, dns.CNAME, dns.PTR, dns.DNAME:
		r.Host = data[0].text
		return nil
	default:
		var digits strings.Builder
		for _, d := range data {
			digits.WriteString(d.text)
		}
		raw, err := hex.DecodeString(digits.String())
		if err != nil {
			return fmt.Errorf("read hexadecimal data: %w", err)
		}
		r.Raw = raw
		return nil
	}
}

// split splits a line into its fields. A semicolon outside quotes starts a comment; inside
// quotes a backslash escapes the next character.
func split(line string) ([]token, error) {
	var tokens []token
	for {
		line = strings.TrimLeft(line, " \t\r")
		switch {
		case line == "" || line[0] == ';':
			return tokens, nil
		case line[0] == '"':
			text, rest, err := unquote(line[1:])
			if err != nil {
				return nil, err
			}
			tokens = append(tokens, token{text, true})
			line = rest
		default:
			end := strings.IndexAny(line, " \t\r;")
			if end < 0 {
				end = len(line)
			}
			tokens = append(tokens, token{line[:end], false})
			line = line[end:]
		}
	}
}

// unquote returns the text up to the closing quote, and the rest.
func unquote(s string) (text, rest string, err error) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '"':
			return b.String(), s[i+1:], nil
		case s[i] == '\\' && i+1 < len(s):
			i++
		}
		b.WriteByte(s[i])
	}
	return "", "", errQuote
}
