// Package genuine authenticates mail: whether it was sent by its From domain, by DKIM (RFC
// 6376, RFC 8301, RFC 8463), by SPF (RFC 7208) for mail received over SMTP, and by the
// alignment of either with the From domain (RFC 9989 §4.4).
//
// Alignment is always relaxed: we want to know whether the organization sent the mail, not how
// it wants failures handled. The result under its own record is reported separately, as the
// DMARC result.
//
// go-msgauth verifies signatures, with keys that our dkim package accepts. The package only
// returns results; callers decide what follows from them.
package genuine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/spf"
)

// timeout limits the verification of one mail, which is mostly waiting for DNS.
const timeout = 10 * time.Second

// Verifier authenticates mail. It is safe for concurrent use. All fields must be set.
type Verifier struct {
	Resolver dns.Resolver
	// Hostname and Now are used by SPF macros.
	Hostname string
	Now      func() time.Time
}

// Envelope is the SMTP envelope of a mail.
type Envelope struct {
	RemoteIP netip.Addr
	Helo     string
	// MailFrom is the reverse-path without angle brackets, "" for the null path.
	MailFrom string
}

// SMTP verifies a mail received over SMTP. It is genuine if DKIM or SPF passes with alignment
// to its From domain, and not genuine if neither does or if it has no header. The result is
// unknown if DNS or the mail could not be read.
func (v *Verifier) SMTP(ctx context.Context, mail io.ReadSeeker, envelope Envelope) dmarcd.Authentication {
	authentication := v.authenticate(ctx, mail, func(ctx context.Context, f findings) dmarcd.Authentication {
		f.spf = v.checkSPF(ctx, f.from, envelope)
		return f.evaluateSMTP()
	}, dmarcd.GenuineNo)
	if authentication.Genuine == "" {
		return dmarcd.Authentication{Genuine: dmarcd.GenuineNo, Reason: "The message has no header."}
	}
	return authentication
}

// Mail verifies a mail with an unknown delivery path and time. It is genuine if an aligned
// signature passes, and not genuine if an aligned signature fails. Without a signature,
// without its key or without DNS, the result is unknown. Content that is not a mail has the
// zero Authentication.
func (v *Verifier) Mail(ctx context.Context, mail io.ReadSeeker) dmarcd.Authentication {
	return v.authenticate(ctx, mail, func(_ context.Context, f findings) dmarcd.Authentication {
		return f.evaluateMail()
	}, dmarcd.GenuineUnknown)
}

// authenticate collects the findings of a mail and evaluates them. unsigned is the result for a mail
// without a usable From domain. Content that is not a mail has the zero Authentication.
func (v *Verifier) authenticate(ctx context.Context, mail io.ReadSeeker, evaluate func(context.Context, findings) dmarcd.Authentication, unsigned dmarcd.Genuine) dmarcd.Authentication {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	h, err := readHeader(mail)
	switch {
	case err != nil:
		return dmarcd.Authentication{Genuine: dmarcd.GenuineUnknown, Reason: "The message could not be parsed."}
	case !h.mail:
		return dmarcd.Authentication{}
	case h.problem != "":
		return dmarcd.Authentication{Genuine: unsigned, Reason: h.problem}
	}
	from, problem := h.author()
	if problem != "" {
		return dmarcd.Authentication{Genuine: unsigned, Reason: problem}
	}
	f := findings{from: from, discovery: dmarc.Discover(ctx, v.Resolver, from)}
	f.signatures, err = v.verify(ctx, mail, h.signatures, from)
	f.blank = errors.Is(err, errBlank)
	f.unreadable = err != nil && !f.blank
	return evaluate(ctx, f)
}

// checkSPF evaluates SPF for the client, and its alignment with the From domain.
func (v *Verifier) checkSPF(ctx context.Context, from string, e Envelope) spfFinding {
	checked := spf.Check(ctx, v.Resolver, spf.Identity{
		IP: e.RemoteIP, Helo: e.Helo, MailFrom: inALabels(e.MailFrom), Receiver: v.Hostname, Time: v.Now(),
	})
	return spfFinding{
		result: checked.Result, domain: checked.Domain,
		alignment: dmarc.Align(ctx, v.Resolver, from, checked.Domain, dmarc.Relaxed),
	}
}

// findings are the authentication results of a mail.
type findings struct {
	// from is the From domain, discovery the policy that applies to it.
	from       string
	discovery  dmarc.Discovery
	signatures []signature
	// unreadable means that the signatures could not be verified, blank that they were not
	// because the sender exceeds maxBlankRun.
	unreadable, blank bool
	spf               spfFinding
}

// spfFinding is the SPF result of the client.
type spfFinding struct {
	result    spf.Result
	domain    string
	alignment dmarc.Alignment
}

// passes reports whether SPF passes with alignment.
func (s spfFinding) passes() bool { return s.result == spf.Pass && s.alignment == dmarc.Aligned }

// isOpen reports whether SPF might pass with alignment, but could not be determined.
func (s spfFinding) isOpen() bool {
	return s.result == spf.TempError && s.alignment != dmarc.NotAligned ||
		s.result == spf.Pass && s.alignment == dmarc.AlignmentUnknown
}

// passes reports whether the signature passes with alignment.
func (s signature) passes() bool { return s.result == resultPass && s.alignment == dmarc.Aligned }

