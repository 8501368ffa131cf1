package service

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/phrase"
)

// HitKind is the type of a search result.
type HitKind string

// The kinds of hits, in the order in which they are listed.
const (
	HitDomain  HitKind = "domain"
	HitSender  HitKind = "sender"
	HitAddress HitKind = "address"
	// HitSelector is a DKIM key, such as s1._domainkey.example.com.
	HitSelector HitKind = "selector"
	HitReport   HitKind = "report"
)

// Hit is something that a search found.
type Hit struct {
	Kind HitKind
	// Key is the name of a domain, the key of a sender, an address, a DKIM key or the id of a report.
	Key string
	// Title and Detail are for people; Detail may be "".
	Title, Detail string
}

const (
	// maxSearch is how many characters a search may have.
	maxSearch = 200
	// SearchDays is how many days back a search finds mail and reports.
	SearchDays = 90
	// maxSearchedNames is how many senders, addresses and DKIM keys are searched, those with the most
	// messages: the list of each is cached as one answer, whatever is typed.
	maxSearchedNames = 5000
)

// Search finds domains and senders by a part of the name or key, addresses by the beginning or by a
// network such as 192.0.2.0/24, DKIM keys and ids of reports by a part, and reports by a part of the
// reporter's name: up to limit of each kind, of the last SearchDays. A tag does not narrow it.
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
	for _, find := range []func(ctx context.Context, text string, limit int) ([]Hit, error){t.searchDomains, t.searchMail, t.searchReports} {
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
	found, err := t.team.Postures(ctx, PostureFilter{Search: text, Limit: limit})
	for _, d := range found {
		hits = append(hits, Hit{Kind: HitDomain, Key: d.Name, Title: d.Name})
	}
	return hits, err
}

// searchMail finds senders, addresses and DKIM keys.
func (t *Team) searchMail(ctx context.Context, text string, limit int) (hits []Hit, err error) {
	to := dmarcd.DayOf(t.service.options.Now())
	from := to - SearchDays
	mail, err := t.service.options.Insight.Read(ctx, t.team, "", dmarcd.Days{From: &from, To: &to})
	if err != nil {
		return nil, err
	}
	defer mail.Close()
	if err := mail.LoadDomains(ctx); err != nil {
		return nil, err
	}
	add := func(kind HitKind, group insight.Group, matches func(insight.Row) bool) error {
		found, err := mail.List(ctx, insight.Query{Group: group, Limit: maxSearchedNames})
		before := len(hits)
		for _, row := range found.Rows {
			if !row.Other && len(hits)-before < limit && matches(row) {
				hits = append(hits, Hit{Kind: kind, Key: row.Key, Title: row.Name, Detail: row.Detail})
			}
		}
		return err
	}
	if matches := addressMatch(text); matches != nil {
		return hits, add(HitAddress, insight.GroupAddress, func(row insight.Row) bool { return matches(row.Key) })
	}
	part := strings.ToLower(text)
	contains := func(texts ...string) bool {
		return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(strings.ToLower(text), part) })
	}
	if err := add(HitSender, insight.GroupSender, func(row insight.Row) bool { return contains(row.Name, row.Key, row.Detail) }); err != nil {
		return nil, err
	}
	return hits, add(HitSelector, insight.GroupSelector, func(row insight.Row) bool { return contains(row.Key) })
}

// addressMatch returns whether an address begins with a text or is in a network; nil if the text is
// neither.
func addressMatch(text string) func(address string) bool {
	text = strings.ToLower(text)
	if network, err := netip.ParsePrefix(text); err == nil {
		network = network.Masked()
		return func(address string) bool {
			addr, err := netip.ParseAddr(address)
			return err == nil && network.Contains(addr)
		}
	}
	if addr, err := netip.ParseAddr(text); err == nil {
		text = addr.Unmap().String()
		// 192.0.2.1 is also the beginning of 192.0.2.10.
		return func(address string) bool { return strings.HasPrefix(address, text) }
	}
	digits, colon := strings.Trim(text, "0123456789.") == "", strings.Contains(text, ":") && strings.Trim(text, "0123456789abcdef:") == ""
	if !digits && !colon || digits && !strings.Contains(text, ".") {
		return nil
	}
	return func(address string) bool { return strings.HasPrefix(address, text) }
}

func (t *Team) searchReports(ctx context.Context, text string, limit int) (hits []Hit, err error) {
	today := dmarcd.DayOf(t.service.options.Now())
	from := today - SearchDays
	days := dmarcd.Days{From: &from, To: &today}
	defer t.team.ReadTurn(ctx)()
	reports, err := t.team.Reports(ctx, ReportFilter{ExternalID: text}, 0, limit)
	for _, filter := range []ReportFilter{{ExternalIDPart: text, Days: days}, {OrganizationPart: text, Days: days}} {
		if err == nil && len(reports) == 0 {
			reports, err = t.team.Reports(ctx, filter, 0, limit)
		}
	}
	if id, bad := dmarcd.ParseReportID(text); bad == nil && err == nil && len(reports) == 0 {
		reports, err = t.oneReport(ctx, id)
	}
	for _, r := range reports {
		hits = append(hits, Hit{
			Kind: HitReport, Key: r.ID.String(), Title: r.Organization + " on " + r.Domain, Detail: string(r.Kind) + ", " + phrase.Day(dmarcd.DayOf(r.Begin)) + ", " + r.ExternalID,
		})
	}
	return hits, err
}

// oneReport returns the report with an id as a list, which is empty if it does not exist.
func (t *Team) oneReport(ctx context.Context, id dmarcd.ReportID) ([]dmarcd.Report, error) {
	report, err := t.team.Report(ctx, id)
	if errors.Is(err, dmarcd.ErrNotFound) {
		return nil, nil
	}
	return []dmarcd.Report{report}, err
}
