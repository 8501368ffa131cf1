package service

import (
	"context"
	"errors"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/dnscheck"
)

// Setup returns the records to publish for a domain, and whether the latest check found them.
// It makes no DNS queries.
func (t *Team) Setup(ctx context.Context, name string) (dmarcd.Setup, error) {
	domain, err := t.Domain(ctx, name)
	if err != nil {
		return dmarcd.Setup{}, err
	}
	options := t.service.options
	address := domain.ReportAddress(options.ReportDomain)
	latest, err := t.team.LatestCheck(ctx, domain.Name)
	if err != nil && !errors.Is(err, dmarcd.ErrNotFound) {
		return dmarcd.Setup{}, err
	}
	published := latest.Check.Published(address)
	published.Repaired = dnscheck.Repaired(latest.Check, domain)
	records := dnscheck.Setup(domain, options.ReportDomain, options.BaseURL, published, t.service.store.ActiveMailbox(ctx))
	return dmarcd.Setup{Domain: domain, Address: address, Records: records}, nil
}
