package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/internal/dnscheck"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/insight"
)

// adviceDays is the default period of advice and simulations.
const adviceDays = 30

// Mail reads the mail of a domain, or of all domains if name is "", in some days. Close it
// after use.
func (t *Team) Mail(ctx context.Context, name string, days dmarcd.Days) (*insight.Mail, error) {
	if err := t.may(dmarcd.RightSee); err != nil {
		return nil, err
	}
	mail, err := t.service.options.Insight.Read(ctx, t.team, name, days)
	if err != nil {
		return nil, err
	}
	if err := t.setDomains(ctx, mail, name, days); err != nil {
		mail.Close()
		return nil, err
	}
	return mail, nil
}

// setDomains sets the facts of the domain of some mail, or of all domains: in brief, without causes,
// if they are many.
func (t *Team) setDomains(ctx context.Context, mail *insight.Mail, name string, days dmarcd.Days) error {
	about := make([]insight.Domain, 1)
	var err error
	if name == "" {
		about, err = t.aboutAll(ctx, days)
	} else {
		about[0], _, err = t.about(ctx, dmarcd.Domain{Name: name}, days)
	}
	if err == nil && len(about) == 0 {
		return mail.LoadDomains(ctx)
	}
	mail.SetDomains(about...)
	return err
}

// maxAbout limits the facts of several domains, in bytes.
const maxAbout = 4 << 20

// aboutAll returns the facts of all domains, none if they are too many or too large.
func (t *Team) aboutAll(ctx context.Context, days dmarcd.Days) (all []insight.Domain, err error) {
	domains, err := t.team.Domains(ctx, "", maxSingleReads+1)
	if err != nil || len(domains) > maxSingleReads {
		return nil, err
	}
	var size int64
	for _, domain := range domains {
		about, _, err := t.about(ctx, domain, days)
		if err != nil {
			return nil, err
		}
		if size += sizeOf(about); size > maxAbout {
			return nil, nil
		}
		all = append(all, about)
	}
	return all, nil
}

// maxPeriodChecks limits the checks that causes follow from.
const maxPeriodChecks = 20

// about returns the facts of a domain that do not come from mail of some days, and its latest
// check.
func (t *Team) about(ctx context.Context, domain dmarcd.Domain, days dmarcd.Days) (insight.Domain, facts.Check, error) {
	latest, err := t.team.LatestCheck(ctx, domain.Name)
	if errors.Is(err, dmarcd.ErrNotFound) {
		latest, err = facts.StoredCheck{}, nil
	}
	if err != nil {
		return insight.Domain{}, facts.Check{}, err
	}
	from, to := t.period(days)
	var checks []facts.StoredCheck
	if dmarcd.DayOf(latest.FirstAt) <= from {
		checks = append(checks, latest) // it was valid on all days
	} else if latest.Check.Facts != nil {
		if checks, err = t.team.Checks(ctx, domain.Name, Cursor{At: (to + 1).Time()}, maxPeriodChecks); err != nil {
			return insight.Domain{}, facts.Check{}, err
		}
	}
	classes, err := t.team.SenderClasses(ctx, domain.Name)
	about := insight.Domain{ID: domain.ID, Name: domain.Name, Facts: latest.Check.Facts, Check: latest.ID, Checks: checks, Classes: classes}
	return about, latest.Check, err
}

// SetSenderClass sets the class of a sender for a domain; "" clears it. An address or a network is
// then a sender of its own.
func (t *Team) SetSenderClass(ctx context.Context, name, sender string, class dmarcd.Class) error {
	domain, err := t.named(ctx, dmarcd.RightChange, name)
	if err == nil {
		sender, err = t.knownSender(ctx, sender)
	}
	if err != nil {
		return err
	}
	word := string(class)
	if class == "" {
		word = "automatic"
	} else if _, err := dmarcd.ParseSenderClass(word); err != nil {
		return err
	}
	return t.team.SetSenderClass(ctx, domain.Name, sender, class, t.actor.to("sender.class", domain.Name, sender+", "+word))
}

// knownSender returns the canonical form of the key of a sender, or an *dmarcd.InvalidError if no
// sender can have it.
func (t *Team) knownSender(ctx context.Context, key string) (string, error) {
	key, err := dmarcd.ParseSenderKey(key)
	if err != nil {
		return "", err
	}
	base := dmarcd.SenderBase(key)
	if _, isSystem := dmarcd.SystemNumber(base); isSystem || base == "" || base == "-" || t.service.options.Insight.Knows(base) {
		return key, nil
	}
	own, err := t.team.TeamSenders(ctx)
	if err != nil {
		return "", err
	}
	if !slices.ContainsFunc(own, func(s dmarcd.TeamSender) bool { return s.Key == base }) {
		return "", &dmarcd.InvalidError{Field: "key", Message: "There is no such sender. Use a key that the list of senders shows, an address or a network."}
	}
	return key, nil
}

