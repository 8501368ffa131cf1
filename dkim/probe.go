package dkim

import (
	"context"
	"crypto/rand"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/recovered"
)

// maxConcurrent is how many questions of one probe are under way at once.
const maxConcurrent = 8

// Namespace tells whether a domain can have keys at all.
type Namespace uint8

const (
	// NamespaceUnknown means that it was not asked or could not be told, for
	// example because a wildcard answers for every name.
	NamespaceUnknown Namespace = iota
	// NamespaceExists means that _domainkey.<domain> exists, if only because there
	// is a name below it: the domain most likely has a key under some selector.
	NamespaceExists
	// NamespaceMissing means NXDOMAIN for _domainkey.<domain>: there is nothing
	// below it (RFC 8020), so that the domain has no keys. This is the only way to
	// know that.
	NamespaceMissing
)

// String returns the word for it.
func (n Namespace) String() string {
	switch n {
	case NamespaceExists:
		return "exists"
	case NamespaceMissing:
		return "missing"
	default:
		return "unknown"
	}
}

// Probed is what a probe found.
type Probed struct {
	// Domain is the domain that was looked at.
	Domain string
	// Namespace tells whether the domain can have keys at all. Unless it is
	// NamespaceMissing, that nothing was found does not mean that the domain has
	// no keys: it may use other selectors.
	Namespace Namespace
	// Wildcard is what a selector that nobody chose gave, the zero value where
	// that was not asked. Where it has records, every selector has them.
	Wildcard Lookup
	// Selectors holds what each selector gave, in the order of the list, without
	// repetitions.
	Selectors []Lookup
	// Skipped holds the selectors that were not asked for because the budget was
	// spent.
	Skipped []string
}

// Published returns the lookups that found at least one key which is not the work
// of a wildcard.
func (p Probed) Published() []Lookup {
	var published []Lookup
	for _, l := range p.Selectors {
		if len(l.Keys) > 0 && !p.Synthesized(l) {
			published = append(published, l)
		}
	}
	return published
}

// Synthesized reports whether a lookup found nothing but what the wildcard gives to
// every selector: the same records, or the same aliases to a name without any.
func (p Probed) Synthesized(l Lookup) bool {
	wild, own := p.Wildcard.Answer.Texts(), l.Answer.Texts()
	slices.Sort(wild)
	slices.Sort(own)
	if len(own) == 0 && len(l.Answer.Aliases) == 0 {
		return false
	}
	return slices.Equal(wild, own) && (len(own) > 0 || slices.Equal(p.Wildcard.Answer.Aliases, l.Answer.Aliases))
}

// Probe looks for keys of a domain under the given selectors. It asks at most
// budget questions: whether there can be keys, then for a selector that nobody
// chose, then, several at a time, for the selectors in their order. Where there
// can be none, no selector is asked for. How long it may take is for the deadline
// of ctx to say.
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

// lookupAll looks for the keys of several selectors at once.
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

// namespace tells what the answers for _domainkey.<domain>, which is not NXDOMAIN,
// and for a selector below it that nobody chose say together. A wildcard above
// both, and a server that denies names by saying that they have no data, make the
// first look as if the name existed; then the second looks the same. An alias says
// nothing, since a DNAME makes up names that are not there.
func namespace(top, below dns.Answer) Namespace {
	if len(top.Aliases) > 0 || top.Outcome == dns.Inconclusive || below.Outcome == dns.Inconclusive {
		return NamespaceUnknown
	}
	if top.Outcome == below.Outcome {
		return NamespaceUnknown
	}
	return NamespaceExists
}

// distinct returns the selectors in the form of dns.Name, each of them once.
func distinct(selectors []string) []string {
	seen := make(map[string]bool, len(selectors))
	var kept []string
	for _, s := range selectors {
		if s = dns.Name(s); !seen[s] {
			seen[s] = true
			kept = append(kept, s)
		}
	}
	return kept
}
