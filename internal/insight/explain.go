package insight

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/phrase"
	"github.com/dmarcd/dmarcd/spf"
)

// Assessment is the class of a sender for a domain, with evidence, and why its mail fails.
type Assessment struct {
	Class dmarcd.Class
	// Set is the class that the team set, "" if the class is automatic.
	Set dmarcd.Class
	// Evidence are sentences with the facts that the class is derived from.
	Evidence []string
	// Cause explains in a sentence why most of the failing messages fail, Fix what to do about it.
	// Each may be "".
	Cause, Fix string
	// resolved is the number of messages whose cause of failure has been fixed since.
	resolved int64
	// asks is true if only a person can decide on the class.
	asks bool
	// bySPF is true if most of the failing messages fail because of the SPF record of the domain.
	bySPF bool
}

// settleDays is for how many days no message may have failed after a cause was fixed.
const settleDays = 2

// explain sets the cause and the fix of most failures of the sender.
func (s *assessed) explain(a *Assessment) {
	a.Cause, a.Fix, a.resolved, a.bySPF = "", "", 0, false
	group, of, fails := s.topFailure()
	if !fails || s.mail.domain.brief != nil {
		return
	}
	a.Cause = s.cause(group, of)
	a.Fix = s.fix(a.Class, group)
	a.bySPF = group.spf == spfBroken || group.spf == spfUnauthorized || group.spf == spfMissing
	fixed := group.spf == spfBroken && s.spfIsValid(group.checked) || s.dkimKeyIsBack(group, of)
	if fixed && of.last < s.period.last-settleDays {
		a.resolved = of.messages
	}
}

// cause returns a sentence about why a group of messages fails.
func (s *assessed) cause(f failure, of failed) string {
	domain := cmp.Or(s.mail.domain.Name, "the From domain")
	var spf string
	switch f.spf {
	case spfBroken:
		return fmt.Sprintf("SPF has failed with a permanent error (permerror) since %s: %s. %s", phrase.Day(s.mail.domain.spfBrokenSince(of.first)), s.spfProblem(f.checked, of.last), sentence(s.dkimCause(f, of, domain)))
	case spfMissing:
		spf = f.checked + " has no SPF record"
		if f.checked != domain {
			spf = fmt.Sprintf("the subdomain %s is not covered: it has no SPF record", f.checked)
		}
	case spfUnauthorized:
		spf = fmt.Sprintf("the SPF record of %s does not list the address", f.checked)
	case spfOther:
		spf = fmt.Sprintf("SPF passes for %s, which is not aligned with %s", f.checked, domain)
	case spfAligned:
		spf = fmt.Sprintf("SPF passes for %s, but strict alignment requires %s", f.checked, f.from)
	default:
		spf = "SPF does not pass"
	}
	return sentence(spf + ", and " + s.dkimCause(f, of, domain))
}

// dkimCause returns a clause about what is wrong with the signatures.
func (s *assessed) dkimCause(f failure, of failed, domain string) string {
	switch f.dkim {
	case signedByOther:
		return fmt.Sprintf("the signature is for %s, not for %s", f.signer, domain)
	case signedAligned:
		if f.signer == f.from {
			return fmt.Sprintf("receivers did not accept the valid signature for %s", f.signer)
		}
		return fmt.Sprintf("the signature is for %s, but strict alignment requires %s", f.signer, f.from)
	case keyFails, signatureFails:
		key := f.selector + "._domainkey." + f.signer
		switch dkimKeyStatus(f, s.mail.domain.factsAt(of.last)) {
		case "none":
			return fmt.Sprintf("the key %s is missing in the DNS", key)
		case "revoked":
			return fmt.Sprintf("the key %s is revoked in the DNS", key)
		}
		if f.dkim == keyFails {
			return fmt.Sprintf("receivers could not use the key %s", key)
		}
		return fmt.Sprintf("the signature %s does not verify: the message was changed in transit", key)
	}
	return "there is no DKIM signature for " + domain
}

// dkimKeyStatus returns the status of the key of a failure in a check, "" if the check does not have it.
func dkimKeyStatus(f failure, now *facts.Facts) string {
	if now == nil || f.signer != now.Domain {
		return ""
	}
	at := slices.IndexFunc(now.DKIM.Keys, func(k facts.DKIMKey) bool { return k.Selector == f.selector })
	if at < 0 {
		return ""
	}
	return now.DKIM.Keys[at].Status
}

