package aggregate

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/dmarcd/dmarcd/internal/reporttext"
)

// In the content hash each field is preceded by its length, so that it is unambiguous.
// Records are hashed as they arrive and the rest at the end, so that its position in the
// document does not matter.

func (r *Reader) addContent() {
	c := &r.record
	b := reporttext.AppendTexts(r.scratch[:0], c.Source, string(c.Disposition), string(c.DKIM), string(c.SPF),
		c.HeaderFrom, c.EnvelopeFrom, c.EnvelopeTo)
	b = binary.AppendVarint(b, c.Count)
	b = binary.AppendUvarint(b, uint64(len(c.Reasons)))
	for i := range c.Reasons {
		b = reporttext.AppendTexts(b, c.Reasons[i].Type, c.Reasons[i].Comment)
	}
	b = binary.AppendUvarint(b, uint64(len(c.DKIMResults)))
	for i := range c.DKIMResults {
		d := &c.DKIMResults[i]
		b = reporttext.AppendTexts(b, d.Domain, d.Selector, string(d.Result), d.HumanResult)
	}
	b = binary.AppendUvarint(b, uint64(len(c.SPFResults)))
	for i := range c.SPFResults {
		s := &c.SPFResults[i]
		b = reporttext.AppendTexts(b, s.Domain, s.Scope, string(s.Result), s.HumanResult)
	}
	r.content.Write(b)
	r.scratch = b
}

// sumContent computes the hash of the whole report.
func (r *Reader) sumContent() {
	m, p := &r.report.Metadata, &r.report.Policy
	b := reporttext.AppendTexts(r.content.Sum(nil), r.report.Version, m.OrgName, m.Email, m.ExtraContact, m.ReportID, m.Generator,
		p.Domain, string(p.P), string(p.SP), string(p.NP), p.ADKIM, p.ASPF, p.Percent, p.FailureOptions, p.Testing,
		p.DiscoveryMethod, p.PSD)
	b = binary.AppendVarint(b, m.Begin)
	b = binary.AppendVarint(b, m.End)
	b = binary.AppendUvarint(b, uint64(len(m.Errors)))
	b = reporttext.AppendTexts(b, m.Errors...)
	r.report.Content = sha256.Sum256(b)
}