// ErrQuestionClosed means that there is no such question, or that it is answered.
var ErrQuestionClosed = &dmarcd.InvalidError{Field: "key", Code: "question_closed", Message: "There is no open question about this sender. List the advice again."}

// Answer answers the question whether a sender sends on behalf of the owner of a domain, and
// returns the class that follows. It may be ErrQuestionClosed.
func (t *Team) Answer(ctx context.Context, name, sender string, yours bool) (dmarcd.Class, error) {
	if _, err := t.named(ctx, dmarcd.RightChange, name); err != nil {
		return "", err
	}
	simulation, err := t.Simulate(ctx, name, dmarcd.Days{}, PolicyChange{})
	if err != nil {
		return "", err
	}
	if !simulation.Asks(sender) {
		return "", ErrQuestionClosed
	}
	class := dmarcd.ClassSpoofing
	if yours {
		class = dmarcd.ClassYours
	}
	return class, t.SetSenderClass(ctx, name, sender, class)
}

// AcceptForwarding stores how many forwarded messages of a domain in 30 days may be affected by a
// stricter policy; 0 withdraws it.
func (t *Team) AcceptForwarding(ctx context.Context, name string, messages int64) error {
	domain, err := t.named(ctx, dmarcd.RightChange, name)
	if err != nil {
		return err
	}
	if messages < 0 || messages > dmarcd.MaxCount {
		return &dmarcd.InvalidError{Field: "accepted", Message: "The number of accepted messages must be a whole number of at least 1, or null."}
	}
	return t.team.AcceptForwarding(ctx, domain.Name, messages, t.actor.to("domain.forwarding", domain.Name, strconv.FormatInt(messages, 10)))
}

// PolicyChange is a hypothetical policy. Nil fields keep the current record.
type PolicyChange struct {
	P, SP, NP   *dmarc.Policy
	ADKIM, ASPF *dmarc.Mode
}

// Simulation is the effect of a policy on past mail.
type Simulation struct {
	Domain   string
	From, To dmarcd.Day
	Policy   insight.Policy
	// Record is the record to publish for the policy.
	Record string
	insight.Simulation
}

// Simulate applies a policy to the mail of some days, by default the last 30.
func (t *Team) Simulate(ctx context.Context, name string, days dmarcd.Days, change PolicyChange) (Simulation, error) {
	domain, err := t.named(ctx, dmarcd.RightSee, name)
	if err != nil {
		return Simulation{}, err
	}
	from, to := t.period(days)
	mail, err := t.service.options.Insight.Read(ctx, t.team, domain.Name, dmarcd.Days{From: &from, To: &to})
	if err != nil {
		return Simulation{}, err
	}
	defer mail.Close()
	situation, err := t.situation(ctx, domain, days)
	if err != nil {
		return Simulation{}, err
	}
	s := Simulation{Domain: domain.Name, From: from, To: to, Policy: situation.Current()}
	change.apply(&s.Policy)
	s.Record = s.Policy.In(situation.Base)
	results, err := mail.Simulate(ctx, insight.Trial{Domain: situation.Domain, Policy: s.Policy})
	if err != nil {
		return Simulation{}, err
	}
	s.Simulation = results[0]
	return s, nil
}

func (c PolicyChange) apply(p *insight.Policy) {
	set(&p.P, c.P)
	set(&p.SP, c.SP)
	set(&p.NP, c.NP)
	set(&p.ADKIM, c.ADKIM)
	set(&p.ASPF, c.ASPF)
}

// set assigns *from, unless from is nil.
func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

// period replaces open ends of days: 30 days, ending today if the end is open.
func (t *Team) period(days dmarcd.Days) (from, to dmarcd.Day) {
	to = dmarcd.DayOf(t.service.options.Now())
	if days.To != nil {
		to = *days.To
	}
	from = to - adviceDays + 1
	if days.From != nil {
		from = *days.From
	}
	return from, max(from, to)
}

