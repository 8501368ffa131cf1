package service

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/certificate"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/zone"
	"github.com/dmarcd/dmarcd/mtasts"
)

// Policies is what it takes to serve MTA-STS policies.
type Policies struct {
	// Addresses are those of this installation.
	Addresses    []netip.Addr
	Certificates Certificates
	// Client reads policies from this installation as senders do.
	Client *http.Client
	// Retry is the time after the first failure; it doubles with each. 0 is five minutes.
	Retry time.Duration
}

// Certificates gets certificates; see certificate.Hosts.
type Certificates interface {
	Order(ctx context.Context, host string) error
	Renewal(ctx context.Context, host string) (notAfter, renewAt time.Time, err error)
	Identities(ctx context.Context) ([]string, error)
	Remove(ctx context.Context, host string) error
}

const (
	maxPolicyAge = 90 * 24 * time.Hour
	// policyCheck is the time between checks of a host that is served, policyPause that of waiting for
	// replicas.
	policyCheck = 24 * time.Hour
	policyPause = time.Second
	// policyRetry and maxPolicyRetry bound the time between attempts, maxAliasRetry the time between
	// lookups of a CNAME record that is not there yet.
	policyRetry    = 5 * time.Minute
	maxPolicyRetry = 12 * time.Hour
	maxAliasRetry  = 15 * time.Minute
	// failedRenewals is how many renewals have to fail for an alert.
	failedRenewals = 3
)

// records returns what the name of every policy host answers: addresses, and CAA records for the
// authority, because CAA is read where the CNAME record ends (RFC 8659 §3).
func (p *Policies) records(ctx context.Context) ([]store.ZoneRecord, error) {
	identities, err := p.Certificates.Identities(ctx)
	if err != nil {
		return nil, fmt.Errorf("the certificate authority cannot be reached: %w", err)
	}
	var records []store.ZoneRecord
	for _, address := range p.Addresses {
		kind := dns.AAAA
		if address.Is4() {
			kind = dns.A
		}
		records = append(records, store.ZoneRecord{Type: kind, Data: address.String()})
	}
	for _, identity := range identities {
		if _, err := dmarcd.ParseName(identity); err == nil {
			records = append(records, store.ZoneRecord{Type: zone.CAA, Data: `0 issue "` + identity + `"`})
		}
	}
	return records, nil
}

// CheckPolicyHost takes a host one step ahead: CNAME record, certificate, policy read by ourselves, TXT
// record; later renewals, and the TXT records of other policies.
func (s *Service) CheckPolicyHost(ctx context.Context, h store.PolicyHost) error {
	due, err := s.advance(ctx, &h)
	if ctx.Err() != nil {
		return nil //nolint:nilerr // the lease ends, and another replica continues
	}
	problem := ""
	switch {
	case errors.Is(err, errWaiting):
		h.Failures, problem = h.Failures-1, h.Problem
	case err != nil:
		problem = err.Error()
		if due.IsZero() {
			due = s.options.Now().Add(backOff(s.policyRetry(), h.Failures, maxPolicyRetry))
		}
	}
	if !h.ExpiresAt.IsZero() && due.After(h.ExpiresAt) {
		due = h.ExpiresAt
	}
	return s.store.PolicyHostChecked(ctx, h, due, problem)
}

func (s *Service) policyRetry() time.Duration {
	if retry := s.options.Policies.Retry; retry > 0 {
		return retry
	}
	return policyRetry
}

func backOff(first time.Duration, failures int, most time.Duration) time.Duration {
	return min(first<<min(failures, 10), most)
}

// errWaiting is no failure: the next step is later.
var errWaiting = errors.New("waiting")

