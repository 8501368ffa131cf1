package tlsrpt

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/dmarcd/dmarcd/internal/reporttext"
)

func contentOf(r *Report) [sha256.Size]byte {
	sum := sha256.New()
	b := reporttext.AppendTexts(nil, r.OrgName, r.ContactInfo, r.ReportID)
	b = appendCounts(b, r.Begin, r.End, int64(len(r.Policies)))
	for i := range r.Policies {
		p := &r.Policies[i]
		b = reporttext.AppendTexts(b, string(p.Type), p.Domain)
		b = appendCounts(b, int64(len(p.Strings)), int64(len(p.MXHosts)), p.Successful, p.Failed, int64(len(p.Failures)))
		b = reporttext.AppendTexts(b, p.Strings...)
		b = reporttext.AppendTexts(b, p.MXHosts...)
		for j := range p.Failures {
			f := &p.Failures[j]
			b = reporttext.AppendTexts(b, string(f.ResultType), f.SendingMTAIP, f.ReceivingMXHostname, f.ReceivingMXHelo, f.ReceivingIP,
				f.AdditionalInformation, f.ReasonCode)
			b = appendCounts(b, f.FailedSessions)
			sum.Write(b)
			b = b[:0]
		}
	}
	sum.Write(b)
	return [sha256.Size]byte(sum.Sum(nil))
}

func appendCounts(b []byte, counts ...int64) []byte {
	for _, n := range counts {
		b = binary.AppendVarint(b, n)
	}
	return b
}
