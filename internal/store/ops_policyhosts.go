package store

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/store/db"
	"github.com/dmarcd/dmarcd/mtasts"
)

// PolicyLease is how long a replica may serve MTA-STS policies after its last PolicyLeases.
const PolicyLease = 30 * time.Second

// clockSkew is how far the clocks of replicas may be apart.
const clockSkew = 30 * time.Second

// withdrawn is the policy of a domain whose record was stopped (RFC 8461 §8.3).
const withdrawn = "version: STSv1\nmode: none\nmax_age: 86400\n"

// PolicyHost is the host mta-sts.Domain of a managed MTA-STS record.
type PolicyHost struct {
	Label  string        // of the zone; it decides which record of a domain is served
	Team   dmarcd.TeamID // 0 for a stopped record
	Domain string
	// Policy is what is served, and ID names it. Published is the ID in the TXT record, "" before the
	// host can be reached.
	Policy, ID, Published string
	// Version numbers the changes that replicas have to know of.
	Version int64
	// Verified means that the CNAME record leads to Label.
	Verified bool
	// NotAfter is when the certificate ends, zero without one, RenewAt when to replace it.
	NotAfter, RenewAt time.Time
	// Failures counts consecutive failures, Problem is the last one.
	Failures int
	Problem  string
	// ExpiresAt is when a stopped record is not served any more, zero for one in use.
	ExpiresAt time.Time
}

const policyColumns = `label, team, domain, policy, policy_id, published_id, version, verified, not_after, renew_at, failures, problem, expires_at`

func scanPolicyHost(scan db.Scanner) (h PolicyHost, err error) {
	var verified, notAfter, renew, expires int64
	err = scan(&h.Label, &h.Team, &h.Domain, &h.Policy, &h.ID, &h.Published, &h.Version, &verified, &notAfter, &renew, &h.Failures, &h.Problem, &expires)
	h.Verified = verified != 0
	h.NotAfter, h.RenewAt, h.ExpiresAt = fromUnix(notAfter), fromUnix(renew), fromUnix(expires)
	return h, err
}

// nextPolicies returns the next version of policies. The row stays locked until the commit, so that
// versions are in the order of commits.
func (tx tx) nextPolicies(ctx context.Context) (version int64, err error) {
	err = tx.QueryRow(ctx, `UPDATE zone SET policies = policies + 1 RETURNING policies`, nil, &version)
	return version, err
}

// newPolicyID returns the id of a policy: 32 characters, most of them random.
func newPolicyID() string { return "d" + newLabel() }

// savePolicy has the host of a domain serve a version of its policy.
func (tx tx) savePolicy(ctx context.Context, team dmarcd.TeamID, domain string, v dmarcd.RecordVersion) error {
	version, err := tx.nextPolicies(ctx)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `INSERT INTO policy_hosts (label, team, domain, policy, policy_id, published_id, version, verified, not_after, renew_at, failures, problem, expires_at, due_at)
		VALUES ($1, $2, $3, $4, $5, '', $6, 0, 0, 0, 0, '', 0, $7)
		ON CONFLICT (label) DO UPDATE SET policy = excluded.policy, policy_id = excluded.policy_id, version = excluded.version, due_at = excluded.due_at`,
		v.Label, team, domain, v.Content, newPolicyID(), version, unix(tx.store.now()))
	return err
}

// withdrawPolicies has the hosts of records that are stopped serve that there is no policy.
func (tx tx) withdrawPolicies(ctx context.Context, labels []string, expires time.Time) error {
	list, args := db.In(nil, labels)
	hosts, err := db.Collect(ctx, tx, `SELECT `+policyColumns+` FROM policy_hosts WHERE expires_at = 0 AND label IN `+list, args, scanPolicyHost)
	if err != nil || len(hosts) == 0 {
		return err
	}
	version, err := tx.nextPolicies(ctx)
	for _, h := range hosts {
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `UPDATE policy_hosts SET team = $1, policy = $2, policy_id = $3, version = $4, due_at = $5, expires_at = $6, failures = 0 WHERE label = $7`,
			system, withdrawn, newPolicyID(), version, unix(tx.store.now()), unix(expires), h.Label)
	}
	return err
}

