package backend

import (
	"context"
	"errors"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/internal/dnscheck"
	"github.com/dmarcd/dmarcd/internal/web"
)

// domains implements web.Domains; the overview stands in overview.go.
type domains struct{ desk }

// named returns the domain of the team that somebody wrote in an address; what is
// no name is dmarcd.ErrNotFound, like any other that the team does not have.
func (d desk) named(ctx context.Context, name string) (dmarcd.Domain, error) {
	parsed, err := dmarcd.ParseName(name)
	if err != nil {
		return dmarcd.Domain{}, dmarcd.ErrNotFound
	}
	return d.team.Domain(ctx, parsed)
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

// AddDomain looks at the DNS before it answers. Whatever becomes of that, now or by
// the schedule, the domain is there.
func (d domains) AddDomain(ctx context.Context, name string) (string, error) {
	name, err := dmarcd.ParseName(name)
	if err != nil {
		return "", err
	}
	_, err = d.team.AddDomain(ctx, name, d.options.Now().Add(dnscheck.CreateGrace))
	if errors.Is(err, dmarcd.ErrForbidden) {
		return "", &dmarcd.InvalidError{Field: "domain", Message: "The team has as many domains as it may have. Delete one, or ask the operator for more."}
	}
	if err != nil {
		return "", err
	}
	d.note(ctx, "domain.add", name, "")
	_, _, err = d.options.Checker.CheckInTime(ctx, d.team, name, dnscheck.Created)
	if err != nil && !errors.Is(err, dmarcd.ErrNotFound) { // deleted meanwhile
		d.options.Log.WarnContext(ctx, "first check of a domain not kept", "error", err)
	}
	return name, nil
}

func (d domains) DeleteDomain(ctx context.Context, name string) error {
	domain, err := d.named(ctx, name)
	if err != nil {
		return err
	}
	if err := d.team.DeleteDomain(ctx, domain.Name); err != nil {
		return err
	}
	d.note(ctx, "domain.delete", domain.Name, "")
	return nil
}

func (d domains) SetPurpose(ctx context.Context, name string, purpose dmarcd.Purpose) error {
	domain, err := d.named(ctx, name)
	if err != nil {
		return err
	}
	if err := d.team.SetPurpose(ctx, domain.Name, purpose); err != nil {
		return err
	}
	word := string(purpose)
	if word == "" {
		word = "none"
	}
	d.note(ctx, "domain.purpose", domain.Name, word)
	return nil
}
