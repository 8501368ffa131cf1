package service

import (
	"context"
	"errors"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dmarc"
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
		if checks, err = t.team.Checks(ctx, domain.Name, Times{}, Cursor{At: (to + 1).Time()}, maxPeriodChecks); err != nil {
			return insight.Domain{}, facts.Check{}, err
		}
	}
	classes, err := t.team.SenderClasses(ctx, domain.Name)
	about := insight.Domain{ID: domain.ID, Name: domain.Name, Facts: latest.Check.Facts, Check: latest.ID, Checks: checks, Classes: classes}
	return about, latest.Check, err
}

// PolicyChange is a hypothetical policy. Nil fields keep the current record.
type PolicyChange struct {
	P, SP, NP   *dmarc.Policy
	ADKIM, ASPF *dmarc.Mode
}

func (c PolicyChange) apply(p *insight.Policy) {
	set(&p.P, c.P)
	set(&p.SP, c.SP)
	set(&p.NP, c.NP)
	set(&p.ADKIM, c.ADKIM)
	set(&p.ASPF, c.ASPF)
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

// Result returns what people and programs read of a simulation.
func (s Simulation) Result() dmarcd.Simulation {
	result := dmarcd.Simulation{
		Domain: s.Domain, From: s.From, To: s.To, Policy: s.Policy.Record, Record: s.Record,
		Observed: dmarcd.Handled(s.Observed), RFC9989: dmarcd.Handled(s.RFC9989), RFC7489: dmarcd.Handled(s.RFC7489),
		Legitimate: s.Legitimate, Forwarder: s.Forwarder, Unknown: s.Unknown, Spoofing: s.Spoofing, Effect: s.Effect,
	}
	for _, sender := range s.Senders {
		result.Senders = append(result.Senders, dmarcd.SimulatedSender{
			Key: sender.Key, Name: sender.Name, Class: sender.Class, Messages: sender.Messages, Affected: sender.Affected,
			Addresses: sender.Addresses, Cause: sender.Cause, Fix: sender.Fix,
		})
	}
	return result
}

// Simulate applies a policy to the mail of some days, by default the last 30.
func (t *Team) Simulate(ctx context.Context, name string, days dmarcd.Days, change PolicyChange) (Simulation, error) {
	return t.simulate(ctx, name, days, change.apply, false)
}

// DomainMail is Simulate of p=reject for the domain and its subdomains, with the mail by day and class.
func (t *Team) DomainMail(ctx context.Context, name string, days dmarcd.Days) (Simulation, error) {
	reject := dmarc.Reject
	return t.simulate(ctx, name, days, PolicyChange{P: &reject, SP: &reject, NP: &reject}.apply, true)
}

func (t *Team) simulate(ctx context.Context, name string, days dmarcd.Days, change func(*insight.Policy), byDay bool) (Simulation, error) {
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
	change(&s.Policy)
	s.Record = s.Policy.In(situation.Base)
	results, err := mail.Simulate(ctx, insight.Trial{Domain: situation.Domain, Policy: s.Policy, ByDay: byDay})
	if err != nil {
		return Simulation{}, err
	}
	s.Simulation = results[0]
	return s, nil
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