// PolicyHosts returns the version of policies, and the hosts that changed after another version.
func (s *Store) PolicyHosts(ctx context.Context, since int64) (version int64, changed []PolicyHost, err error) {
	err = s.own().QueryRow(ctx, `SELECT policies FROM zone`, nil, &version)
	if err != nil || version == since {
		return version, nil, err
	}
	changed, err = db.Collect(ctx, s.own(), `SELECT `+policyColumns+` FROM policy_hosts WHERE version > $1 AND version <= $2 ORDER BY version, verified`,
		[]any{since, version}, scanPolicyHost)
	return version, changed, err
}

// PolicyHost returns the host of a label, or dmarcd.ErrNotFound.
func (s *Store) PolicyHost(ctx context.Context, label string) (PolicyHost, error) {
	return policyHost(ctx, s.own(), label, "")
}

// policyHost reads a host; lock is "" or that of the row.
func policyHost(ctx context.Context, q db.Querier, label, lock string) (PolicyHost, error) {
	hosts, err := db.Collect(ctx, q, `SELECT `+policyColumns+` FROM policy_hosts WHERE label = $1`+lock, []any{label}, scanPolicyHost)
	if err == nil && len(hosts) == 0 {
		err = dmarcd.ErrNotFound
	}
	if err != nil {
		return PolicyHost{}, err
	}
	return hosts[0], nil
}

// LeasePolicies records that this process serves a version of policies, for as long as PolicyLease.
// What a process reads after this call is at least what was committed before PublishPolicy stopped to
// wait for it.
func (s *Store) LeasePolicies(ctx context.Context, version int64) error {
	_, err := s.exec(ctx, `INSERT INTO policy_replicas (holder, version, lease_until) VALUES ($1, $2, $3)
		ON CONFLICT (holder) DO UPDATE SET version = excluded.version, lease_until = excluded.lease_until`,
		s.holder, version, unix(s.now().Add(PolicyLease)))
	return err
}

// EndPolicies records that this process serves no policies any more.
func (s *Store) EndPolicies(ctx context.Context) error {
	_, err := s.exec(ctx, `DELETE FROM policy_replicas WHERE holder = $1 OR lease_until <= $2`, s.holder, unix(s.now().Add(-time.Hour)))
	return err
}

// servedByAll reports whether every replica that serves policies knows of a version. At least one has
// to.
func (s *Store) servedByAll(ctx context.Context, q db.Querier, version int64) (bool, error) {
	var behind, there int64
	err := q.QueryRow(ctx, `SELECT COALESCE(SUM(CASE WHEN version < $1 THEN 1 ELSE 0 END), 0), COUNT(*) FROM policy_replicas WHERE lease_until > $2`,
		[]any{version, unix(s.now().Add(-clockSkew))}, &behind, &there)
	return behind == 0 && there > 0, err
}

// PolicyServed reports whether every replica serves what a version of policies says.
func (s *Store) PolicyServed(ctx context.Context, version int64) (bool, error) {
	return s.servedByAll(ctx, s.own(), version)
}

// ServePolicyHost has the name of a host answer with base, its addresses and CAA records, and its TXT
// record.
func (s *Store) ServePolicyHost(ctx context.Context, label string, base []ZoneRecord) error {
	return s.updatePolicyHost(ctx, label, func(tx tx, h PolicyHost) error { return tx.serve(ctx, label, policyRecords(base, h.Published)) })
}

// updatePolicyHost runs update with a locked host. The zone is locked first, as by all who change both.
func (s *Store) updatePolicyHost(ctx context.Context, label string, update func(tx tx, h PolicyHost) error) error {
	return s.Team(system).retryTx(ctx, func(tx tx) error {
		if err := tx.lockZone(ctx); err != nil {
			return err
		}
		h, err := policyHost(ctx, tx, label, s.db.LockRow)
		if err != nil {
			return err
		}
		return update(tx, h)
	})
}

// lockZone locks the zone until the commit.
func (tx tx) lockZone(ctx context.Context) error {
	var name string
	return tx.QueryRow(ctx, `SELECT name FROM zone`+tx.store.db.LockRow, nil, &name)
}

// policyRecords replaces the TXT record among the records of a host with that of a published id.
func policyRecords(base []ZoneRecord, published string) []ZoneRecord {
	base = slices.DeleteFunc(slices.Clone(base), func(r ZoneRecord) bool { return r.Type == dns.TXT })
	if published == "" {
		return base
	}
	return append(base, ZoneRecord{Type: dns.TXT, Data: mtasts.Record{ID: published}.String()})
}

