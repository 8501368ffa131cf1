// Package wire holds the JSON shapes of the interface and makes them from the
// nouns of package dmarcd. The API and the command line share them, so that
// both say the same.
package wire

import (
	"time"

	"github.com/dmarcd/dmarcd"
)

// timeLayout is RFC 3339 with the offset of UTC written +00:00, never Z.
const timeLayout = "2006-01-02T15:04:05-07:00"

// Time writes a moment as the interface does.
func Time(t time.Time) string { return t.UTC().Format(timeLayout) }

// optionalTime is Time, or nil for the zero time.
func optionalTime(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	return new(Time(t))
}

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

// OperatorDomain is what an operator sees of a domain: the record, and where
// its reports go.
type OperatorDomain struct {
	Domain
	ReportAddress *string `json:"report_address"` // null without a report domain
	CheckedAt     *string `json:"checked_at"`
}

// NewOperatorDomain returns the shape of a domain for an operator.
func NewOperatorDomain(d dmarcd.Domain, reportDomain string) OperatorDomain {
	shape := OperatorDomain{Domain: NewDomain(d), CheckedAt: optionalTime(d.CheckedAt)}
	if address := d.ReportAddress(reportDomain); address != "" {
		shape.ReportAddress = &address
	}
	return shape
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

// Team is a team in an operator's list.
type Team struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	API       bool   `json:"api"`
	CreatedAt string `json:"created_at"`
}

// NewTeam returns the shape of a team.
func NewTeam(t dmarcd.Team) Team {
	return Team{ID: t.ID.String(), Name: t.Name, API: t.API, CreatedAt: Time(t.CreatedAt)}
}

// Token is a token in an operator's list.
type Token struct {
	ID        string  `json:"id"`
	Name      string  `json:"name"`
	Scope     string  `json:"scope"`
	CreatedAt string  `json:"created_at"`
	ExpiresAt *string `json:"expires_at"`
	UsedAt    *string `json:"used_at"`
	RevokedAt *string `json:"revoked_at"`
}

// NewToken returns the shape of a token.
func NewToken(t dmarcd.Token) Token {
	return Token{
		ID: t.ID.String(), Name: t.Name, Scope: string(t.Scope), CreatedAt: Time(t.CreatedAt),
		ExpiresAt: optionalTime(t.ExpiresAt), UsedAt: optionalTime(t.UsedAt), RevokedAt: optionalTime(t.RevokedAt),
	}
}
