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

// NewSetup returns the shape of the records to publish for a domain, whose reports
// go to that address; "" is none.
func NewSetup(domain dmarcd.Domain, address string, records []dmarcd.SetupRecord) Setup {
	setup := Setup{
		Domain: domain.Name, ReportAddress: optionalText(address), CheckedAt: optionalTime(domain.CheckedAt),
		Records: make([]SetupRecord, len(records)),
	}
	for i, r := range records {
		setup.Records[i] = SetupRecord{Purpose: string(r.Purpose), Name: r.Name, Type: "TXT", Value: r.Value, Why: r.Why}
		if r.Known {
			setup.Records[i].Seen = &records[i].Seen
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