// PublishPolicy publishes the id of a policy, if no replica can serve another policy and the host still
// has this one. It reports whether it did.
func (s *Store) PublishPolicy(ctx context.Context, h PolicyHost) (published bool, err error) {
	err = s.updatePolicyHost(ctx, h.Label, func(tx tx, now PolicyHost) error {
		served, err := s.servedByAll(ctx, tx, now.Version)
		if published = served && now.ID == h.ID && now.Verified; err != nil || !published {
			return err
		}
		if _, err := tx.Exec(ctx, `UPDATE policy_hosts SET published_id = $1 WHERE label = $2`, h.ID, h.Label); err != nil {
			return err
		}
		name, err := db.Collect(ctx, tx, `SELECT label, content FROM zone_names WHERE label = $1`, []any{h.Label}, scanZoneName)
		if err != nil || len(name) == 0 {
			return err
		}
		return tx.serve(ctx, h.Label, policyRecords(name[0].Records, h.ID))
	})
	return published, err
}

// VerifyPolicyHost records whether the CNAME record of a domain leads to a label. Other records of the
// domain, which another team may have, then are not served.
func (s *Store) VerifyPolicyHost(ctx context.Context, label string, verified bool) (h PolicyHost, err error) {
	err = s.updatePolicyHost(ctx, label, func(tx tx, now PolicyHost) error {
		if h = now; h.Verified == verified {
			return nil
		}
		version, err := tx.nextPolicies(ctx)
		if err != nil {
			return err
		}
		if verified {
			_, err = tx.Exec(ctx, `UPDATE policy_hosts SET verified = 0, version = $1 WHERE domain = $2 AND verified = 1`, version, h.Domain)
		}
		if err != nil {
			return err
		}
		h.Verified, h.Version = verified, version
		_, err = tx.Exec(ctx, `UPDATE policy_hosts SET verified = $1, version = $2 WHERE label = $3`, map[bool]int{true: 1}[verified], version, label)
		return err
	})
	return h, err
}

// CertifyPolicyHost records the certificate of a host.
func (s *Store) CertifyPolicyHost(ctx context.Context, label string, notAfter, renewAt time.Time) (h PolicyHost, err error) {
	err = s.updatePolicyHost(ctx, label, func(tx tx, now PolicyHost) error {
		h = now
		h.NotAfter, h.RenewAt = notAfter, renewAt
		if !now.NotAfter.Equal(notAfter) { // another certificate, which replicas load
			if h.Version, err = tx.nextPolicies(ctx); err != nil {
				return err
			}
		}
		_, err := tx.Exec(ctx, `UPDATE policy_hosts SET not_after = $1, renew_at = $2, version = $3 WHERE label = $4`, unix(notAfter), unix(renewAt), h.Version, label)
		return err
	})
	return h, err
}

// PolicyHostChecked ends a claim: the host is due again at a time, unless it was changed meanwhile.
// problem is "" after success.
func (s *Store) PolicyHostChecked(ctx context.Context, h PolicyHost, due time.Time, problem string) error {
	failures := h.Failures + 1
	if problem == "" {
		failures = 0
	}
	_, err := s.exec(ctx, `UPDATE policy_hosts SET due_at = $1, failures = $2, problem = $3 WHERE label = $4 AND policy_id = $5`,
		unix(due), failures, db.Cut(problem, maxProblem), h.Label, h.ID)
	return err
}

const maxProblem = 500

// PolicyTeams returns the teams with hosts that are due.
func (s *Store) PolicyTeams(ctx context.Context) ([]dmarcd.TeamID, error) {
	return s.teamIDs(ctx, `SELECT DISTINCT team FROM policy_hosts WHERE due_at <= $1`, unix(s.now()))
}

