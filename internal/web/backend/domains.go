package backend

import (
	"context"
	"errors"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/internal/web"
)

// domains implements web.Domains; the overview stands in overview.go.
type domains struct{ desk }

// named returns the domain of the team that somebody wrote in an address; what is
// no name is dmarcd.ErrNotFound, like any other that the team does not have.
func (d desk) named(ctx context.Context, name string) (dmarcd.Domain, error) {
	return d.team.Domain(ctx, name)
}

func (d domains) Domain(ctx context.Context, name string) (web.DomainHead, error) {
	domain, err := d.named(ctx, name)
	if err != nil {
		return web.DomainHead{}, err
	}
	return web.DomainHead{
		Domain: domain, ReportAddress: domain.ReportAddress(d.options.ReportDomain), Applied: applied(domain),
	}, nil
}

// applied returns the policy that receivers apply to a domain by its record, ""
// where there is none that they can use.
func applied(domain dmarcd.Domain) string {
	record, ok := dmarc.Parse(domain.Record)
	if !ok {
		return ""
	}
	subject := dmarc.Itself
	if domain.RecordDomain != domain.Name {
		subject = dmarc.Subdomain
	}
	policy, _ := record.Policy(subject)
	return record.Applied(policy).String()
}

// AddDomain implements web.Domains.
func (d domains) AddDomain(ctx context.Context, name string) (string, error) {
	domain, err := d.team.AddDomain(ctx, name)
	if errors.Is(err, dmarcd.ErrForbidden) && errors.As(err, new(*dmarcd.QuotaError)) {
		return "", &dmarcd.InvalidError{Field: "domain", Message: "The team has as many domains as it may have. Delete one, or ask the operator for more."}
	}
	return domain.Name, err
}

// DeleteDomain implements web.Domains.
func (d domains) DeleteDomain(ctx context.Context, name string) error {
	return d.team.DeleteDomain(ctx, name)
}

// SetPurpose implements web.Domains.
func (d domains) SetPurpose(ctx context.Context, name string, purpose dmarcd.Purpose) error {
	return d.team.SetPurpose(ctx, name, purpose)
}
