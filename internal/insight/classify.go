package insight

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/phrase"
)

// NeverYours is the evidence about senders that spoof.
const NeverYours = "It never authenticates as your domain, and nothing in SPF, DKIM or host names links it to you."

const (
	// enoughSpoofed is how many messages it takes to call a sender spoofing.
	enoughSpoofed = 10
	// newDays is how long a sender counts as new, if the domain has mail from that long before.
	newDays = 7
)

// assessed is a sender of a domain with everything that its class depends on.
type assessed struct {
	*profile
	sender  sender
	key     string
	name    string
	network *network
	mail    *domainMail
	period  period
	// aligned is true if the same service also sends aligned mail.
	aligned bool
}

func (s *assessed) part(messages int64) float64 {
	return float64(messages) / float64(max(s.total(), 1))
}

// teamClass returns the class that the team gave the sender, or "".
func (s *assessed) teamClass() dmarcd.Class {
	own, base := s.mail.domain.Classes, s.network.key
	if s.sender.part == partClassified {
		return own[s.key]
	}
	return cmp.Or(own[s.key], own[base], s.mail.classes[s.key], s.mail.classes[base])
}

// class returns the class of the sender with the evidence. asks is true if only a person can decide.
func (s *assessed) class() (class dmarcd.Class, evidence []string, asks bool) {
	if s.network.inCatalogue() {
		evidence = append(evidence, fmt.Sprintf("%s is a known sender: %s.", s.network.name, s.network.sender.Category))
	}
	counts := s.counts()
	evidence = append(evidence, fmt.Sprintf("%s of %s pass DMARC.", phrase.Number(counts.Compliant), phrase.Count(counts.Total(), "message")))
	var why []string
	switch s.sender.part {
	case partYours:
		class, why = s.ownClass(), s.linkEvidence()
	case partForwarding:
		class, why = dmarcd.ClassForwarder, s.forwardEvidence()
	case partAs, partRest, partOthers:
		class, why, asks = s.otherClass()
	case partWhole, partClassified:
		class, why, asks = s.wholeClass()
	}
	return class, append(evidence, why...), asks
}

// ownClass returns the class of a part that belongs to the owner of the domain.
func (s *assessed) ownClass() dmarcd.Class {
	if s.network.inCatalogue() {
		return dmarcd.ClassService
	}
	return dmarcd.ClassYours
}

// wholeClass returns the class of an undivided sender, or of the aligned mail of a service.
func (s *assessed) wholeClass() (dmarcd.Class, []string, bool) {
	sender := s.network.sender
	switch {
	case sender != nil && sender.Relays():
		return dmarcd.ClassForwarder, nil, false
	case s.network.division == byAlignment && s.sender.part == partWhole:
		return dmarcd.ClassService, s.linkEvidence(), false
	case s.parts[partYours] > 0 && s.part(s.parts[partYours]) >= enoughAligned:
		return s.ownClass(), s.linkEvidence(), false
	case s.part(s.parts[partForwarding]) >= mostly:
		return dmarcd.ClassForwarder, s.forwardEvidence(), false
	}
	return s.otherClass()
}

// reason returns a sentence with a number, or no sentence for 0.
func reason(n int64, format string, number func(int64) string) []string {
	if n == 0 {
		return nil
	}
	return []string{fmt.Sprintf(format, number(n))}
}

func addresses(n int64) string { return phrase.Count(n, "address") }

func messages(n int64) string { return phrase.Count(n, "message") }

// linkEvidence says how the addresses are linked to the domain today.
func (s *assessed) linkEvidence() (evidence []string) {
	counts := s.counts()
	evidence = slices.Concat(
		reason(counts.SPF, "%s pass SPF for your domain.", phrase.Number),
		reason(counts.DKIM, "%s carry a valid signature of your domain.", phrase.Number),
		reason(int64(s.links[linkListed]), "Your SPF record lists %s.", addresses),
		reason(int64(s.links[linkName]), "A host name links %s to you, confirmed by reverse and forward DNS.", addresses),
	)
	if s.network.sender != nil && s.mail.links.authorized.includes(s.network.sender.Domains) {
		evidence = append(evidence, "Your SPF record includes it.")
	}
	return evidence
}

func (s *assessed) forwardEvidence() []string {
	var broken int64
	for f, of := range s.failures {
		if f.dkim == signatureFails {
			addMessages(&broken, of.messages)
		}
	}
	return slices.Concat(
		reason(s.counts().DKIM, "%s carry a valid signature of yours, by a key that your own servers use.", phrase.Number),
		reason(s.relayed, "Receivers report %s as forwarded.", messages),
		reason(broken, "%s carry a signature of yours that no longer verifies.", messages),
	)
}

// otherClass returns the class of mail that nothing links to the owner.
func (s *assessed) otherClass() (class dmarcd.Class, evidence []string, asks bool) {
	other, messages, names := s.authenticatedAs()
	known := s.network.sender
	switch {
	case s.sender.part == partRest && !s.aligned && s.mail.links.authorized.includes(known.Domains):
		return dmarcd.ClassService, []string{"Your SPF record includes it."}, false
	case s.sender.part == partAs || messages > 0 && s.part(messages) >= oneDomain:
		evidence = []string{fmt.Sprintf("%s authenticate as %s, which may be a service that you use.", phrase.Count(messages, "message"), other)}
		if s.aligned {
			evidence = append(evidence, fmt.Sprintf("Other mail from %s is aligned with your domain.", s.network.name))
		}
		return dmarcd.ClassUnknown, evidence, true
	case s.total() < enoughSpoofed:
		return dmarcd.ClassUnknown, []string{"There are too few messages to classify it."}, false
	case s.isNew():
		return dmarcd.ClassUnknown, []string{fmt.Sprintf("It is new: first seen on %s.", s.first)}, false
	}
	evidence = []string{NeverYours}
	if names > 1 {
		evidence = append(evidence, fmt.Sprintf("It authenticates as at least %d other domains.", names))
	}
	return dmarcd.ClassSpoofing, evidence, false
}

// isNew reports whether the sender was first seen within the last newDays of the period, while the
// domain has older mail.
func (s *assessed) isNew() bool {
	first := s.first
	if s.addresses > 0 {
		first = s.firstSeen
	}
	return s.period.last-first < newDays && first-s.mail.links.first >= newDays
}