// isOpen reports whether the signature might pass with alignment, but could not be determined.
func (s signature) isOpen() bool {
	return s.result == resultTempError && s.alignment != dmarc.NotAligned ||
		s.result == resultPass && s.alignment == dmarc.AlignmentUnknown
}

// contradicts reports whether an aligned signature fails.
func (s signature) contradicts() bool {
	return s.result == resultFail && s.alignment == dmarc.Aligned
}

// evaluateSMTP evaluates a mail received over SMTP.
func (f findings) evaluateSMTP() dmarcd.Authentication {
	v := dmarcd.Authentication{From: f.from, DKIM: f.dkim(), SPF: f.spf.result.String()}
	signed, isSigned := f.first(signature.passes)
	_, isOpen := f.first(signature.isOpen)
	switch {
	case isSigned:
		v.Genuine, v.Domain, v.Reason = dmarcd.GenuineYes, signed.domain, signedReason(signed)
	case f.spf.passes():
		v.Genuine, v.Domain = dmarcd.GenuineYes, f.spf.domain
		v.Reason = fmt.Sprintf("SPF passes for %s, which is aligned with the From domain.", f.spf.domain)
	case f.unreadable:
		v.Genuine, v.Reason = dmarcd.GenuineUnknown, unreadableReason
	case isOpen || f.spf.isOpen():
		v.Genuine, v.Reason = dmarcd.GenuineUnknown, openReason
	default:
		v.Genuine = dmarcd.GenuineNo
		v.Reason = fmt.Sprintf("Neither DKIM nor SPF is aligned with the From domain: %s, SPF for %s is %s.", f.dkimReason(), f.spf.name(), v.SPF)
	}
	v.DMARC = f.dmarc(v.Genuine)
	return v
}

// evaluateMail evaluates a mail by its signatures alone.
func (f findings) evaluateMail() dmarcd.Authentication {
	v := dmarcd.Authentication{Genuine: dmarcd.GenuineUnknown, From: f.from, DKIM: f.dkim()}
	signed, isSigned := f.first(signature.passes)
	forged, isForged := f.first(signature.contradicts)
	_, isOpen := f.first(signature.isOpen)
	switch {
	case isSigned:
		v.Genuine, v.Domain, v.Reason = dmarcd.GenuineYes, signed.domain, signedReason(signed)
		// A failure proves nothing: SPF, which is unknown here, might have passed.
		v.DMARC = f.dmarc(v.Genuine)
	case f.unreadable:
		v.Reason = unreadableReason
	case isForged:
		v.Genuine = dmarcd.GenuineNo
		v.Reason = fmt.Sprintf("The signature of %s is invalid: %s.", forged.domain, forged.reason)
	case isOpen:
		v.Reason = openReason
	default:
		v.Reason = fmt.Sprintf("No signature authenticates the From domain: %s.", f.dkimReason())
	}
	return v
}

const (
	openReason       = "A DNS query needed for the decision failed."
	unreadableReason = "The signatures of the message could not be verified within the limits."
)

func signedReason(s signature) string {
	return fmt.Sprintf("The message has a valid signature of %s, which is aligned with the From domain.", s.domain)
}

// name returns the domain that SPF was evaluated for.
func (s spfFinding) name() string { return cmp.Or(s.domain, "an unknown client") }

// first returns the first signature that matches.
func (f findings) first(of func(signature) bool) (signature, bool) {
	at := slices.IndexFunc(f.signatures, of)
	if at < 0 {
		return signature{}, false
	}
	return f.signatures[at], true
}

// best returns the most significant signature: passing before failing, then aligned first.
func (f findings) best() (signature, bool) {
	if len(f.signatures) == 0 {
		return signature{}, false
	}
	return slices.MaxFunc(f.signatures, func(a, b signature) int {
		return cmp.Compare(a.weight(), b.weight())
	}), true
}

func (s signature) weight() int {
	weight := 0
	if s.alignment == dmarc.Aligned {
		weight += 2
	}
	if s.result == resultPass {
		weight++
	}
	return weight
}

// dkim returns the DKIM result as one word.
func (f findings) dkim() string {
	switch {
	case f.unreadable:
		return resultTempError
	case f.blank:
		return resultPolicy
	}
	if s, ok := f.best(); ok {
		return s.result
	}
	return resultNone
}

// dkimReason describes the signatures as part of a sentence.
func (f findings) dkimReason() string {
	s, ok := f.best()
	switch {
	case f.blank:
		return "the message has too long a run of white space to verify its signatures"
	case !ok:
		return "there is no signature"
	case s.result != resultPass:
		return fmt.Sprintf("the signature of %s is not valid (%s)", cmp.Or(s.domain, "an unknown domain"), s.reason)
	default:
		return fmt.Sprintf("there is only a signature of %s", s.domain)
	}
}

// dmarc returns the DMARC result under the record of the From domain, which may require strict
// alignment.
func (f findings) dmarc(genuine dmarcd.Genuine) string {
	record := f.discovery.Record
	switch {
	case f.discovery.Status == dmarc.StatusInconclusive:
		return resultTempError
	case record == nil:
		return resultNone
	case !record.Usable():
		return resultPermError
	}
	_, signed := f.first(func(s signature) bool { return s.passes() && (record.ADKIM == dmarc.Relaxed || s.domain == f.from) })
	switch {
	case signed || f.spf.passes() && (record.ASPF == dmarc.Relaxed || f.spf.domain == f.from):
		return resultPass
	case genuine == dmarcd.GenuineUnknown:
		return resultTempError
	default:
		return resultFail
	}
}
