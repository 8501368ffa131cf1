package insight

import (
	"fmt"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/senders"
)

// What is enough for a class. docs/senders.md explains the numbers.
const (
	// enoughAligned is the part of a sender's messages that has to pass so that the
	// others are taken for the same sender's.
	enoughAligned = 0.1
	// mostly is the part that decides where there is no other sign.
	mostly = 0.5
	// oneDomain is the part that authenticates as one other domain, so that it is taken
	// for one sender's.
	oneDomain = 0.6
	// enoughRelayed is the part that receivers have to take for forwarded.
	enoughRelayed = 0.2
	// originShare is the part of a key's messages that the sender has which signs them.
	originShare = 0.25
	// enoughSpoofed is how many messages it takes to call a sender spoofing.
	enoughSpoofed = 10
	// newDays is how long a sender counts as new, in a period of twice that at least.
	newDays = 7
)

// suspect is a sender whose class is to be found.
type suspect struct {
	*profile
	name   string
	sender *senders.Sender // nil where the catalogue does not have it
	docket *docket
	period period
}

func (s *suspect) part(messages int64) float64 {
	return float64(messages) / float64(max(s.total(), 1))
}

// class returns what the sender is, with the evidence.
func (s *suspect) class() (dmarcd.Class, []string) {
	counts := s.counts()
	passes := fmt.Sprintf("%s of %s pass DMARC.", dmarcd.FormatNumber(counts.Compliant), count(counts.Total(), "message"))
	if s.sender != nil {
		return s.knownClass(counts, passes)
	}
	switch {
	case counts.SPF > 0 && s.part(counts.Compliant) >= enoughAligned:
		return dmarcd.ClassYours, []string{passes, fmt.Sprintf("%s pass SPF for your domain: its SPF record lists the address.", dmarcd.FormatNumber(counts.SPF))}
	case counts.SPF > 0:
		return dmarcd.ClassUnknown, []string{passes, "Some addresses of this network are yours, but most of its mail never passes DMARC."}
	case s.dkimOnly > 0:
		return s.signedClass(passes)
	case s.part(s.relayed) >= enoughRelayed:
		return dmarcd.ClassForwarder, []string{passes, s.relayEvidence()}
	case s.part(s.listed) >= mostly:
		return dmarcd.ClassYours, []string{passes, fmt.Sprintf("Your SPF record lists the addresses of %s.", count(s.listed, "message"))}
	case s.part(s.named) >= mostly:
		return dmarcd.ClassYours, []string{passes, fmt.Sprintf("%s come from hosts with names in your domain, confirmed by reverse and forward DNS.", count(s.named, "message"))}
	case s.part(s.broken) >= mostly && s.brokenKeyIsUsed():
		return dmarcd.ClassForwarder, []string{passes, fmt.Sprintf(
			"%s carry a signature of yours that no longer verifies; mail with the same key passes elsewhere.", count(s.broken, "message"))}
	}
	return s.unknownClass(passes)
}

// knownClass is the class of a sender of the catalogue.
func (s *suspect) knownClass(counts dmarcd.Counts, passes string) (dmarcd.Class, []string) {
	known := fmt.Sprintf("%s is in the catalogue: %s.", s.sender.Name, s.sender.Category)
	authorized := s.docket.authorized.includes(s.sender.Domains)
	passesOn := s.sender.Category == senders.Mailboxes || s.sender.Category == senders.Gateway || s.sender.Category == senders.Hosting
	switch {
	case s.sender.Relays():
		return dmarcd.ClassForwarder, []string{known, passes}
	case passesOn && !authorized && counts.SPF == 0 && s.dkimOnly > 0 && s.keysAreOthers():
		return dmarcd.ClassForwarder, []string{known, passes, "Your signature survives, SPF does not pass, and mail with the same key also comes from other networks."}
	case passesOn && !authorized && counts.Compliant == 0 && s.part(s.relayed) >= enoughRelayed:
		return dmarcd.ClassForwarder, []string{known, passes, s.relayEvidence()}
	case counts.Compliant == 0 && !authorized && !s.sender.AlignsSPF && !s.sender.AlignsDKIM:
		return dmarcd.ClassUnknown, []string{known, passes, s.sender.Name + " cannot send aligned mail for the domains of customers."}
	}
	evidence := []string{known, passes}
	if authorized {
		evidence = append(evidence, "Your SPF record includes it.")
	}
	return dmarcd.ClassService, evidence
}

// signedClass is the class of a sender whose mail passes by DKIM alone.
func (s *suspect) signedClass(passes string) (dmarcd.Class, []string) {
	signed := fmt.Sprintf("%s carry a valid signature of your domain, and SPF does not pass.", count(s.dkimOnly, "message"))
	switch {
	case s.part(s.dkimOnly+s.broken) < enoughAligned:
		return dmarcd.ClassUnknown, []string{passes, "Most of its mail carries no signature of yours."}
	case s.keysAreOthers() || s.part(s.relayed) >= enoughRelayed:
		evidence := []string{passes, signed, "Mail with the same key also comes from other networks."}
		if s.relayed > 0 {
			evidence = append(evidence, s.relayEvidence())
		}
		return dmarcd.ClassForwarder, evidence
	case s.part(s.dkimOnly) >= enoughAligned:
		return dmarcd.ClassYours, []string{passes, signed}
	}
	return dmarcd.ClassUnknown, []string{passes, signed}
}

// unknownClass is the class of a sender whose mail all fails DMARC while nothing points
// to the owner.
func (s *suspect) unknownClass(passes string) (dmarcd.Class, []string) {
	total := s.total()
	other, messages, names := s.authenticatedAs()
	switch {
	case total < enoughSpoofed:
		return dmarcd.ClassUnknown, []string{passes, "Too few messages for a verdict."}
	case names > 0 && s.part(messages) >= oneDomain:
		return dmarcd.ClassUnknown, []string{passes, fmt.Sprintf(
			"%s authenticate as %s, which may be a service that you use.", count(messages, "message"), other)}
	case s.isNew():
		return dmarcd.ClassUnknown, []string{passes, fmt.Sprintf("It is new: first seen on %s.", s.first)}
	}
	evidence := []string{passes, "It never authenticates as your domain, and nothing in SPF, DKIM or host names links it to you."}
	if names > 1 {
		evidence = append(evidence, fmt.Sprintf("It authenticates as at least %d other domains.", names))
	}
	return dmarcd.ClassSpoofing, evidence
}

// isNew reports whether the sender was first seen at the end of the period.
func (s *suspect) isNew() bool {
	return s.period.last-s.first < newDays && s.first-s.period.first >= newDays
}

func (s *suspect) relayEvidence() string {
	return fmt.Sprintf("Receivers report %s as forwarded.", count(s.relayed, "message"))
}

// keysAreOthers reports whether the keys that the sender's mail passes with are mostly used
// by other senders.
func (s *suspect) keysAreOthers() bool {
	var others, own int64
	for key, messages := range s.keys {
		use := s.docket.uses[key]
		if use == nil {
			continue
		}
		if use.both >= messages || float64(messages) < originShare*float64(use.messages) {
			others += messages
		} else {
			own += messages
		}
	}
	return others > own
}

// brokenKeyIsUsed reports whether mail with a key of the sender's broken signatures passes
// elsewhere.
func (s *suspect) brokenKeyIsUsed() bool {
	for f := range s.failures {
		if f.dkim == signatureFails && s.docket.uses[f.selector+"._domainkey."+f.signer] != nil {
			return true
		}
	}
	return false
}
