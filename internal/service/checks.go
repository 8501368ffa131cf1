package service

import (
	"context"
	"errors"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/dnscheck"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/store"
)

const (
	// A request that creates a domain waits for DNS for at most 2 s, one that verifies a
	// domain for 5 s. The rest is for the database.
	createTimeout = 1800 * time.Millisecond
	verifyTimeout = 4700 * time.Millisecond
	// createGrace delays the first scheduled check of a new domain, so that it does not
	// overlap the check by the request that creates it.
	createGrace = 5 * time.Second
	// examineTime limits a full check on request.
	examineTime = 8 * time.Second
	// saveTimeout bounds saving a check, which continues after the deadline for the check itself.
	saveTimeout = 5 * time.Second
)

// Limits of concurrent full checks on request, in total and per team. As many of a team may
// wait.
const (
	maxExaminations     = 64
	maxTeamExaminations = 8
)

// Checks checks domains and saves the results.
type Checks struct {
	Checker *dnscheck.Checker
	// ReportDomain is the domain of the reporting addresses, BaseURL the public URL of the API.
	ReportDomain, BaseURL string
	// Proof is true if a domain counts only while DNS shows that its team controls it.
	Proof bool
	// Zone returns the name of the zone of managed records.
	Zone func(context.Context) (string, error)
}

// CheckDue runs a check that the schedule has claimed. It returns dmarcd.ErrNotFound if the domain
// has been deleted.
func (s *Service) CheckDue(ctx context.Context, due dmarcd.DueDomain) error {
	team := s.store.Team(due.Team)
	if due.Full {
		return s.checks.Full(ctx, team, due.Name, dnscheck.Scheduled)
	}
	_, _, err := s.checks.record(ctx, team, due.Name, dnscheck.Scheduled)
	return err
}

// checkNow checks the DMARC record of a domain for a waiting client. It continues if the client
// disconnects: otherwise impatient clients would produce inconclusive checks and delay the
// schedule again and again.
func (t *Team) checkNow(ctx context.Context, name string, occasion dnscheck.Occasion, most time.Duration) (dmarcd.Domain, facts.Check, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), most)
	defer cancel()
	return t.service.checks.record(ctx, t.team, name, occasion)
}

// record checks a domain's DMARC record until the deadline of ctx and saves the result,
// conclusive or not.
func (c Checks) record(ctx context.Context, team *store.Team, name string, occasion dnscheck.Occasion) (domain dmarcd.Domain, check facts.Check, err error) {
	if c.Proof {
		if domain, err = team.Domain(ctx, name); err != nil {
			return dmarcd.Domain{}, check, err
		}
	}
	queries := dns.ForClient(ctx, int64(team.ID()))
	if occasion != dnscheck.Scheduled {
		queries = dns.ForUser(queries)
	}
	check = c.Checker.CheckDMARC(queries, name)
	if c.Proof && check.Conclusive {
		check.Proof = c.Checker.Prove(queries, domain, check)
	}
	domain, err = c.save(ctx, team, name, &check, occasion)
	return domain, check, err
}

// Full runs a full check of a domain until the deadline of ctx and saves it.
func (c Checks) Full(ctx context.Context, team *store.Team, name string, occasion dnscheck.Occasion) error {
	domain, err := team.Domain(ctx, name)
	if err != nil {
		return err
	}
	selectors, err := reportedSelectors(ctx, team, name)
	if err != nil {
		return err
	}
	used, err := passes(ctx, team, name)
	if err != nil {
		return err
	}
	managed, err := c.managed(ctx, team, name)
	if err != nil {
		return err
	}
	queries := dns.ForClient(ctx, int64(team.ID()))
	check := c.Checker.Examine(queries, dnscheck.Request{
		Domain: name, Purpose: domain.Purpose, Selectors: selectors, Used: used, Parked: domain.Parked, Managed: managed,
		ReportAddress: domain.ReportAddress(c.ReportDomain), TLSReportURIs: domain.TLSReportURIs(c.ReportDomain, c.BaseURL),
	})
	if c.Proof && check.Conclusive {
		check.Proof = c.Checker.Prove(queries, domain, check)
	}
	_, err = c.save(ctx, team, name, &check, occasion)
	return err
}

// managed returns the managed records of a domain, as they have to be in the DNS.
func (c Checks) managed(ctx context.Context, team *store.Team, name string) ([]dnscheck.Managed, error) {
	versions, err := team.RecordVersions(ctx, name)
	if err != nil || len(versions) == 0 {
		return nil, err
	}
	zone, err := c.Zone(ctx)
	if err != nil {
		return nil, err
	}
	var managed []dnscheck.Managed
	for i, v := range versions {
		if i > 0 && versions[i-1].Kind == v.Kind {
			continue // an older version
		}
		r := managedRecord(v, name, zone)
		if v.Kind == dmarcd.RecordSPF && r.Target == "" {
			continue // at the server of the domain; its page compares it
		}
		m := dnscheck.Managed{Kind: v.Kind, Target: r.Target, Content: v.Content}
		if v.Kind == dmarcd.RecordSPF {
			served, err := team.ServedSPF(ctx, name)
			if err != nil {
				return nil, err
			}
			m.Term = v.Term(r.Target)
			if flat := flatRecords(served.Records, r.Target); len(flat.Records) > 0 {
				m.Content = flat.Records[0]
			}
		}
		managed = append(managed, m)
	}
	return managed, nil
}

// save stores a check with the plan of the next one. It works after the deadline of ctx, but not
// after cancellation: the process stops, and a missing answer means nothing.
func (c Checks) save(ctx context.Context, team *store.Team, name string, check *facts.Check, occasion dnscheck.Occasion) (dmarcd.Domain, error) {
	if errors.Is(ctx.Err(), context.Canceled) {
		return dmarcd.Domain{}, ctx.Err()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTimeout)
	defer cancel()
	check.Asked = occasion != dnscheck.Scheduled
	if occasion == dnscheck.Requested {
		// Verifications are short and can be repeated endlessly: in a fair queue, the reports of other
		// teams do not wait for them.
		defer team.ReadTurn(ctx)()
	}
	return team.SaveCheck(ctx, name, *check, c.Checker.Plan(name, occasion))
}

// A domain is used if at least usedMessages of it pass within usedDays: fewer may be mistakes of
// one reporter.
const (
	usedMessages = 10
	usedDays     = 30
)

// passes reports whether mail of the domain or its subdomains passes DMARC, as reports say.
func passes(ctx context.Context, team *store.Team, name string) (bool, error) {
	from := dmarcd.DayOf(time.Now()) - usedDays
	summary, err := team.DomainSummary(ctx, name, dmarcd.Days{From: &from})
	return summary.Compliant >= usedMessages, err
}

// maxReported limits the selectors from reports that are checked.
const maxReported = 20

// reportedSelectors returns the DKIM selectors of a domain that reports mention.
func reportedSelectors(ctx context.Context, team *store.Team, name string) ([]dnscheck.Selector, error) {
	names, err := team.Selectors(ctx, name, maxReported)
	selectors := make([]dnscheck.Selector, len(names))
	for i, selector := range names {
		selectors[i] = dnscheck.Selector{Name: selector, From: dnscheck.FromReport}
	}
	return selectors, err
}
