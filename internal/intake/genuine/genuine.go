// Package genuine authenticates mail: whether it was sent by its From domain, by DKIM (RFC
// 6376, RFC 8301, RFC 8463), by SPF (RFC 7208) for mail received over SMTP, and by the
// alignment of either with the From domain (RFC 9989 §4.4).
//
// Alignment is always relaxed: we want to know whether the organization sent the mail, not how
// it wants failures handled. The result under its own record is reported separately, as the
// DMARC result.
//
// go-msgauth verifies signatures, with keys that our dkim package accepts. The package only
// returns verdicts; callers decide what follows from them.
package genuine

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/spf"
)

// timeout bounds the verification of one mail, most of which is waiting for DNS.
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
func (v *Verifier) SMTP(ctx context.Context, mail io.ReadSeeker, envelope Envelope) dmarcd.Verdict {
	verdict := v.authenticate(ctx, mail, func(ctx context.Context, f findings) dmarcd.Verdict {
		f.spf = v.checkSPF(ctx, f.from, envelope)
		return f.verdictSMTP()
	}, dmarcd.GenuineNo)
	if verdict.Genuine == "" {
		return dmarcd.Verdict{Genuine: dmarcd.GenuineNo, Reason: "The message has no header."}
	}
	return verdict
}

// Mail verifies a mail with an unknown delivery path and time. It is genuine if an aligned
// signature passes, and not genuine if an aligned signature fails. Without a signature,
// without its key or without DNS, the result is unknown. Content that is not a mail has the
// zero verdict.
func (v *Verifier) Mail(ctx context.Context, mail io.ReadSeeker) dmarcd.Verdict {
	return v.authenticate(ctx, mail, func(_ context.Context, f findings) dmarcd.Verdict {
		return f.verdictMail()
	}, dmarcd.GenuineUnknown)
}

// authenticate collects the findings of a mail and judges them. unsigned is the result for a mail
// without a usable From domain. Content that is not a mail has the zero verdict.
func (v *Verifier) authenticate(ctx context.Context, mail io.ReadSeeker, evaluate func(context.Context, findings) dmarcd.Verdict, unsigned dmarcd.Genuine) dmarcd.Verdict {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	h, err := readHeader(mail)
	switch {
	case err != nil:
		return dmarcd.Verdict{Genuine: dmarcd.GenuineUnknown, Reason: "The message could not be parsed."}
	case !h.mail:
		return dmarcd.Verdict{}
	case h.problem != "":
		return dmarcd.Verdict{Genuine: unsigned, Reason: h.problem}
	}
	from, problem := h.author()
	if problem != "" {
		return dmarcd.Verdict{Genuine: unsigned, Reason: problem}
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