// advance returns when the host is due again; zero leaves that to the error.
func (s *Service) advance(ctx context.Context, h *store.PolicyHost) (due time.Time, err error) {
	p, now, host := s.options.Policies, s.options.Now(), mtasts.PolicyHost(h.Domain)
	if !h.ExpiresAt.IsZero() && !now.Before(h.ExpiresAt) {
		shared, err := s.store.RemovePolicyHost(ctx, h.Label)
		if err == nil && !shared {
			err = p.Certificates.Remove(ctx, host)
		}
		return time.Time{}, err
	}
	certified := h.NotAfter.After(now)
	records, err := p.records(ctx)
	if err == nil {
		err = s.store.ServePolicyHost(ctx, h.Label, records)
	} else if certified {
		err = nil // the name has them already
	}
	if err != nil {
		return time.Time{}, err
	}
	if due, err := s.verifyPolicyHost(ctx, h, host); err != nil {
		return due, err
	}
	// Any replica may answer the challenge of the authority.
	if served, err := s.store.PolicyServed(ctx, h.Version); err != nil || !served {
		return now.Add(policyPause), errors.Join(errWaiting, err)
	}
	if certified && h.ID != h.Published {
		err := s.publishPolicy(ctx, *h)
		if errors.Is(err, errWaiting) {
			due = now.Add(policyPause)
		}
		if err != nil {
			return due, err
		}
		h.Published = h.ID
	}
	if due, err := s.certify(ctx, h, host); err != nil {
		return due, err
	}
	if h.ID != h.Published {
		return now, errWaiting // with a certificate now
	}
	return slices.MinFunc([]time.Time{now.Add(policyCheck), h.RenewAt}, time.Time.Compare), nil
}

// verifyPolicyHost looks up whether the CNAME record leads to the name of this record.
func (s *Service) verifyPolicyHost(ctx context.Context, h *store.PolicyHost, host string) (due time.Time, err error) {
	apex, err := s.store.Zone(ctx)
	if err != nil {
		return time.Time{}, err
	}
	answer := s.options.DNS.Resolve(ctx, dns.Question{Name: host, Type: dns.A})
	due = s.options.Now().Add(backOff(min(time.Minute, s.policyRetry()), h.Failures, maxAliasRetry))
	if answer.Outcome == dns.Inconclusive {
		return due, fmt.Errorf("the lookup of %s failed: %s", host, answer.Reason)
	}
	target := h.Label + "." + apex
	verified := len(answer.Aliases) > 0 && dns.Name(answer.Aliases[len(answer.Aliases)-1]) == target
	changed, err := s.store.VerifyPolicyHost(ctx, h.Label, verified)
	if err != nil {
		return time.Time{}, err
	}
	*h = changed
	if !verified {
		return due, fmt.Errorf("no CNAME record leads from %s to %s", host, target)
	}
	return time.Time{}, nil
}

// certify gets or renews the certificate, if it has to.
func (s *Service) certify(ctx context.Context, h *store.PolicyHost, host string) (due time.Time, err error) {
	certificates, renewal := s.options.Policies.Certificates, h.NotAfter.After(s.options.Now())
	stored := func() error {
		notAfter, renewAt, err := certificates.Renewal(ctx, host)
		if err != nil {
			return err
		}
		*h, err = s.store.CertifyPolicyHost(ctx, h.Label, notAfter, renewAt)
		return err
	}
	// Another record of the domain may have one, and the authority may have another time in mind.
	if err := stored(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return time.Time{}, err
	}
	if s.options.Now().Before(h.RenewAt) {
		return time.Time{}, nil
	}
	organization := dmarc.LegacyOrganization(host)
	if wait, err := s.store.CountOrder(ctx, organization, renewal); err != nil || !wait.IsZero() {
		h.Problem = "The next order of a certificate is possible at " + wait.UTC().Format(time.RFC3339) + "."
		return wait, errors.Join(errWaiting, err)
	}
	err = certificates.Order(ctx, host)
	var later *certificate.LaterError
	if errors.As(err, &later) {
		if later.All {
			organization = ""
		}
		due = later.Until
		err = errors.Join(err, s.store.PauseOrders(ctx, organization, due))
	}
	if err == nil {
		return time.Time{}, stored()
	}
	err = fmt.Errorf("no certificate for %s: %w", host, err)
	if renewal && h.Failures+1 >= failedRenewals {
		err = errors.Join(err, s.reportRenewal(ctx, *h, err))
	}
	return due, err
}