// spfProblem returns a clause about what was wrong with the SPF record of a domain on a day.
func (s *assessed) spfProblem(domain string, day dmarcd.Day) string {
	facts := s.mail.domain.factsAt(day)
	record := "the SPF record of " + domain
	switch {
	case facts == nil || facts.Domain != domain:
		return record + " cannot be evaluated"
	case facts.SPF.Status == "multiple":
		return domain + " has several SPF records"
	case facts.SPF.Lookups > spf.MaxLookups:
		return fmt.Sprintf("%s needs %d lookups; the limit is %d", record, facts.SPF.Lookups, spf.MaxLookups)
	case facts.SPF.VoidLookups > spf.MaxVoids:
		return fmt.Sprintf("%s has %d void lookups; the limit is %d", record, facts.SPF.VoidLookups, spf.MaxVoids)
	case facts.SPF.Status == "permerror" && len(facts.SPF.Problems) > 0:
		return fmt.Sprintf("%s has the problem %s", record, facts.SPF.Problems[0].Kind)
	case facts.SPF.Status == "ok":
		return record + " had an error, but is valid now"
	}
	return record + " cannot be evaluated"
}

// fix returns a sentence about what to do about a group of failing messages of a sender.
func (s *assessed) fix(class dmarcd.Class, f failure) string {
	domain := cmp.Or(s.mail.domain.Name, "the From domain")
	switch class {
	case dmarcd.ClassSpoofing:
		return ""
	case dmarcd.ClassUnknown:
		return "Find out whether it sends for you, then say so."
	}
	if fix := s.recordFix(f); fix != "" {
		return fix
	}
	if s.network.inCatalogue() && s.network.sender.Setup != "" {
		return s.network.sender.Setup
	}
	if class == dmarcd.ClassForwarder {
		if f.dkim == unsigned {
			return fmt.Sprintf("Sign all your mail with DKIM for %s: SPF never survives forwarding, a signature does.", domain)
		}
		return "No record of yours fixes this: the forwarder changes signed mail. Ask its operator to leave signed mail unchanged, or to rewrite the From address."
	}
	switch {
	case f.dkim == signatureFails:
		return "Sign the message last: no server may change it after it is signed."
	case f.spf == spfUnauthorized:
		return fmt.Sprintf("Add the address to the SPF record of %s, and sign with DKIM for %s.", f.checked, domain)
	case f.spf == spfMissing:
		return fmt.Sprintf("Publish an SPF record for %s, and sign with DKIM for %s.", f.checked, domain)
	case f.dkim == signedByOther:
		return fmt.Sprintf("Sign with DKIM for %s instead of %s.", domain, f.signer)
	case f.spf == spfOther:
		return fmt.Sprintf("Send with an envelope address at %s, or sign with DKIM for it.", domain)
	}
	return fmt.Sprintf("Sign with DKIM for %s, and add the address to its SPF record.", domain)
}

// recordFix returns the change of the DNS that helps for every sender, "" for none.
func (s *assessed) recordFix(f failure) string {
	key := f.selector + "._domainkey." + f.signer
	switch status := dkimKeyStatus(f, s.mail.domain.Facts); {
	case f.spf == spfBroken && s.spfIsValid(f.checked):
		return "Nothing to do: the SPF record is valid now."
	case f.spf == spfBroken:
		return fmt.Sprintf("Fix the SPF record of %s.", f.checked)
	case f.dkim == signedAligned || f.spf == spfAligned:
		return fmt.Sprintf("Set adkim=r and aspf=r in the DMARC record, or have the mail signed for %s.", f.from)
	case (f.dkim == keyFails || f.dkim == signatureFails) && status == "none":
		return fmt.Sprintf("Publish the key %s again, or sign with a key that is published.", key)
	case (f.dkim == keyFails || f.dkim == signatureFails) && status == "revoked":
		return fmt.Sprintf("Sign with a key that is not revoked, or publish a new key at %s.", key)
	case f.dkim == keyFails && status == "found":
		return fmt.Sprintf("Nothing to do: the key %s is published now.", key)
	case f.dkim == keyFails:
		return fmt.Sprintf("Correct the key at %s.", key)
	}
	return ""
}

// dkimKeyIsBack reports whether the key of a failure was missing then and is published now.
func (s *assessed) dkimKeyIsBack(f failure, of failed) bool {
	then, now := dkimKeyStatus(f, s.mail.domain.factsAt(of.last)), dkimKeyStatus(f, s.mail.domain.Facts)
	return f.dkim == keyFails && then != now && now == "found"
}

func (s *assessed) spfIsValid(domain string) bool {
	facts := s.mail.domain.Facts
	return facts != nil && facts.Domain == domain && facts.SPF.Status == "ok"
}

// sentence begins a text with a capital letter and ends it with a full stop. A domain
// name stays as it is.
func sentence(text string) string {
	first, _, _ := strings.Cut(text, " ")
	if !strings.Contains(first, ".") {
		text = strings.ToUpper(text[:1]) + text[1:]
	}
	return text + "."
}
