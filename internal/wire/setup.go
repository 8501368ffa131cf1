package wire

import (
	"strings"

	"github.com/dmarcd/dmarcd"
)

// Setup is what the owner of a domain has to publish.
type Setup struct {
	Domain        string        `json:"domain"`
	ReportAddress *string       `json:"report_address"` // null where the service has no report domain
	CheckedAt     *string       `json:"checked_at"`     // null where nobody has looked yet
	Records       []SetupRecord `json:"records"`
}

// SetupRecord is a DNS record to publish.
type SetupRecord struct {
	Purpose string `json:"purpose"` // dmarc, report_authorization or tls_rpt
	Name    string `json:"name"`
	Type    string `json:"type"`
	Value   string `json:"value"`
	Seen    *bool  `json:"seen"` // null where nobody could tell
	Why     string `json:"why"`
}

// NewSetup returns the shape of what to publish for a domain.
func NewSetup(s dmarcd.Setup) Setup {
	setup := Setup{
		Domain: s.Domain.Name, ReportAddress: optionalText(s.Address), CheckedAt: optionalTime(s.Domain.CheckedAt),
		Records: make([]SetupRecord, len(s.Records)),
	}
	for i, r := range s.Records {
		setup.Records[i] = SetupRecord{Purpose: string(r.Purpose), Name: r.Name, Type: "TXT", Value: r.Value, Why: r.Why}
		if r.Known {
			setup.Records[i].Seen = &s.Records[i].Seen
		}
	}
	return setup
}

// Published returns what the check says of where reports go, of which those to that
// address count. The zero value, no check, says nothing.
func (k KeptCheck) Published(address string) dmarcd.Published {
	published := dmarcd.Published{
		TLSRecord: k.TLSRPT.Record, TLSKnown: k.ID != "" && k.TLSRPT.Status != "inconclusive",
	}
	for _, d := range k.DMARC.Destinations {
		if strings.EqualFold(d.URI, "mailto:"+address) {
			published.Consent = d.Consent
		}
	}
	return published
}
