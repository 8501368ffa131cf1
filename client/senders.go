package client

import (
	"context"
	"iter"
	"net/http"
)

// PostureFilter selects and sorts domains by how well they are protected.
type PostureFilter struct {
	Text     string `query:"q"`      // a part of the name
	Policy   string `query:"policy"` // none, quarantine, reject, missing or unknown
	Stage    string `query:"stage"`  // none, monitoring, partial, enforced, parked or unknown
	Grade    string `query:"grade"`  // A+ to F, or unknown
	Tag      string `query:"tag"`
	Sort     string `query:"sort"` // name, grade, policy, stage, messages or passing; descending after -
	PageSize int    `query:"limit"`
}

// ListDomainPostures lists domains with stage, grade, policy, counts and next action.
func (c *Client) ListDomainPostures(ctx context.Context, filter PostureFilter) iter.Seq2[DomainPosture, error] {
	return list[DomainPosture](ctx, c, filter, "insights", "domains")
}

// SenderFilter selects senders, and what they are grouped by.
type SenderFilter struct {
	Period
	Domain   string `query:"domain"`
	Tag      string `query:"tag"`
	By       string `query:"by"` // sender, country, address, selector, envelope_from, header_from or reporter
	PageSize int    `query:"limit"`
}

// ListSenders lists who sends mail as the domains, the largest first.
func (c *Client) ListSenders(ctx context.Context, filter SenderFilter) iter.Seq2[Sender, error] {
	return list[Sender](ctx, c, filter, "insights", "senders")
}

// DailyFilter selects days. By is domain for the counts of each domain.
type DailyFilter struct {
	Period
	Domain   string `query:"domain"`
	Tag      string `query:"tag"`
	By       string `query:"by"`
	Classes  bool   `query:"classes"`
	PageSize int    `query:"limit"`
}

// ListDaily lists the counts of messages by day.
func (c *Client) ListDaily(ctx context.Context, filter DailyFilter) iter.Seq2[Daily, error] {
	return list[Daily](ctx, c, filter, "insights", "daily")
}

// PolicyChange is a policy to simulate. Empty tags are as published.
type PolicyChange struct {
	Period
	P     string `query:"p"`
	SP    string `query:"sp"`
	NP    string `query:"np"`
	ADKIM string `query:"adkim"`
	ASPF  string `query:"aspf"`
}

// SimulatePolicy returns what a policy would have done with the mail of a domain.
func (c *Client) SimulatePolicy(ctx context.Context, domain string, change PolicyChange) (Simulation, error) {
	query := values(change)
	query.Set("domain", domain)
	return do[Simulation](ctx, c, call{method: http.MethodGet, path: []string{"insights", "simulate"}, query: query})
}

// AdviceFilter selects the domains to advise on.
type AdviceFilter struct {
	Domain   string `query:"domain"`
	Tag      string `query:"tag"`
	PageSize int    `query:"limit"`
}

// ListAdvice lists the next action and the steps to reject of each domain, the most urgent first.
func (c *Client) ListAdvice(ctx context.Context, filter AdviceFilter) iter.Seq2[Advice, error] {
	return list[Advice](ctx, c, filter, "insights", "advice")
}

// GetAdviceFile returns the record of the next action for a domain as a file; see GetSetupFile.
func (c *Client) GetAdviceFile(ctx context.Context, domain, format, zone string) (string, error) {
	return c.file(ctx, recordFile{domain, format, zone}, "insights", "advice")
}

// AnswerQuestion answers the question of an advice whether a sender sends for the domain: yours or
// not_yours.
func (c *Client) AnswerQuestion(ctx context.Context, domain, key, answer string) (SenderClass, error) {
	return put[SenderClass](ctx, c, map[string]string{"answer": answer}, "domains", domain, "questions", key)
}

// SetSenderClass overrides the class of a sender for a domain. Nil removes the override.
func (c *Client) SetSenderClass(ctx context.Context, domain, key string, class *string) (SenderClass, error) {
	return put[SenderClass](ctx, c, map[string]*string{"class": class}, "domains", domain, "senders", key)
}

// ListTeamSenders lists the senders that the team added to the catalogue, or corrected.
func (c *Client) ListTeamSenders(ctx context.Context) iter.Seq2[TeamSender, error] {
	return list[TeamSender](ctx, c, nil, "senders")
}

// SetTeamSender adds a sender under its key, or replaces it.
func (c *Client) SetTeamSender(ctx context.Context, sender TeamSender) (TeamSender, error) {
	body := map[string]any{
		"name": sender.Name, "class": sender.Class, "networks": notNull(sender.Networks), "hosts": notNull(sender.Hosts), "domains": notNull(sender.Domains),
	}
	return put[TeamSender](ctx, c, body, "senders", sender.Key)
}

// RemoveTeamSender removes a sender of the team, or its correction.
func (c *Client) RemoveTeamSender(ctx context.Context, key string) error {
	return c.remove(ctx, "senders", key)
}

func notNull(texts []string) []string { return append([]string{}, texts...) }
