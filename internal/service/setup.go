package service

import (
	"context"
	"errors"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/dnscheck"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// Setup returns which records to publish so that reports about a domain come here, and
// whether the latest check saw them. It makes no DNS queries.
func (t *Team) Setup(ctx context.Context, name string) (dmarcd.Setup, error) {
	domain, err := t.Domain(ctx, name)
	if err != nil {
		return dmarcd.Setup{}, err
	}
	options := t.service.options
	address := domain.ReportAddress(options.ReportDomain)
	published, err := t.published(ctx, domain, address)
	if err != nil {
		return dmarcd.Setup{}, err
	}
	records := dnscheck.Setup(domain, options.ReportDomain, options.BaseURL, published, t.service.store.ActiveMailbox(ctx))
	return dmarcd.Setup{Domain: domain, Address: address, Records: records}, nil
}

// published returns what the latest check of a domain says of where reports go.
func (t *Team) published(ctx context.Context, domain dmarcd.Domain, address string) (dmarcd.Published, error) {
	kept, err := t.team.LatestCheck(ctx, domain.Name)
	if errors.Is(err, dmarcd.ErrNotFound) {
		return dmarcd.Published{}, nil
	}
	if err != nil {
		return dmarcd.Published{}, err
	}
	latest, err := wire.NewKeptCheck(kept)
	return latest.Published(address), err
}
