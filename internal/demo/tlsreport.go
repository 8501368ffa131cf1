package demo

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math/rand/v2"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/tlsrpt"
)

// The days before the present on which a certificate had run out.
const (
	certificateExpired = 33
	certificateRenewed = 30
)

// tls returns the TLS reports about one day of a domain.
func (s *Scenario) tls(d *domain, ago int, dice *rand.Rand) []Document {
	if !d.asksForTLSReports(ago) {
		return nil
	}
	var documents []Document
	for i := range receivers {
		if r := &receivers[i]; r.tls {
			documents = append(documents, s.tlsReport(d, r, ago, dice))
		}
	}
	return documents
}

func (s *Scenario) tlsReport(d *domain, r *receiver, ago int, dice *rand.Rand) Document {
	report := tlsrpt.Report{
		OrgName: r.name, ContactInfo: "mailto:tls-noreply@" + r.domain, ReportID: s.reportID(d, r, ago),
		Begin: s.dayBefore(ago).Unix(), End: s.dayBefore(ago-1).Unix() - 1,
		Policies: []tlsrpt.Policy{s.tlsPolicy(d, r, ago, dice)},
	}
	name := fmt.Sprintf("%s!%s!%d!%d.json", r.domain, d.name, report.Begin, report.End)
	return s.document(dmarcd.KindTLS, d, name, ago, func(w *bytes.Buffer) error { return tlsrpt.Render(w, report) })
}

// tlsPolicy returns what became of the sessions with the hosts of a domain.
func (s *Scenario) tlsPolicy(d *domain, r *receiver, ago int, dice *rand.Rand) tlsrpt.Policy {
	exchange, addr := d.mx[0].exchange()
	p := tlsrpt.Policy{
		Type: tlsrpt.PolicyNotFound, Domain: d.name,
		Successful: int64(poisson(dice, 900*r.share*office(s.dayBefore(ago), nil))),
	}
	if d.signed {
		p.Type = tlsrpt.PolicyTLSA
		raw := certificateRecord(exchange)
		p.Strings = []string{fmt.Sprintf("%d %d %d %s", raw[0], raw[1], raw[2], hex.EncodeToString(raw[3:]))}
	}
	if !d.signed && ago <= certificateExpired && ago > certificateRenewed {
		p.Failed, p.Successful = p.Successful, 0
		p.Failures = []tlsrpt.Failure{{
			ResultType: tlsrpt.CertificateExpired, SendingMTAIP: "192.0.2.200",
			ReceivingMXHostname: exchange, ReceivingIP: addr.String(), FailedSessions: p.Failed,
		}}
	}
	return p
}
