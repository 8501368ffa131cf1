package service

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

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

const (
	// examineTime bounds a full check that a user waits for.
	examineTime = 8 * time.Second
	// watchEvery is how often a domain is checked while users watch it.
	watchEvery = 10 * time.Second
)

// Examine runs the full check of a domain now. It goes on when the client leaves: a check
// that is cut short would be stored as inconclusive.
func (t *Team) Examine(ctx context.Context, name string) error {
	if err := t.may(dmarcd.RightSee); err != nil {
		return err
	}
	domain, err := t.named(ctx, name)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), examineTime)
	defer cancel()
	return t.service.options.Examine(ctx, t.team, domain.Name)
}

// Watch runs the full check of a domain for users who wait for its records to appear:
// once for all of them, and not more often than every few seconds.
func (t *Team) Watch(ctx context.Context, name string) error {
	if err := t.may(dmarcd.RightSee); err != nil {
		return err
	}
	domain, err := t.named(ctx, name)
	if err != nil || t.service.options.Now().Sub(domain.CheckedAt) < watchEvery {
		return err
	}
	end, first := t.service.watching.begin(watched{t.team.ID(), domain.Name})
	if !first {
		return nil
	}
	defer end()
	return t.Examine(ctx, domain.Name)
}

// watched is a domain that users watch.
type watched struct {
	team dmarcd.TeamID
	name string
}

// watching is the set of the domains that are checked for users who watch. Its zero
// value is ready to use.
type watching struct {
	mu      sync.Mutex
	domains map[watched]struct{}
}

// begin notes that a domain is checked until end is called, unless it is already.
func (w *watching) begin(domain watched) (end func(), first bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, busy := w.domains[domain]; busy {
		return nil, false
	}
	if w.domains == nil {
		w.domains = map[watched]struct{}{}
	}
	w.domains[domain] = struct{}{}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.domains, domain)
	}, true
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
