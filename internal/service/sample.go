package service

import (
	"context"
	"errors"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store"
)

// Sample is made-up data to try the pages with.
type Sample struct {
	// Domains are its domains, under names that are reserved for examples.
	Domains []string
	// Load stores the reports and the checks of the domains, which the team has.
	Load func(ctx context.Context, team *store.Team) error
}

// sampleTime bounds how long loading sample data takes.
const sampleTime = 2 * time.Minute

// AddSample adds the sample domains with their data. It is a *dmarcd.InvalidError if the
// team has domains, and dmarcd.ErrNotFound if there is no sample data. It goes on when the
// client leaves.
func (t *Team) AddSample(ctx context.Context) error {
	if err := t.may(dmarcd.RightChange); err != nil {
		return err
	}
	sample := t.service.options.Sample
	if sample.Load == nil {
		return dmarcd.ErrNotFound
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sampleTime)
	defer cancel()
	if err := t.team.AddSampleDomains(ctx, sample.Domains, t.actor.to("sample.add", "", "")); err != nil {
		return err
	}
	if err := sample.Load(ctx, t.team); err != nil {
		return errors.Join(err, t.service.store.Team(t.team.ID()).DeleteSample(context.WithoutCancel(ctx)))
	}
	return nil
}

// DeleteSample deletes the sample domains with everything that came with them. It is
// dmarcd.ErrNotFound if there are none.
func (t *Team) DeleteSample(ctx context.Context) error {
	if err := t.may(dmarcd.RightChange); err != nil {
		return err
	}
	return t.team.DeleteSample(ctx, t.actor.to("sample.delete", "", ""))
}

// HasSample reports whether the domains of the team are sample domains.
func (t *Team) HasSample(ctx context.Context) (bool, error) {
	return see(t, func() (bool, error) { return t.team.HasSample(ctx) })
}

// Start is the progress of a new team.
type Start struct {
	// Domains is the number of domains, Active the number of those whose reports are sent here.
	Domains, Active int
	// Open is a domain whose records are not published yet, "" if there is none.
	Open string
	// Reported is true once a report was received.
	Reported bool
	// Samples is true if sample data can be added.
	Samples bool
}

// Start returns the progress of the team with its first domains.
func (t *Team) Start(ctx context.Context) (Start, error) {
	if err := t.may(dmarcd.RightSee); err != nil {
		return Start{}, err
	}
	var start Start
	var err error
	if start.Domains, start.Active, start.Open, err = t.team.ActiveDomains(ctx); err != nil {
		return Start{}, err
	}
	start.Samples = start.Domains == 0 && t.service.options.Sample.Load != nil
	reports, err := t.team.Reports(ctx, ReportFilter{}, 0, 1)
	start.Reported = len(reports) > 0
	return start, err
}
