package wire

import "github.com/dmarcd/dmarcd"

// DomainPosture is a domain in the list of domains with their stage and next action. What was not
// computed or found yet is null.
type DomainPosture struct {
	Domain          string         `json:"domain"`
	Stage           *string        `json:"stage"`
	Grade           *string        `json:"grade"`
	Policy          *string        `json:"policy"`
	EffectivePolicy *string        `json:"effective_policy"`
	CheckedAt       *string        `json:"checked_at"`
	ReportAddress   *string        `json:"report_address"`
	Tags            []string       `json:"tags"`
	Messages        *int64         `json:"messages"`
	Yours           *int64         `json:"yours"`
	YoursPassing    *int64         `json:"yours_passing"`
	NextAction      *PostureAction `json:"next_action"`
	ComputedAt      *string        `json:"computed_at"`
}

// PostureAction is the short form of an Action.
type PostureAction struct {
	ID    string `json:"id"`
	Title string `json:"title"`
}

// NewDomainPosture returns the shape of a domain with its posture.
func NewDomainPosture(d dmarcd.Domain, p dmarcd.Posture, tags []string, reportDomain string) DomainPosture {
	shape := DomainPosture{
		Domain: d.Name, Stage: optionalText(p.Stage), Grade: optionalText(d.Grade),
		Policy: optionalText(d.Policy), EffectivePolicy: optionalText(d.EffectivePolicy()),
		CheckedAt: optionalTime(d.CheckedAt), ReportAddress: optionalText(d.ReportAddress(reportDomain)),
		Tags: notNull(tags), ComputedAt: optionalTime(p.ComputedAt),
	}
	if p.Stage != "" {
		shape.Messages, shape.Yours, shape.YoursPassing = &p.Messages, &p.Yours, &p.YoursPassing
	}
	if p.Action != "" {
		shape.NextAction = &PostureAction{ID: string(p.Action), Title: p.Title}
	}
	return shape
}

// DomainResults are what became of the names of a request, in its order.
type DomainResults struct {
	Items []DomainResult `json:"items"`
}

// DomainResult is added, exists, deleted, not_found or invalid; a message explains the last one.
type DomainResult struct {
	Domain  string  `json:"domain"`
	Result  string  `json:"result"`
	Message *string `json:"message"`
}

// NewDomainResult returns the shape of a result.
func NewDomainResult(domain, result, message string) DomainResult {
	return DomainResult{Domain: domain, Result: result, Message: optionalText(message)}
}
