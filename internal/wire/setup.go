package wire

import "github.com/dmarcd/dmarcd"

// Setup is what the owner of a domain has to publish.
type Setup struct {
	Domain        string        `json:"domain"`
	ReportAddress *string       `json:"report_address"` // null where the service has no report domain
	CheckedAt     *string       `json:"checked_at"`     // null before the first check
	Records       []SetupRecord `json:"records"`
}

// SetupRecord is a DNS record to publish.
type SetupRecord struct {
	Purpose string `json:"purpose"` // dmarc, report_authorization or tls_rpt
	Name    string `json:"name"`
	Type    string `json:"type"`
	Value   string `json:"value"`
	Seen    *bool  `json:"seen"` // null if unknown
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