// reportRenewal raises an alert.
func (s *Service) reportRenewal(ctx context.Context, h store.PolicyHost, reason error) error {
	domain, err := s.store.Team(h.Team).Domain(ctx, h.Domain)
	if errors.Is(err, dmarcd.ErrNotFound) {
		return nil // deleted
	}
	if err != nil {
		return err
	}
	today := dmarcd.DayOf(s.options.Now())
	return s.saveDetections(ctx, h.Team, []dmarcd.Detection{{
		Kind: dmarcd.CertificateFailing, Domain: domain.ID, Day: today,
		Reason: fmt.Sprintf("It ends on %s. %s", h.NotAfter.UTC().Format(time.DateOnly), reason),
	}}, today)
}

// publishPolicy publishes the id of the policy, if senders get the policy from us.
func (s *Service) publishPolicy(ctx context.Context, h store.PolicyHost) error {
	if served, err := s.store.PolicyServed(ctx, h.Version); err != nil || !served {
		return errors.Join(errWaiting, err)
	}
	fetched := mtasts.Fetch(ctx, s.options.Policies.Client, h.Domain)
	if fetched.Status != mtasts.FetchOK || strings.TrimSpace(fetched.Policy.Text) != strings.TrimSpace(h.Policy) {
		return fmt.Errorf("%s could not be read as senders do: %s %s", fetched.URL, fetched.Status, fetched.Reason)
	}
	published, err := s.store.PublishPolicy(ctx, h)
	if err == nil && !published {
		err = errWaiting
	}
	return err
}

// servePolicy returns a *dmarcd.InvalidError for a policy that must not be served. What its name answers
// follows; see CheckPolicyHost.
func (t *Team) servePolicy(ctx context.Context, domain dmarcd.Domain, _ string, base int64, v *dmarcd.RecordVersion) (serving, error) {
	if t.service.options.Policies == nil {
		return serving{}, &dmarcd.InvalidError{Field: "kind", Message: "This installation serves no MTA-STS policies. An operator has to set DMARCD_ZONE_ADDRESSES first."}
	}
	return serving{}, t.checkPolicy(ctx, domain, v, base)
}

// policyDraft returns what senders would find with a policy.
func policyDraft(text string) Draft {
	return Draft{Part: PartMTASTS, Record: "v=STSv1; id=1", Policy: text}
}

// The evidence for mode enforce.
const (
	enforceDays      = 10
	enforceReporters = 2
	enforceSessions  = 100
	enforcePeriod    = 30
)

// checkPolicy returns a *dmarcd.InvalidError for a policy that must not be served. It writes the policy
// in its usual form.
func (t *Team) checkPolicy(ctx context.Context, domain dmarcd.Domain, v *dmarcd.RecordVersion, base int64) error {
	invalid := func(message string) error { return &dmarcd.InvalidError{Field: "record", Message: message} }
	policy := mtasts.ParsePolicy(strings.ReplaceAll(v.Content, "\r\n", "\n"))
	switch {
	case !policy.Valid && len(policy.Problems) > 0:
		problem := policy.Problems[0]
		return invalid("Senders would not use this policy: " + problemText(string(problem.Kind), strings.TrimSpace(problem.Field+" "+problem.Text)))
	case policy.MaxAge > maxPolicyAge:
		return invalid("max_age is at most 7776000, 90 days: a policy that you leave has to be served for so long.")
	}
	v.Content = strings.TrimSpace(policy.String())
	if policy.Mode != mtasts.ModeEnforce {
		return nil
	}
	for _, server := range t.mailServers(ctx, domain.Name) {
		if !policy.Allows(server) {
			return invalid("The mail server " + server + " of the domain is not in the policy: senders would not deliver to it.")
		}
	}
	if base == 0 && t.servedElsewhere(ctx, domain.Name).Mode == mtasts.ModeEnforce {
		return nil
	}
	versions, err := t.team.RecordVersions(ctx, domain.Name)
	if err != nil || mtasts.ParsePolicy(latest(versions, v.Kind).Content).Mode == mtasts.ModeEnforce {
		return err
	}
	ready, err := t.mayEnforce(ctx, domain.Name)
	if err == nil && !ready {
		err = invalid(fmt.Sprintf("The mode enforce needs TLS reports of %d sessions or more from %d reporters on %d of %d days, without a failure. Publish the mode testing until then.",
			enforceSessions, enforceReporters, enforceDays, enforcePeriod))
	}
	return err
}

