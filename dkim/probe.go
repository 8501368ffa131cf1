package dkim

import (
	"context"
	"crypto/rand"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/recovered"
)

// maxConcurrent is the number of concurrent queries of a probe.
const maxConcurrent = 8

// Namespace is whether a domain can have keys at all.
type Namespace uint8

const (
	// NamespaceUnknown means that this was not queried or is undecidable, for example
	// because of a wildcard.
	NamespaceUnknown Namespace = iota
	// NamespaceExists means that _domainkey.<domain> exists, possibly only because of a
	// name below it: the domain most likely has a key.
	NamespaceExists
	// NamespaceMissing means NXDOMAIN for _domainkey.<domain>: there is nothing below it
	// (RFC 8020), so the domain has no keys. This is the only proof.
	NamespaceMissing
)

var namespaceWords = [...]string{NamespaceUnknown: "unknown", NamespaceExists: "exists", NamespaceMissing: "missing"}

// String returns the word for it.
func (n Namespace) String() string { return namespaceWords[n] }

// Probed is the result of a probe.
type Probed struct {
	Domain string
	// Namespace is whether the domain can have keys. Unless it is NamespaceMissing, the
	// domain may have keys under selectors that were not probed.
	Namespace Namespace
	// Wildcard is the result for an unused selector, or zero if it was not queried. If it
	// has records, a wildcard answers for every selector.
	Wildcard Lookup
	// Selectors are the results per selector, in the order of the list, without
	// duplicates.
	Selectors []Lookup
	// Skipped are the selectors that were not queried because the budget was exhausted.
	Skipped []string
}

// Published returns the lookups that found at least one key that does not come from a
// wildcard.
func (p Probed) Published() []Lookup {
	var published []Lookup
	for _, l := range p.Selectors {
		if len(l.Keys) > 0 && !p.Synthesized(l) {
			published = append(published, l)
		}
	}
	return published
}

// Synthesized reports whether a lookup found only what the wildcard returns for every
// selector: the same records, or the same aliases to a name without records.
func (p Probed) Synthesized(l Lookup) bool {
	wild, own := p.Wildcard.Answer.Texts(), l.Answer.Texts()
	slices.Sort(wild)
	slices.Sort(own)
	if len(own) == 0 && len(l.Answer.Aliases) == 0 {
		return false
	}
	return slices.Equal(wild, own) && (len(own) > 0 || slices.Equal(p.Wildcard.Answer.Aliases, l.Answer.Aliases))
}

// Probe looks up the given selectors of a domain with at most budget queries: one for
// _domainkey, one for an unused selector, then, concurrently, one per selector in order.
// If _domainkey does not exist, no selector is queried. The deadline of ctx bounds the
// time.
func Probe(ctx context.Context, r dns.Resolver, domain string, selectors []string, budget int) Probed {
	p := Probed{Domain: dns.Name(domain)}
	selectors = distinct(selectors)
	if budget <= 0 {
		p.Skipped = selectors
		return p
	}
	top := dns.Question{Name: namespaceName(p.Domain), Type: dns.TXT}
	if !dns.ValidName(top.Name) {
		p.Namespace = NamespaceMissing
		return p
	}
	answer := r.Resolve(ctx, top)
	if answer.Outcome == dns.NoSuchName && len(answer.Aliases) == 0 {
		p.Namespace = NamespaceMissing
		return p
	}
	budget--
	if budget > 0 {
		p.Wildcard = LookupKey(ctx, r, strings.ToLower(rand.Text()), p.Domain)
		p.Namespace = namespace(answer, p.Wildcard.Answer)
		budget--
	}
	asked := min(budget, len(selectors))
	p.Skipped = selectors[asked:]
	p.Selectors = lookupAll(ctx, r, selectors[:asked], p.Domain)
	return p
}

// lookupAll looks up several selectors concurrently.
func lookupAll(ctx context.Context, r dns.Resolver, selectors []string, domain string) []Lookup {
	lookups := make([]Lookup, len(selectors))
	slots := make(chan struct{}, maxConcurrent)
	var running recovered.Group
	for i, selector := range selectors {
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			lookups[i] = LookupKey(ctx, r, selector, domain)
		})
	}
	running.Wait()
	return lookups
}

// namespace interprets the answers for _domainkey.<domain>, which is not NXDOMAIN, and for
// an unused selector below it. A wildcard above both, or a server with compact denial,
// makes both names appear to exist. An alias proves nothing, since a DNAME synthesizes
// names.
func namespace(top, below dns.Answer) Namespace {
	if len(top.Aliases) > 0 || top.Outcome == dns.Inconclusive || below.Outcome == dns.Inconclusive {
		return NamespaceUnknown
	}
	if top.Outcome == below.Outcome {
		return NamespaceUnknown
	}
	return NamespaceExists
}

// distinct returns the selectors in the form of dns.Name without duplicates.
func distinct(selectors []string) []string {
	seen := make(map[string]bool, len(selectors))
	var probed []string
	for _, s := range selectors {
		if s = dns.Name(s); !seen[s] {
			seen[s] = true
			probed = append(probed, s)
		}
	}
	return probed
}

// KnownSelector is a common selector.
type KnownSelector struct {
	// Name is the selector.
	Name string
	// User is the service whose customers use it, "" if many do.
	User string
}

// KnownSelectors returns common selectors for Probe, the most common first. Selectors from
// reports or from the owner are better. Services with individual or monthly selectors
// cannot be listed.
func KnownSelectors() []KnownSelector { return slices.Clone(knownSelectors) }

var knownSelectors = []KnownSelector{
	{"selector1", "Microsoft 365"},
	{"selector2", "Microsoft 365"},
	{"google", "Google Workspace"},
	{"default", ""},
	{"mail", ""},
	{"dkim", ""},
	{"s1", "Twilio SendGrid"},
	{"s2", "Twilio SendGrid"},
	{"k1", "Mailchimp"},
	{"k2", "Mailchimp"},
	{"k3", "Mailchimp"},
	{"dkim1", ""},
	{"dkim2", ""},
	{"email", ""},
	{"smtp", ""},
	{"20230601", "Gmail"},
	{"amazonses", "Amazon SES"},
	{"ses", "Amazon SES"},
	{"mandrill", "Mailchimp Transactional"},
	{"mte1", "Mailchimp Transactional"},
	{"mte2", "Mailchimp Transactional"},
	{"pm", "Postmark"},
	{"postmark", "Postmark"},
	{"protonmail", "Proton Mail"},
	{"protonmail2", "Proton Mail"},
	{"protonmail3", "Proton Mail"},
	{"fm1", "Fastmail"},
	{"fm2", "Fastmail"},
	{"fm3", "Fastmail"},
	{"cm", "Campaign Monitor"},
	{"zoho", "Zoho"},
	{"mxvault", "MxVault"},
	{"everlytickey1", "Everlytic"},
	{"everlytickey2", "Everlytic"},
	{"cf2024-1", "Cloudflare Email Routing"},
	{"mailjet", "Mailjet"},
	{"brevo", "Brevo"},
}
