package service

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/notify/mail"
	"github.com/dmarcd/dmarcd/internal/notify/webhook"
	"github.com/dmarcd/dmarcd/internal/phrase"
)

// Limits of the lists in a digest.
const (
	digestDomains = 10
	digestActions = 3
	digestAlerts  = 5
	// recentAlerts is how many of the newest alerts are searched for alerts of the period.
	recentAlerts = 200
)

// Digest has the figures of the overview for a period that has ended.
type Digest struct {
	From, To dmarcd.Day
	Series
	// Domains are the domains with the most messages.
	Domains []DomainRow
	// Alerts are the newest unacknowledged alerts of the period, Actions the most urgent advice.
	Alerts  []dmarcd.Alert
	Actions []dmarcd.Advice
}

// Digest returns the figures of a period.
func (t *Team) Digest(ctx context.Context, from, to dmarcd.Day) (Digest, error) {
	d := Digest{From: from, To: to}
	var err error
	if d.Series, err = t.Series(ctx, from, to); err != nil {
		return Digest{}, err
	}
	d.Domains, err = t.team.BusiestDomains(ctx, dmarcd.Days{From: &from, To: &to}, digestDomains)
	if err != nil {
		return Digest{}, err
	}
	alerts, err := t.Alerts(ctx, dmarcd.AlertFilter{Open: true}, 0, recentAlerts)
	if err != nil {
		return Digest{}, err
	}
	for _, a := range alerts {
		if day := dmarcd.DayOf(a.Event.At); a.Level != dmarcd.LevelInfo && day >= from && day <= to && len(d.Alerts) < digestAlerts {
			d.Alerts = append(d.Alerts, a)
		}
	}
	advice, err := t.TopAdvice(ctx)
	for _, a := range advice {
		if a.Next() != nil && len(d.Actions) < digestActions {
			d.Actions = append(d.Actions, a)
		}
	}
	return d, err
}

// QueueDigests writes the events of digests that are due, for the teams that have a webhook
// for them. It is a chore, and reports false: it does all that is due. Each digest has one
// event, in the transaction that marks it as written, so that replicas and restarts do not
// repeat it.
func (s *Service) QueueDigests(ctx context.Context) (more bool, err error) {
	var errs []error
	for _, kind := range dmarcd.Digests() {
		last, due := kind.LastDigest(s.options.Now())
		teams, err := s.store.DigestTeams(ctx, kind, last, due)
		errs = append(errs, err)
		for _, id := range teams {
			if err := s.queueDigest(ctx, id, dmarcd.Event{Kind: kind, EventData: dmarcd.EventData{Day: last}}); err != nil {
				errs = append(errs, fmt.Errorf("digest of team %s: %w", id, err))
			}
		}
	}
	return false, errors.Join(errs...)
}

func (s *Service) queueDigest(ctx context.Context, team dmarcd.TeamID, e dmarcd.Event) error {
	from, to := e.DigestPeriod()
	series, err := s.asViewer(team).Series(ctx, from, to)
	if err != nil {
		return err
	}
	detection := dmarcd.Detection{Kind: e.Kind, Day: e.Day, Measured: measured(series)}
	err = s.store.Team(team).SaveDetections(ctx, []dmarcd.Detection{detection}, nil)
	if errors.Is(err, dmarcd.ErrConflict) { // another replica was faster
		return nil
	}
	return err
}

// asViewer returns the use cases of a team for its own messages.
func (s *Service) asViewer(team dmarcd.TeamID) *Team {
	return s.Team(team, Actor{role: dmarcd.RoleViewer})
}

// measured returns the figures of a digest's event.
func measured(s Series) dmarcd.Measured {
	rate := func(c dmarcd.Counts) float64 { return float64(c.Compliant) / float64(max(c.Total(), 1)) }
	return dmarcd.Measured{Messages: s.Counts.Total(), Observed: rate(s.Counts), Usual: rate(s.Before)}
}

// DigestContent returns the content of the message with a digest: the figures as they are now,
// which late reports may have changed since its event.
func (s *Service) DigestContent(ctx context.Context, team dmarcd.TeamID, e dmarcd.Event) (mail.Content, error) {
	if e.Kind == dmarcd.DigestManagers {
		return s.managersContent(ctx, team, e)
	}
	from, to := e.DigestPeriod()
	d, err := s.asViewer(team).Digest(ctx, from, to)
	if err != nil {
		return mail.Content{}, err
	}
	named, err := s.store.TeamByID(ctx, team)
	if err != nil {
		return mail.Content{}, err
	}
	page, err := s.digestPage("/app/", from, to)
	if err != nil {
		return mail.Content{}, err
	}
	e.Measured = measured(d.Series)
	content := mail.Content{
		Subject: named.Name + ": " + phrase.Event(e), Title: phrase.Event(e), Paragraphs: d.paragraphs(), Figures: d.figures(), Table: d.table(), Details: d.details(),
		Action: mail.Link{Text: "Open the overview", URL: page},
	}
	bars := make([]mail.Bar, len(d.Days))
	for i, day := range d.Days {
		bars[i] = mail.Bar{Pass: day.Compliant, Fail: day.NonCompliant}
	}
	if len(bars) > 1 {
		content.Chart, err = mail.NewChart(bars, fmt.Sprintf("of the team %s from %s to %s", named.Name, from, to))
	}
	return content, err
}

// digestPage returns the URL of a page about a period.
func (s *Service) digestPage(path string, from, to dmarcd.Day) (string, error) {
	base, err := url.Parse(s.options.BaseURL)
	if err != nil {
		return "", err
	}
	page := url.URL{Scheme: base.Scheme, Host: base.Host, Path: path, RawQuery: url.Values{"from": {from.String()}, "to": {to.String()}}.Encode()}
	return page.String(), nil
}