// servedElsewhere returns the policy that the last check found, the zero value for none.
func (t *Team) servedElsewhere(ctx context.Context, domain string) mtasts.Policy {
	last, err := t.team.LatestCheck(ctx, domain)
	if err != nil || last.Check.Facts == nil || last.Check.Facts.MTASTS.Fetch != mtasts.FetchOK.String() {
		return mtasts.Policy{}
	}
	found := last.Check.Facts.MTASTS
	policy := mtasts.ParsePolicy("version: STSv1\nmode: " + found.Mode + "\nmax_age: 1\n")
	policy.MX, policy.MaxAge = found.MX, min(time.Duration(found.MaxAge)*time.Second, maxPolicyAge)
	return policy
}

// mayEnforce reports whether TLS reports show that senders reach all mail servers over TLS.
func (t *Team) mayEnforce(ctx context.Context, domain string) (bool, error) {
	to := dmarcd.DayOf(t.service.options.Now())
	from := to - enforcePeriod
	e, err := t.team.TLSEvidence(ctx, domain, dmarcd.Days{From: &from, To: &to})
	return e.Failed == 0 && e.Days >= enforceDays && e.Reporters >= enforceReporters && e.Sessions >= enforceSessions, err
}

// firstPolicy returns the policy that a domain begins with: the one that it has, or its mail servers in
// mode testing.
func (t *Team) firstPolicy(ctx context.Context, domain string) (string, error) {
	if policy := t.servedElsewhere(ctx, domain); policy.Mode != mtasts.ModeUnstated {
		return policy.String(), nil
	}
	policy := mtasts.Policy{Mode: mtasts.ModeTesting, MaxAge: 7 * 24 * time.Hour, MX: t.mailServers(ctx, domain)}
	if len(policy.MX) == 0 {
		return "", &dmarcd.InvalidError{Field: "record", Message: domain + " has no MX records to begin with. Give the policy."}
	}
	return policy.String(), nil
}

// mailServers looks up the MX records of a domain.
func (t *Team) mailServers(ctx context.Context, domain string) (hosts []string) {
	for _, record := range t.service.options.DNS.Resolve(ctx, dns.Question{Name: domain, Type: dns.MX}).Records {
		if host := dns.Name(record.Host); host != "" {
			hosts = append(hosts, host)
		}
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

// addPolicy adds to a record what keeps its policy from being served, and the policy that is proposed
// next: with new mail servers, which are never added silently, or in mode enforce.
func (t *Team) addPolicy(ctx context.Context, domain string, r *ManagedRecord) error {
	host, err := t.service.store.PolicyHost(ctx, r.Label)
	switch {
	case err != nil:
		return err
	case host.Problem != "":
		r.Note = host.Problem
	case host.Published != host.ID:
		r.Note = "The policy is not served yet. It follows the CNAME records, within minutes."
	}
	policy := mtasts.ParsePolicy(r.Content)
	if policy.Mode != mtasts.ModeEnforce && policy.Mode != mtasts.ModeTesting {
		return nil
	}
	proposed := policy
	for _, server := range t.mailServers(ctx, domain) {
		if !policy.Allows(server) {
			proposed.MX = append(slices.Clone(proposed.MX), server)
		}
	}
	if policy.Mode == mtasts.ModeTesting && len(proposed.MX) == len(policy.MX) && host.Published == host.ID {
		ready, err := t.mayEnforce(ctx, domain)
		if err != nil {
			return err
		}
		if ready {
			proposed.Mode = mtasts.ModeEnforce
		}
	}
	if proposed.String() != policy.String() {
		r.Proposal = strings.TrimSpace(proposed.String())
	}
	return nil
}
