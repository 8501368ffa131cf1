package tlsrpt

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
)

func contentOf(r *Report) [sha256.Size]byte {
	h := hasher{sum: sha256.New()}
	h.texts(r.OrgName, r.ContactInfo, r.ReportID)
	h.counts(r.Begin, r.End, int64(len(r.Policies)))
	for i := range r.Policies {
		p := &r.Policies[i]
		h.texts(string(p.Type), p.Domain)
		h.counts(int64(len(p.Strings)), int64(len(p.MXHosts)), p.Successful, p.Failed, int64(len(p.Failures)))
		h.texts(p.Strings...)
		h.texts(p.MXHosts...)
		for j := range p.Failures {
			f := &p.Failures[j]
			h.texts(string(f.ResultType), f.SendingMTAIP, f.ReceivingMXHostname, f.ReceivingMXHelo, f.ReceivingIP,
				f.AdditionalInformation, f.ReasonCode)
			h.counts(f.FailedSessions)
		}
	}
	return [sha256.Size]byte(h.sum.Sum(nil))
}

// hasher writes the length before each text, so that the hash is unambiguous.
type hasher struct {
	sum     hash.Hash
	scratch []byte
}

func (h *hasher) texts(texts ...string) {
	b := h.scratch[:0]
	for _, text := range texts {
		b = binary.AppendUvarint(b, uint64(len(text)))
		b = append(b, text...)
	}
	h.sum.Write(b)
	h.scratch = b
}

func (h *hasher) counts(counts ...int64) {
	b := h.scratch[:0]
	for _, n := range counts {
		b = binary.AppendVarint(b, n)
	}
	h.sum.Write(b)
	h.scratch = b
}