// ClaimPolicyHosts claims hosts that are due, up to slots[team] of each team, renewals first.
func (s *Store) ClaimPolicyHosts(ctx context.Context, lease time.Duration, slots map[dmarcd.TeamID]int) (claimed []PolicyHost, err error) {
	err = s.Team(system).retryTx(ctx, func(tx tx) error {
		var args [][]any
		for _, team := range slices.Sorted(maps.Keys(slots)) {
			args = append(args, []any{int64(team), unix(s.now()), unix(s.now().Add(lease)), slots[team]})
		}
		claimed, err = db.CollectEach(ctx, tx.Tx, `UPDATE policy_hosts SET due_at = $3 WHERE label`+s.db.Claimed(`SELECT label FROM policy_hosts
			WHERE team = $1 AND due_at <= $2 ORDER BY CASE WHEN not_after > 0 THEN 0 ELSE 1 END, due_at LIMIT $4`)+` RETURNING `+policyColumns, args, scanPolicyHost)
		return err
	})
	return claimed, err
}

// RemovePolicyHost removes a host whose time is over, and reports whether another record of the domain
// needs its certificate.
func (s *Store) RemovePolicyHost(ctx context.Context, label string) (shared bool, err error) {
	err = s.updatePolicyHost(ctx, label, func(tx tx, h PolicyHost) error {
		if h.ExpiresAt.IsZero() || h.ExpiresAt.After(s.now()) {
			return dmarcd.ErrConflict
		}
		if _, err := tx.Exec(ctx, `DELETE FROM policy_hosts WHERE label = $1`, label); err != nil {
			return err
		}
		return tx.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM policy_hosts WHERE domain = $1)`, []any{h.Domain}, &shared)
	})
	if errors.Is(err, dmarcd.ErrNotFound) {
		return true, nil
	}
	return shared, err
}

// The limits of orders: of all, and of those of an organizational domain. Let's Encrypt's are 300 in
// three hours and 50 a week. The last fifth is for renewals.
const (
	maxOrders             = 250
	ordersPeriod          = 3 * time.Hour
	maxOrganizationOrders = 40
	organizationPeriod    = 7 * 24 * time.Hour
	forRenewals           = 5
)

// CountOrder counts an order of a certificate for a host of an organizational domain. If it is above
// the limits, or the authority asked to wait, it is not counted, and wait is when to try again.
func (s *Store) CountOrder(ctx context.Context, organization string, renewal bool) (wait time.Time, err error) {
	now := s.now()
	err = s.Team(system).retryTx(ctx, func(tx tx) error {
		wait = time.Time{}
		if err := tx.lockZone(ctx); err != nil { // one replica at a time
			return err
		}
		var until int64
		err := tx.QueryRow(ctx, `SELECT COALESCE(MAX(until), 0) FROM certificate_pauses WHERE organization IN ('', $1)`, []any{organization}, &until)
		if err != nil {
			return err
		}
		if until > unix(now) {
			wait = fromUnix(until)
			return nil
		}
		for _, limit := range []struct {
			where  string
			arg    string
			most   int
			period time.Duration
		}{{`organization >= $2`, "", maxOrders, ordersPeriod}, {`organization = $2`, organization, maxOrganizationOrders, organizationPeriod}} {
			most := limit.most
			if !renewal {
				most -= most / forRenewals
			}
			var counted int
			var oldest int64
			if err := tx.QueryRow(ctx, `SELECT COUNT(*), COALESCE(MIN(ordered_at), 0) FROM certificate_orders WHERE ordered_at > $1 AND `+limit.where,
				[]any{unix(now.Add(-limit.period)), limit.arg}, &counted, &oldest); err != nil {
				return err
			}
			if counted >= most {
				wait = fromUnix(oldest).Add(limit.period)
				return nil
			}
		}
		for _, old := range []string{`DELETE FROM certificate_orders WHERE ordered_at <= $1`, `DELETE FROM certificate_pauses WHERE until <= $1`} {
			if _, err := tx.Exec(ctx, old, unix(now.Add(-organizationPeriod))); err != nil {
				return err
			}
		}
		_, err = tx.Exec(ctx, `INSERT INTO certificate_orders (organization, ordered_at) VALUES ($1, $2)`, organization, unix(now))
		return err
	})
	return wait, err
}

// PauseOrders has orders for hosts of an organizational domain wait, or all orders for "".
func (s *Store) PauseOrders(ctx context.Context, organization string, until time.Time) error {
	_, err := s.exec(ctx, `INSERT INTO certificate_pauses (organization, until) VALUES ($1, $2)
		ON CONFLICT (organization) DO UPDATE SET until = excluded.until`, organization, unix(until))
	return err
}
