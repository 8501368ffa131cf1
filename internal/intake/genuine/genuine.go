// Package genuine tells whether a mail comes from whom its From field says: by DKIM
// (RFC 6376, RFC 8301, RFC 8463), by SPF (RFC 7208) where the mail came by SMTP, and by
// the alignment of either with the From domain (RFC 9989 §4.4).
//
// Alignment is relaxed whatever the record of the From domain asks for: the question is
// whether the organization sent the mail, not what it wants done otherwise. What its
// own record leads to is told beside it, as the DMARC result.
//
// The signatures themselves are verified by go-msgauth, with keys that our dkim package
// has found usable. The package answers nobody and refuses nothing; what follows from a
// verdict is left to others.
package genuine

import (
	"context"
	"io"
	"net/netip"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/spf"
)

// timeout bounds the look at one mail, most of which is waiting for DNS.
const timeout = 10 * time.Second

// Verifier looks at mails. It is safe for concurrent use. All fields must be set.
type Verifier struct {
	Resolver dns.Resolver
	// Hostname is what this receiver calls itself, and Now its clock; an SPF record
	// may ask for both.
	Hostname string
	Now      func() time.Time
}

// Envelope is what a client said about a mail, and where it connected from.
type Envelope struct {
	RemoteIP netip.Addr
	Helo     string
	// MailFrom is the reverse-path without angle brackets, "" for the null one.
	MailFrom string
}

// SMTP looks at a mail that came by SMTP. It is genuine if a signature or SPF stands
// for its From domain, and not if neither does; it is not known where DNS did not
// answer. What is no mail has the zero verdict. A mail that cannot be read is like one
// whose DNS does not answer.
func (v *Verifier) SMTP(ctx context.Context, mail io.ReadSeeker, envelope Envelope) dmarcd.Verdict {
	return v.look(ctx, mail, func(ctx context.Context, f findings) dmarcd.Verdict {
		f.spf = v.checkSPF(ctx, f.from, envelope)
		return f.verdictSMTP()
	}, dmarcd.GenuineNo)
}

// Mail looks at a mail of which nobody knows who delivered it, and when. It is genuine
// if a signature stands for its From domain, and not if such a signature does not fit
// the mail. Where there is none, where its key is gone, or where DNS did not answer, it
// is not known. What is no mail has the zero verdict.
func (v *Verifier) Mail(ctx context.Context, mail io.ReadSeeker) dmarcd.Verdict {
	return v.look(ctx, mail, func(_ context.Context, f findings) dmarcd.Verdict {
		return f.verdictMail()
	}, dmarcd.GenuineUnknown)
}

// look finds out what is common to both ways and has it judged. unsigned is the answer
// for a mail whose author cannot be told.
func (v *Verifier) look(ctx context.Context, mail io.ReadSeeker, judge func(context.Context, findings) dmarcd.Verdict, unsigned dmarcd.Genuine) dmarcd.Verdict {
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
	f.signatures, f.unreadable = v.verify(ctx, mail, h.signatures, from)
	return judge(ctx, f)
}

// checkSPF tells what SPF says about the client, and whether that concerns the From
// domain.
func (v *Verifier) checkSPF(ctx context.Context, from string, e Envelope) spfFinding {
	checked := spf.Check(ctx, v.Resolver, spf.Identity{
		IP: e.RemoteIP, Helo: e.Helo, MailFrom: inALabels(e.MailFrom), Receiver: v.Hostname, Time: v.Now(),
	})
	return spfFinding{
		result: checked.Result, domain: checked.Domain,
		alignment: dmarc.Align(ctx, v.Resolver, from, checked.Domain, dmarc.Relaxed),
	}
}
