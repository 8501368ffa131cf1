package truth

import (
	"maps"
	"net/netip"
	"slices"
)

// Class is what planted mail is.
type Class string

// The classes. The classes yours and service of the product are both Legitimate.
const (
	Legitimate Class = "legitimate"
	Forwarder  Class = "forwarder"
	// Undecidable mail authenticates only as another domain, and nothing shows whose it is: it is
	// unknown, with a question.
	Undecidable Class = "undecidable"
	Spoofing    Class = "spoofing"
	// Small mail is spoofed, and so little or so new that unknown is right too.
	Small Class = "small or new"
)

// Classes returns all classes.
func Classes() []Class { return []Class{Legitimate, Forwarder, Undecidable, Spoofing, Small} }

// Days before today: the last one with reports, the first one of the period that is concluded
// from, and since when mail is new. Mail within one day of a limit is not planted, so that a run
// over midnight has the same truth.
const (
	yesterday = 1
	span      = 28 // days with reports; the daemon concludes from 30
	newSince  = 5  // the daemon takes 7
	oldBefore = 9
	before    = 80 // the daemon evaluates keys over 90
)

// auth is the result of SPF or of a signature.
type auth struct{ domain, selector, result string }

func pass(domain, selector string) auth { return auth{domain, selector, "pass"} }
func fail(domain, selector string) auth { return auth{domain, selector, "fail"} }

// flow is mail that is sent in the same way.
type flow struct {
	class Class
	// sender is the key of the sender that the mail belongs to.
	sender string
	// sources take turns, a few each day.
	sources []netip.Addr
	from    string
	spf     auth
	dkim    []auth
	// reason is why receivers did not apply the policy, "" for none.
	reason string
	// days are the messages by days before today.
	days map[int]int
}

// aligned reports whether a domain is in the organizational domain of the From address.
func aligned(domain, organization string) bool {
	return domain == organization || len(domain) > len(organization) && domain[len(domain)-len(organization)-1:] == "."+organization
}

// passes reports which of SPF and DKIM pass for the domain.
func (d *Domain) passes(f *flow) (spf, dkim bool) {
	isAligned := func(a auth) bool {
		return a.result == "pass" && (a.domain == f.from || !d.tags.strict && aligned(a.domain, d.Name))
	}
	return isAligned(f.spf), slices.ContainsFunc(f.dkim, isAligned)
}

// messages returns the messages of the period.
func (f *flow) messages() (sum int) {
	for day, n := range f.days {
		if day <= span {
			sum += n
		}
	}
	return sum
}

// Figures are what a simulation must show.
type Figures struct {
	Messages, Affected map[Class]int
	Total              int
}

// figures sums up the mail of a domain: with p=reject and the other tags of its record or, with full,
// with p=reject for all names.
func (d *Domain) figures(full bool) Figures {
	f := Figures{Messages: map[Class]int{}, Affected: map[Class]int{}}
	passing := map[string]bool{}
	for _, flow := range d.flows {
		if spf, dkim := d.passes(flow); (spf || dkim) && flow.messages() > 0 {
			passing[flow.from] = true
		}
	}
	for _, flow := range d.flows {
		n := flow.messages()
		f.Total += n
		f.Messages[flow.class] += n
		if spf, dkim := d.passes(flow); !spf && !dkim && (full || d.affects(flow.from, passing[flow.from])) {
			f.Affected[flow.class] += n
		}
	}
	return f
}

// affects reports whether the record with p=reject applies to failing mail with a From domain, of
// which other mail may pass: sp and np may be none, and t=y makes none of quarantine.
func (d *Domain) affects(from string, passes bool) bool {
	policy := "reject"
	if from != d.Name && d.tags.sp != "" {
		policy = d.tags.sp
	}
	if from != d.Name && d.tags.np != "" && !passes {
		policy = d.tags.np
	}
	return policy == "reject" || policy == "quarantine" && !d.tags.testing
}

// findSmall makes spoofed mail Small whose sender has under 10 messages, or is new.
func findSmall(flows []*flow) {
	total, first := map[string]int{}, map[string]int{}
	for _, f := range flows {
		if f.class == Spoofing {
			total[f.sender] += f.messages()
			first[f.sender] = max(first[f.sender], slices.Max(slices.Collect(maps.Keys(f.days))))
		}
	}
	for _, f := range flows {
		if f.class == Spoofing && (total[f.sender] < 10 || first[f.sender] <= newSince) {
			f.class = Small
		}
	}
}
