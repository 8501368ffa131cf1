package spf

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/dmarcd/dmarcd/dns"
)

// unknownValue stands for a host name that is not known (RFC 7208 §7.3).
const unknownValue = "unknown"

// values returns the function that says what each macro letter stands for in the
// record of domain (RFC 7208 §7.2).
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
