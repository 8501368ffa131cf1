package dnscheck

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd/bimi"
	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/internal/facts"
)

// checkBIMI looks up the BIMI record and fetches the logo and certificate it refers to. It
// needs the DMARC facts.
func (e *examination) checkBIMI(ctx context.Context) {
	dmarcFacts := e.facts.DMARC
	query := bimi.Query{Domain: e.Domain, Organization: dmarcFacts.OrganizationalDomain}
	found := bimi.Lookup(ctx, e.dns, query)
	f := &e.facts.BIMI
	f.Status, f.Reason, f.RecordDomain = found.Status.String(), found.Reason, found.RecordDomain
	if found.Record == nil {
		return
	}
	record := *found.Record
	f.Record, f.Location, f.Evidence = storable(record.Text), storable(record.Location), storable(record.Evidence)
	f.Problems = append(f.Problems, bimiProblems(record.Problems)...)
	if found.Status != bimi.StatusOK {
		return
	}
	f.Problems = append(f.Problems, bimiProblems(bimi.Preconditions(e.bimiPolicies(ctx)...))...)
	e.checkLogo(ctx, record, found.Query)
}

// bimiPolicies returns the policy that applies to the domain and, if it is another name, that
// of its organizational domain. BIMI requires both to be enforced.
func (e *examination) bimiPolicies(ctx context.Context) []bimi.Policy {
	own := e.facts.DMARC
	policies := []bimi.Policy{bimiPolicy(e.Domain, own)}
	organization := own.OrganizationalDomain
	switch {
	case organization == "" || organization == e.Domain:
		return policies
	case own.RecordDomain == organization:
		// Of the same record, sp or np counts for the domain and p for the organization.
		if own.P != "" && own.P != own.Policy {
			policies = append(policies, bimi.Policy{Domain: organization, P: own.P, Percent: own.Percent})
		}
		return policies
	}
	found := dmarc.Discover(ctx, e.dns, organization)
	if found.Status == dmarc.StatusInconclusive {
		return policies
	}
	facts := facts.DMARC{RecordDomain: found.RecordDomain, Policy: found.Policy.String()}
	if found.Record != nil {
		recordFacts(&facts, *found.Record)
	}
	return append(policies, bimiPolicy(organization, facts))
}

// bimiPolicy converts the DMARC facts of domain to the form that package bimi expects.
func bimiPolicy(domain string, f facts.DMARC) bimi.Policy {
	policy := bimi.Policy{Domain: domain, P: f.Policy, Percent: f.Percent, Testing: f.Testing, Collapsed: f.Record != "" && f.State != stateOK}
	if f.RecordDomain == domain {
		policy.SP = f.SP
	}
	return policy
}

// checkLogo fetches the image and the certificate and compares them.
func (e *examination) checkLogo(ctx context.Context, record bimi.Record, query bimi.Query) {
	f := &e.facts.BIMI
	client := e.client()
	image, err := bimi.FetchImage(ctx, client, record.Location)
	problems := image.Problems
	hash := ""
	if image.Content != nil {
		checked := bimi.CheckImage(image.Content)
		problems, hash = slices.Concat(problems, checked.Problems), checked.SHA256
		e.logo = bimi.Drawing(image.Content)
	}
	if record.Evidence != "" {
		document, evidenceErr := bimi.FetchEvidence(ctx, client, record.Evidence)
		err = errors.Join(err, evidenceErr)
		problems = slices.Concat(problems, document.Problems)
		if document.Content != nil {
			evidence := bimi.CheckEvidence(document.Content, bimi.Expectation{
				Query: query, ImageSHA256: hash, Roots: e.options.MarkRoots, At: e.options.Now(),
			})
			problems = slices.Concat(problems, evidence.Problems)
		}
	}
	if e.options.MarkRoots == nil {
		// Without trusted roots the chain cannot be verified.
		problems = slices.DeleteFunc(problems, func(p bimi.Problem) bool { return p.Kind == bimi.UntrustedChain })
	}
	if err != nil {
		f.Reason = storableReason(strings.NewReplacer(": "+bimi.ErrUnreachable.Error(), "", "\n", "; ").Replace(err.Error()))
	}
	f.Problems = append(f.Problems, bimiProblems(problems)...)
}

func bimiProblems(problems []bimi.Problem) []facts.Problem {
	var stored []facts.Problem
	for _, p := range problems {
		stored = append(stored, facts.Problem{Kind: string(p.Kind), Part: storable(p.Subject), Text: storable(p.Text)})
	}
	return stored
}
