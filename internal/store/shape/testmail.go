package shape

import (
	"net/netip"
	"time"

	"github.com/dmarcd/dmarcd"
)

// testMailsV1 are the results of a test address.
type testMailsV1 struct {
	V     int          `json:"v"`
	Mails []testMailV1 `json:"mails"`
}

type testMailV1 struct {
	ID           string            `json:"id"`
	At           time.Time         `json:"at"`
	From         string            `json:"from,omitempty"`
	Client       netip.Addr        `json:"client"`
	Relayed      bool              `json:"relayed,omitempty"`
	SPF          string            `json:"spf,omitempty"`
	SPFDomain    string            `json:"spf_domain,omitempty"`
	DMARC        string            `json:"dmarc,omitempty"`
	SPFAligned   bool              `json:"spf_aligned,omitempty"`
	Signatures   []testSignatureV1 `json:"signatures,omitempty"`
	Policy       string            `json:"policy,omitempty"`
	RecordDomain string            `json:"record_domain,omitempty"`
	Problem      string            `json:"problem,omitempty"`
}

type testSignatureV1 struct {
	Domain   string `json:"domain"`
	Selector string `json:"selector,omitempty"`
	Result   string `json:"result"`
	Reason   string `json:"reason,omitempty"`
	Aligned  bool   `json:"aligned,omitempty"`
}

// EncodeTestMails returns the document of the results of a test address.
func EncodeTestMails(mails []dmarcd.TestMail) string {
	return encode(testMailsV1{V: 1, Mails: convert(mails, func(m dmarcd.TestMail) testMailV1 {
		return testMailV1{
			ID: m.ID, At: m.At, From: m.From, Client: m.Client, Relayed: m.Relayed, SPF: m.SPF, SPFDomain: m.SPFDomain, DMARC: m.DMARC,
			SPFAligned: m.SPFAligned, Policy: m.Policy, RecordDomain: m.RecordDomain, Problem: m.Problem,
			Signatures: convert(m.Signatures, func(s dmarcd.TestSignature) testSignatureV1 { return testSignatureV1(s) }),
		}
	})})
}

// DecodeTestMails reads what EncodeTestMails returned.
func DecodeTestMails(document string) ([]dmarcd.TestMail, error) {
	return decode[testMailsV1]("test mails", document)
}

func (s testMailsV1) value() []dmarcd.TestMail {
	return convert(s.Mails, func(m testMailV1) dmarcd.TestMail {
		return dmarcd.TestMail{
			ID: m.ID, At: m.At, From: m.From, Client: m.Client, Relayed: m.Relayed, SPF: m.SPF, SPFDomain: m.SPFDomain, DMARC: m.DMARC,
			SPFAligned: m.SPFAligned, Policy: m.Policy, RecordDomain: m.RecordDomain, Problem: m.Problem,
			Signatures: convert(m.Signatures, func(s testSignatureV1) dmarcd.TestSignature { return dmarcd.TestSignature(s) }),
		}
	})
}