// figures returns the figures of the overview, with the same names.
func (d Digest) figures() []mail.Figure {
	c := d.Counts
	return []mail.Figure{
		{Value: phrase.Number(c.Total()), Label: "Messages"},
		{Value: phrase.Percent(c.Compliant, c.Total()), Label: "Passes DMARC"},
		{Value: phrase.Number(c.NonCompliant), Label: "Fails DMARC"},
		{Value: phrase.Number(c.Quarantined + c.Rejected), Label: "Quarantined or rejected"},
	}
}

func (d Digest) paragraphs() []string {
	all := []string{"Previous period: no mail was reported."}
	if b := d.Before; b.Total() > 0 {
		all[0] = fmt.Sprintf("Previous period: %s, of which %s pass DMARC.", phrase.Count(b.Total(), "message"), phrase.Percent(b.Compliant, b.Total()))
	}
	if d.Parked > 0 {
		all = append(all, fmt.Sprintf("Not counted: %s that spoof parked domains. The policy of these domains asks receivers to reject them.", phrase.Count(d.Parked, "message")))
	}
	return all
}

func (d Digest) table() *mail.Table {
	rows := slices.DeleteFunc(slices.Clone(d.Domains), func(r DomainRow) bool { return r.Counts.Total() == 0 })
	if len(rows) == 0 {
		return nil
	}
	t := &mail.Table{Head: []string{"Domain", "Messages", "Passes DMARC"}}
	for _, r := range rows {
		t.Rows = append(t.Rows, []string{r.Name, phrase.Number(r.Counts.Total()), phrase.Percent(r.Counts.Compliant, r.Counts.Total())})
	}
	return t
}

func (d Digest) details() []phrase.Detail {
	var all []phrase.Detail
	for _, a := range d.Alerts {
		all = append(all, phrase.Detail{Name: "Alert of " + phrase.Day(dmarcd.DayOf(a.Event.At)), Value: phrase.Event(a.Event)})
	}
	for _, a := range d.Actions {
		all = append(all, phrase.Detail{Name: "What to do next for " + a.Domain, Value: a.Conclusion + " " + a.Next().Title + ". " + a.Next().Reason})
	}
	return all
}

// OwnDigest is which digest of the team the actor gets by mail.
type OwnDigest struct {
	// Kind is "" for none.
	Kind dmarcd.EventKind
	// Address is the address of the actor, "" if the actor is not a user or no relay is configured.
	Address string
}

// OwnDigest returns which digest the actor gets.
func (t *Team) OwnDigest(ctx context.Context) (OwnDigest, error) {
	if err := t.may(dmarcd.RightSee); err != nil {
		return OwnDigest{}, err
	}
	if t.actor.entry.User == 0 || t.service.options.Mail == nil {
		return OwnDigest{}, nil
	}
	own := OwnDigest{Address: t.actor.entry.Actor}
	found, err := t.ownDigest(ctx)
	if err == nil && found != nil && found.Enabled() {
		own.Kind = found.Kinds[0]
	}
	return own, err
}

// ownDigest returns the webhook that sends digests alone to the address of the actor, nil if
// there is none.
func (t *Team) ownDigest(ctx context.Context) (*dmarcd.Webhook, error) {
	all, err := t.team.Webhooks(ctx)
	at := slices.IndexFunc(all, func(w dmarcd.Webhook) bool { return w.IsDigest() && w.Address() == t.actor.entry.Actor })
	if at < 0 {
		return nil, err
	}
	return &all[at], err
}

// SetOwnDigest has a digest of the team sent to the address of the actor, who must be a member;
// "" ends it. It is a webhook of the format email, which owners can change like all others.
func (t *Team) SetOwnDigest(ctx context.Context, kind dmarcd.EventKind) error {
	if err := t.may(dmarcd.RightSee); err != nil {
		return err
	}
	members, err := t.team.Members(ctx)
	if err != nil {
		return err
	}
	isMember := slices.ContainsFunc(members, func(m dmarcd.Member) bool { return m.User.ID == t.actor.entry.User })
	address := t.actor.entry.Actor
	wanted := dmarcd.Webhook{URL: "mailto:" + address, Format: dmarcd.FormatEmail, Kinds: []dmarcd.EventKind{kind}}
	switch {
	case kind != "" && !kind.IsDigest():
		return &dmarcd.InvalidError{Field: "digest", Message: "A digest is daily, weekly or monthly, or the report for managers."}
	case !isMember:
		return &dmarcd.InvalidError{Field: "digest", Message: "Digests are for members of the team. Sign in as one."}
	}
	if err := t.checkEndpoint(wanted); err != nil {
		return err
	}
	found, err := t.ownDigest(ctx)
	if err != nil {
		return err
	}
	entry := t.actor.to("digest.set", address, string(kind))
	switch {
	case found == nil && kind == "":
		return nil
	case kind == "":
		return t.team.RemoveWebhook(ctx, found.ID, entry)
	case found != nil:
		_, err = t.team.UpdateWebhook(ctx, found.ID, func(w *dmarcd.Webhook) error {
			w.Kinds, w.DisabledAt = wanted.Kinds, time.Time{}
			return nil
		}, entry)
		return err
	}
	seal := func(w dmarcd.Webhook) ([]byte, error) {
		return t.service.options.Secrets.Seal(webhook.NewSecret(), w.SecretContext())
	}
	_, err = t.team.AddWebhook(ctx, wanted, seal, entry)
	return err
}