// Advice returns the stage and next action of a domain, from its DNS and the mail of the last
// 30 days.
func (t *Team) Advice(ctx context.Context, name string) (dmarcd.Advice, error) {
	domain, err := t.named(ctx, dmarcd.RightSee, name)
	if err != nil {
		return dmarcd.Advice{}, err
	}
	all, err := t.advise(ctx, []dmarcd.Domain{domain}, 0)
	if err != nil {
		return dmarcd.Advice{}, err
	}
	return all[0], nil
}

// AllAdvice returns up to limit domains with their advice, most urgent first: domains without
// a usable policy, then monitoring ones, then the others; within these by failing messages. It
// skips the first after; more means that there are others.
func (t *Team) AllAdvice(ctx context.Context, after, limit int) (all []dmarcd.Advice, more bool, err error) {
	if err := t.may(dmarcd.RightSee); err != nil {
		return nil, false, err
	}
	from, to := t.period(dmarcd.Days{})
	domains, err := t.team.UrgentDomains(ctx, dmarcd.Days{From: &from, To: &to}, after, limit+1)
	if err != nil {
		return nil, false, err
	}
	if more = len(domains) > limit; more {
		domains = domains[:limit]
	}
	if len(domains) > 0 {
		t.service.advice.ask(t.team.ID(), t.service.options.Now())
		all, err = t.advise(ctx, domains, adviceAge)
	}
	return all, more, err
}

// computeAdvice returns the advice for the first domains, at least one: from the mail of that
// domain, or of all domains at once. Their checks have at most about situationBytes.
func (t *Team) computeAdvice(ctx context.Context, domains []dmarcd.Domain) ([]dmarcd.Advice, error) {
	from, to := t.period(dmarcd.Days{})
	name := ""
	if len(domains) == 1 {
		name = domains[0].Name
	}
	// First, since it waits for memory.
	mail, err := t.service.options.Insight.Read(ctx, t.team, name, dmarcd.Days{From: &from, To: &to})
	if err != nil {
		return nil, err
	}
	defer mail.Close()
	mailboxes, err := t.team.Mailboxes(ctx)
	if err != nil {
		return nil, err
	}
	var situations []insight.Situation
	for size, i := int64(0), 0; i < len(domains) && size < situationBytes; i++ {
		situation, err := t.situation(ctx, domains[i], dmarcd.Days{})
		if err != nil {
			return nil, err
		}
		situation.Mailbox = len(mailboxes) > 0 || domains[i].Sample
		situations = append(situations, situation)
		size += sizeOf(situation.Domain)
	}
	all, err := mail.Advise(ctx, situations...)
	if err != nil {
		return nil, err
	}
	return all, nil
}

// sizeOf returns about how many bytes of texts the facts of a domain have.
func sizeOf(d insight.Domain) int64 {
	var size counter
	for _, check := range d.Checks {
		_, _ = fmt.Fprint(&size, check.Check.Findings, check.Check.Facts) // has no errors
	}
	_, _ = fmt.Fprint(&size, d.Facts, d.Classes)
	return int64(size)
}

// counter counts the bytes that are written to it.
type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// ProposedRecord returns the DMARC record to publish for a domain without a change of its
// policy. Findings, setup guide and advice propose the same.
func (t *Team) ProposedRecord(ctx context.Context, name string) (string, error) {
	domain, err := t.Domain(ctx, name)
	if err != nil {
		return "", err
	}
	situation, err := t.situation(ctx, domain, dmarcd.Days{})
	return situation.Base, err
}

// situation returns the published records of a domain, and the proposed record of the setup
// guide.
func (t *Team) situation(ctx context.Context, domain dmarcd.Domain, days dmarcd.Days) (insight.Situation, error) {
	about, check, err := t.about(ctx, domain, days)
	if err != nil {
		return insight.Situation{}, err
	}
	options := t.service.options
	published := insight.Published{Record: domain.Record, Own: domain.RecordDomain == domain.Name, Parked: domain.Parked, Unchecked: domain.KnownAt.IsZero(), Accepted: domain.ForwardingAccepted}
	repaired := dnscheck.Repaired(check, domain)
	published.Base = dnscheck.ProposedHere(check, domain)
	setup := dnscheck.Setup(domain, options.ReportDomain, options.BaseURL, facts.Published{Repaired: repaired}, t.service.store.ActiveMailbox(ctx))
	at := slices.IndexFunc(setup, func(r dmarcd.SetupRecord) bool { return r.Purpose == dmarcd.SetupDMARC })
	if at >= 0 {
		published.Base, published.Addressed, published.ReportsHere = setup[at].Value, true, setup[at].Seen
	}
	return insight.Situation{Domain: about, Published: published}, nil
}
