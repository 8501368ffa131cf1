package service

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/dnscheck"
	"github.com/dmarcd/dmarcd/internal/facts"
)

// AddDomain adds a domain and checks its DNS before it returns. If the check fails the domain
// is still added, and the schedule retries. An existing domain is dmarcd.ErrConflict, one over
// the quota a *dmarcd.QuotaError.
func (t *Team) AddDomain(ctx context.Context, name string) (dmarcd.Domain, error) {
	if err := t.may(dmarcd.RightChange); err != nil {
		return dmarcd.Domain{}, err
	}
	name, err := dmarcd.ParseName(name)
	if err != nil {
		return dmarcd.Domain{}, err
	}
	domain, err := t.team.AddDomain(ctx, name, t.service.options.Now().Add(createGrace), t.actor.to("domain.add", name, ""))
	if err != nil {
		return dmarcd.Domain{}, err
	}
	checked, _, err := t.checkNow(ctx, name, dnscheck.Created, createTimeout)
	switch {
	case err == nil:
		domain = checked
	case !errors.Is(err, dmarcd.ErrNotFound): // deleted meanwhile, by another request
		t.service.options.Log.WarnContext(ctx, "first check of a domain not stored", "error", err)
	}
	return domain, nil
}

// AddDomains adds domains, with names as from dmarcd.ParseName, and leaves checks to the
// schedule. It returns the number of new ones; over the quota (a *dmarcd.QuotaError) it adds
// none.
func (t *Team) AddDomains(ctx context.Context, names []string) (added int, err error) {
	if err := t.may(dmarcd.RightChange); err != nil || len(names) == 0 {
		return 0, err
	}
	return t.team.AddDomains(ctx, names, t.service.options.Now(), t.actor.to("domain.add", "", ""))
}

// DeleteDomain deletes a domain with its data.
func (t *Team) DeleteDomain(ctx context.Context, name string) error {
	right := dmarcd.RightManage
	if t.actor.token {
		right = dmarcd.RightChange // as the interface defines
	}
	domain, err := t.named(ctx, right, name)
	if err != nil {
		return err
	}
	return t.team.DeleteDomain(ctx, domain.Name, t.actor.to("domain.delete", domain.Name, ""))
}

// SetPurpose sets what a domain is used for; "" clears it.
func (t *Team) SetPurpose(ctx context.Context, name string, purpose dmarcd.Purpose) error {
	domain, err := t.named(ctx, dmarcd.RightChange, name)
	if err != nil {
		return err
	}
	return t.team.SetPurpose(ctx, domain.Name, purpose, t.actor.to("domain.purpose", domain.Name, cmp.Or(string(purpose), "none")))
}

// SetParked marks a domain as not used for mail, or removes the mark.
func (t *Team) SetParked(ctx context.Context, name string, parked bool) error {
	domain, err := t.named(ctx, dmarcd.RightChange, name)
	if err != nil {
		return err
	}
	word := "no"
	if parked {
		word = "yes"
	}
	return t.team.SetParked(ctx, domain.Name, parked, t.actor.to("domain.parked", domain.Name, word))
}

// Verify checks the DMARC record of a domain now, and returns the updated domain. A sample
// domain stays as it is.
func (t *Team) Verify(ctx context.Context, name string) (dmarcd.Domain, facts.Check, error) {
	// Find the domain first: a team must not trigger queries for names of others.
	end := t.team.ReadTurn(ctx)
	domain, err := t.named(ctx, dmarcd.RightChange, name)
	end()
	if err != nil {
		return dmarcd.Domain{}, facts.Check{}, err
	}
	if domain.Sample {
		return domain, facts.Check{Conclusive: true}, nil
	}
	return t.checkNow(ctx, domain.Name, dnscheck.Requested, verifyTimeout)
}

// watchEvery is the minimum interval of checks while users watch a domain.
const watchEvery = 10 * time.Second

// Examine runs a full check now, unless the domain is a sample. It continues if the client
// disconnects: a cancelled check would be saved as inconclusive.
func (t *Team) Examine(ctx context.Context, name string) error {
	domain, err := t.named(ctx, dmarcd.RightSee, name)
	if err != nil || domain.Sample {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), examineTime)
	defer cancel()
	release, err := t.service.examining.Acquire(ctx, t.team.ID(), 1)
	if err != nil {
		return err
	}
	defer release()
	return t.service.checks.Full(ctx, t.team, domain.Name, dnscheck.Requested)
}

// Watch runs a full check for users who wait for records to appear: one for all of them, and
// at most every few seconds.
func (t *Team) Watch(ctx context.Context, name string) error {
	domain, err := t.named(ctx, dmarcd.RightSee, name)
	if err != nil || t.service.options.Now().Sub(domain.CheckedAt) < watchEvery {
		return err
	}
	leave, ok := t.service.watching.Try(watched{t.team.ID(), domain.Name})
	if !ok {
		return nil // another user's check is under way
	}
	defer leave()
	return t.Examine(ctx, domain.Name)
}

// watched is a domain of a team.
type watched struct {
	team dmarcd.TeamID
	name string
}

// named returns the domain with a name as entered, if the actor has a right in the team. An
// invalid name is dmarcd.ErrNotFound.
func (t *Team) named(ctx context.Context, right dmarcd.Right, name string) (dmarcd.Domain, error) {
	if err := t.may(right); err != nil {
		return dmarcd.Domain{}, err
	}
	parsed, err := dmarcd.ParseName(name)
	if err != nil {
		return dmarcd.Domain{}, dmarcd.ErrNotFound
	}
	return t.team.Domain(ctx, parsed)
}
