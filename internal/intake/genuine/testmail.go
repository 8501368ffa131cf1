package genuine

import (
	"context"
	"io"
	"net/netip"
	"slices"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/dns"
)

// Test returns how a mail received over SMTP authenticates, in full. outside reports whether an
// address is one that mail servers of others may have. From any other, and from the mail servers of
// the report domain, the mail came through a relay of ours, so that SPF is not evaluated.
func (v *Verifier) Test(ctx context.Context, mail io.ReadSeeker, envelope Envelope, outside func(netip.Addr) bool) dmarcd.TestMail {
	client := envelope.RemoteIP.Unmap()
	test := dmarcd.TestMail{Client: client, Relayed: !outside(client) || v.isRelay(ctx, client)}
	result := v.authenticate(ctx, mail, func(ctx context.Context, f findings) dmarcd.Authentication {
		f.describe(&test)
		if test.Relayed {
			return f.evaluateMail()
		}
		f.spf = v.checkSPF(ctx, f.from, envelope)
		test.SPFDomain = f.spf.domain
		test.SPFAligned = f.aligned(f.spf.domain, f.spf.alignment, f.mode(func(r *dmarc.Record) dmarc.Mode { return r.ASPF }))
		return f.evaluateSMTP()
	}, dmarcd.GenuineNo)
	test.From, test.SPF, test.DMARC = result.From, result.SPF, result.DMARC
	if test.From == "" {
		test.Problem = result.Reason
		if test.Problem == "" {
			test.Problem = "The message has no header."
		}
	}
	return test
}

// describe adds the policy and the signatures.
func (f findings) describe(test *dmarcd.TestMail) {
	test.Policy, test.RecordDomain = f.discovery.Policy.String(), f.discovery.RecordDomain
	mode := f.mode(func(r *dmarc.Record) dmarc.Mode { return r.ADKIM })
	for _, s := range f.signatures {
		test.Signatures = append(test.Signatures, dmarcd.TestSignature{
			Domain: s.domain, Selector: s.selector, Result: s.result, Reason: s.reason, Aligned: f.aligned(s.domain, s.alignment, mode),
		})
	}
}

// mode returns a mode of the record, relaxed without one.
func (f findings) mode(of func(*dmarc.Record) dmarc.Mode) dmarc.Mode {
	if f.discovery.Record == nil {
		return dmarc.Relaxed
	}
	return of(f.discovery.Record)
}

// aligned reports whether a domain is aligned with the From domain in a mode.
func (f findings) aligned(domain string, relaxed dmarc.Alignment, mode dmarc.Mode) bool {
	return relaxed == dmarc.Aligned && (mode == dmarc.Relaxed || domain == f.from)
}

// maxRelays limits the mail servers of the report domain that are looked up.
const maxRelays = 10

// isRelay reports whether an address is one of the mail servers of the report domain.
func (v *Verifier) isRelay(ctx context.Context, client netip.Addr) bool {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	family := dns.A
	if client.Is6() {
		family = dns.AAAA
	}
	hosts := v.Resolver.Resolve(ctx, dns.Question{Name: v.Hostname, Type: dns.MX}).Records
	for _, mx := range hosts[:min(len(hosts), maxRelays)] {
		addresses := v.Resolver.Resolve(ctx, dns.Question{Name: mx.Host, Type: family}).Records
		if mx.Host != "" && slices.ContainsFunc(addresses, func(r dns.Record) bool { return r.Addr == client }) {
			return true
		}
	}
	return false
}
