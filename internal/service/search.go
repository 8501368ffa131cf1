package service

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"unicode/utf8"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/insight"
)

// HitKind is what a search can find.
type HitKind string

// The kinds of hits, in the order in which they are listed.
const (
	HitDomain  HitKind = "domain"
	HitSender  HitKind = "sender"
	HitAddress HitKind = "address"
	HitReport  HitKind = "report"
)

// Hit is something that a search found.
type Hit struct {
	Kind HitKind
	// Key is the name of a domain, the key of a sender, an address or the id of a report.
	Key string
	// Title and Detail are for people; Detail may be "".
	Title, Detail string
}

const (
	// maxSearch is how many characters a search may have.
	maxSearch = 200
	// reportSearchDays is how many days back reports are searched.
	reportSearchDays = 90
)

// Search finds domains by a part of the name, senders of the last 30 days by a part of the
// name or key, an address among them, and reports of the last 90 days by their id or a part
// of the reporter's name: up to limit of each kind. A tag does not narrow it.
func (t *Team) Search(ctx context.Context, text string, limit int) ([]Hit, error) {
	if err := t.may(dmarcd.RightSee); err != nil {
		return nil, err
	}
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		return nil, nil
	case utf8.RuneCountInString(text) > maxSearch || !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return nil, &dmarcd.InvalidError{Field: "q", Message: "Search for at most 200 characters."}
	}
	t = t.Tagged("")
	var hits []Hit
	for _, find := range []func(ctx context.Context, text string, limit int) ([]Hit, error){t.searchDomains, t.searchSenders, t.searchReports} {
		found, err := find(ctx, text, limit)
		if err != nil {
			return nil, err
		}
		hits = append(hits, found...)
	}
	return hits, nil
}

func (t *Team) searchDomains(ctx context.Context, text string, limit int) (hits []Hit, err error) {
	// What is pasted may be a URL, an email address or a name in Unicode.
	if names, unreadable := dmarcd.NamesIn(text); len(names) == 1 && len(unreadable) == 0 {
		text = names[0]
	}
	defer t.team.ReadTurn(ctx)()
	found, err := t.team.DomainRows(ctx, DomainFilter{Search: text, Limit: limit})
	for _, d := range found.Rows {
		hits = append(hits, Hit{Kind: HitDomain, Key: d.Name, Title: d.Name})
	}
	return hits, err
}

func (t *Team) searchSenders(ctx context.Context, text string, limit int) (hits []Hit, err error) {
	kind, query := HitSender, insight.Query{Group: insight.GroupNetwork, Search: text, Limit: limit}
	if address, err := netip.ParseAddr(text); err == nil {
		kind, query = HitAddress, insight.Query{Group: insight.GroupAddress, Key: address.String(), Limit: limit}
	}
	from, to := t.period(dmarcd.Days{})
	mail, err := t.service.options.Insight.Read(ctx, t.team, "", dmarcd.Days{From: &from, To: &to})
	if err != nil {
		return nil, err
	}
	defer mail.Close()
	if err := mail.LoadDomains(ctx); err != nil {
		return nil, err
	}
	found, err := mail.Sources(ctx, query)
	for _, row := range found.Sources {
		hits = append(hits, Hit{Kind: kind, Key: row.Key, Title: row.Name, Detail: row.Detail})
	}
	return hits, err
}

func (t *Team) searchReports(ctx context.Context, text string, limit int) (hits []Hit, err error) {
	today := dmarcd.DayOf(t.service.options.Now())
	from := today - reportSearchDays
	defer t.team.ReadTurn(ctx)()
	reports, err := t.team.Reports(ctx, ReportFilter{ExternalID: text}, 0, limit)
	if err == nil && len(reports) == 0 {
		reports, err = t.team.Reports(ctx, ReportFilter{OrganizationPart: text, Days: dmarcd.Days{From: &from, To: &today}}, 0, limit)
	}
	if id, bad := dmarcd.ParseReportID(text); bad == nil && err == nil && len(reports) == 0 {
		reports, err = t.oneReport(ctx, id)
	}
	for _, r := range reports {
		hits = append(hits, Hit{
			Kind: HitReport, Key: r.ID.String(), Title: r.Organization + " on " + r.Domain, Detail: string(r.Kind) + ", " + dmarcd.DayOf(r.Begin).String(),
		})
	}
	return hits, err
}

// oneReport returns the report with an id, none if there is none.
func (t *Team) oneReport(ctx context.Context, id dmarcd.ReportID) ([]dmarcd.Report, error) {
	report, err := t.team.Report(ctx, id)
	if errors.Is(err, dmarcd.ErrNotFound) {
		return nil, nil
	}
	return []dmarcd.Report{report}, err
}
