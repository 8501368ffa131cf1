package wire

import (
	"github.com/dmarcd/dmarcd"
)

// Domain is a domain record with all its seven fields.
type Domain struct {
	Domain             string  `json:"domain"`
	Active             bool    `json:"active"`
	DMARCRecord        string  `json:"dmarc_record"`
	DMARCPolicy        string  `json:"dmarc_policy"`
	DomainUsagePurpose *string `json:"domain_usage_purpose"`
	CreatedAt          string  `json:"created_at"`
	UpdatedAt          string  `json:"updated_at"`
}

// NewDomain returns the shape of a domain.
func NewDomain(d dmarcd.Domain) Domain {
	return Domain{
		Domain:             d.Name,
		Active:             d.Active,
		DMARCRecord:        d.Record,
		DMARCPolicy:        d.Policy,
		DomainUsagePurpose: optionalText(d.Purpose),
		CreatedAt:          Time(d.CreatedAt),
		UpdatedAt:          Time(d.UpdatedAt),
	}
}

// Summary is a report summary.
type Summary struct {
	Total        int64 `json:"total"`
	Compliant    int64 `json:"compliant"`
	NonCompliant int64 `json:"non_compliant"`
}

// NewSummary returns the shape of a summary. No number exceeds what is exact in JSON.
func NewSummary(s dmarcd.Summary) Summary {
	s.Compliant, s.NonCompliant = min(s.Compliant, dmarcd.MaxCount), min(s.NonCompliant, dmarcd.MaxCount)
	return Summary{Total: s.Total(), Compliant: s.Compliant, NonCompliant: s.NonCompliant}
}

// Setup is what the owner of a domain has to publish.
type Setup struct {
	Domain        string        `json:"domain"`
	ReportAddress *string       `json:"report_address"` // null where the service has no report domain
	CheckedAt     *string       `json:"checked_at"`     // null before the first check
	Proven        *bool         `json:"proven"`         // null if no proof is required
	Records       []SetupRecord `json:"records"`
}

// SetupRecord is a DNS record to publish.
type SetupRecord struct {
	Purpose string `json:"purpose"` // dmarc, report_authorization, tls_rpt or challenge
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
	if s.Domain.Proof != "" {
		setup.Proven = new(s.Domain.Proof != dmarcd.ProofMissing)
	}
	for i, r := range s.Records {
		setup.Records[i] = SetupRecord{Purpose: string(r.Purpose), Name: r.Name, Type: "TXT", Value: r.Value, Why: r.Why}
		if r.Known {
			setup.Records[i].Seen = &s.Records[i].Seen
		}
	}
	return setup
}

// SelfTest is the result of a synthetic report.
type SelfTest struct {
	Domain string          `json:"domain"`
	Passed bool            `json:"passed"`
	Stages []SelfTestStage `json:"stages"`
}

// SelfTestStage is a part of the path of a report.
type SelfTestStage struct {
	Name       string `json:"name"`
	Passed     bool   `json:"passed"`
	Detail     string `json:"detail"`
	DurationMS int64  `json:"duration_ms"`
}

// NewSelfTest returns the shape of a self-test.
func NewSelfTest(t dmarcd.SelfTest) SelfTest {
	shape := SelfTest{Domain: t.Domain, Passed: t.Passed(), Stages: make([]SelfTestStage, len(t.Stages))}
	for i, s := range t.Stages {
		shape.Stages[i] = SelfTestStage{Name: s.Name, Passed: s.Passed, Detail: s.Detail, DurationMS: s.Took.Milliseconds()}
	}
	return shape
}

// Tags are the tags of a domain.
type Tags struct {
	Tags []string `json:"tags"`
}

// NewTags returns the shape of tags.
func NewTags(tags []string) Tags { return Tags{append([]string{}, tags...)} }

// Tag is a tag and the number of domains that have it.
type Tag struct {
	Tag     string `json:"tag"`
	Domains int    `json:"domains"`
}

// NewTag returns the shape of a tag.
func NewTag(t dmarcd.TagCount) Tag { return Tag(t) }

// Hit is something that a search found.
type Hit struct {
	// Kind is domain, sender, address or report; Key identifies it in the API.
	Kind   string  `json:"kind"`
	Key    string  `json:"key"`
	Title  string  `json:"title"`
	Detail *string `json:"detail"`
}

// NewHit returns the shape of a hit.
func NewHit(kind, key, title, detail string) Hit {
	return Hit{Kind: kind, Key: key, Title: title, Detail: optionalText(detail)}
}
