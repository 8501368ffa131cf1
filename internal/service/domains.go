package service

import (
	"cmp"
	"context"
	"errors"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/dnscheck"
)

// AddDomain adds a domain and checks its DNS before it returns. The domain is there even
// if the check fails; the schedule checks it again. A domain that the team has already is
// dmarcd.ErrConflict, one too many a *dmarcd.QuotaError.
func (t *Team) AddDomain(ctx context.Context, name string) (dmarcd.Domain, error) {
	if err := t.may(dmarcd.RightChange); err != nil {
		return dmarcd.Domain{}, err
	}
	name, err := dmarcd.ParseName(name)
	if err != nil {
		return dmarcd.Domain{}, err
	}
	domain, err := t.team.AddDomain(ctx, name, t.service.options.Now().Add(dnscheck.CreateGrace), t.actor.to("domain.add", name, ""))
	if err != nil {
		return dmarcd.Domain{}, err
	}
	checked, _, err := t.service.options.Checker.CheckInTime(ctx, t.team, name, dnscheck.Created)
	switch {
	case err == nil:
		domain = checked
	case !errors.Is(err, dmarcd.ErrNotFound): // deleted meanwhile, by another request
		t.service.options.Log.WarnContext(ctx, "first check of a domain not stored", "error", err)
	}
	return domain, nil
}

// AddDomains adds domains, whose names are as dmarcd.ParseName returns them, and leaves
// their DNS to the schedule. It returns how many the team did not have;
// all or, where they are too many (a *dmarcd.QuotaError), none are added.
func (t *Team) AddDomains(ctx context.Context, names []string) (added int, err error) {
	if err := t.may(dmarcd.RightChange); err != nil || len(names) == 0 {
		return 0, err
	}
	return t.team.AddDomains(ctx, names, t.service.options.Now(), t.actor.to("domain.add", "", ""))
}

// DeleteDomain removes a domain with all that is known of it.
func (t *Team) DeleteDomain(ctx context.Context, name string) error {
	right := dmarcd.RightManage
	if t.actor.token {
		right = dmarcd.RightChange // as the interface has it
	}
	if err := t.may(right); err != nil {
		return err
	}
	domain, err := t.named(ctx, name)
	if err != nil {
		return err
	}
	return t.team.DeleteDomain(ctx, domain.Name, t.actor.to("domain.delete", domain.Name, ""))
}

// SetPurpose declares what a domain is used for; "" takes the word back.
func (t *Team) SetPurpose(ctx context.Context, name string, purpose dmarcd.Purpose) error {
	if err := t.may(dmarcd.RightChange); err != nil {
		return err
	}
	domain, err := t.named(ctx, name)
	if err != nil {
		return err
	}
	return t.team.SetPurpose(ctx, domain.Name, purpose, t.actor.to("domain.purpose", domain.Name, cmp.Or(string(purpose), "none")))
}

// Verify checks the DMARC record of a domain now, and returns the updated domain.
func (t *Team) Verify(ctx context.Context, name string) (dmarcd.Domain, dmarcd.Check, error) {
	if err := t.may(dmarcd.RightChange); err != nil {
		return dmarcd.Domain{}, dmarcd.Check{}, err
	}
	// The domain comes first: teams must not have the names of others looked up.
	domain, err := t.named(ctx, name)
	if err != nil {
		return dmarcd.Domain{}, dmarcd.Check{}, err
	}
	return t.service.options.Checker.CheckInTime(ctx, t.team, domain.Name, dnscheck.Requested)
}

// Examine runs the full check of a domain now.
func (t *Team) Examine(ctx context.Context, name string) error {
	if err := t.may(dmarcd.RightSee); err != nil {
		return err
	}
	domain, err := t.named(ctx, name)
	if err != nil {
		return err
	}
	return t.service.options.Examine(ctx, t.team, domain.Name)
}

// named returns the domain of the team with a name as it was written. What is no name
// is dmarcd.ErrNotFound, like any other that the team does not have.
func (t *Team) named(ctx context.Context, name string) (dmarcd.Domain, error) {
	parsed, err := dmarcd.ParseName(name)
	if err != nil {
		return dmarcd.Domain{}, dmarcd.ErrNotFound
	}
	return t.team.Domain(ctx, parsed)
}
