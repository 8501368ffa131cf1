package store

import (
	"context"
	"errors"

	"github.com/dmarcd/dmarcd"
)

// TeamSize is a team with its usage.
type TeamSize struct {
	dmarcd.Team
	Domains, Members int
	// Messages counts the given days.
	Messages int64
	// Stored is in bytes; a StoredQuota of 0 is unlimited.
	Stored, StoredQuota int64
}

// TeamSizes returns all teams with their usage, ordered by name.
func (s *Store) TeamSizes(ctx context.Context, days dmarcd.Days) ([]TeamSize, error) {
	sizes, err := collectRead(ctx, s.own(), `SELECT `+teamColumns+`, quota_stored FROM teams ORDER BY name`, nil, func(scan scanner) (TeamSize, error) {
		var size TeamSize
		var err error
		size.Team, err = scanTeam(scan.before(&size.StoredQuota))
		if size.StoredQuota == dmarcd.QuotaDefault {
			size.StoredQuota = s.options.Quota[dmarcd.QuotaStored]
		}
		return size, err
	})
	if err != nil {
		return nil, err
	}

	// In a cluster the tables are on different servers.
	from, to := bounds(days)
	for _, sum := range []struct {
		query string
		args  []any
		set   func(size *TeamSize, sum int64)
	}{
		{`COUNT(*) FROM domains WHERE deleted_at = 0`, nil, func(size *TeamSize, sum int64) { size.Domains = int(sum) }},
		{`COUNT(*) FROM members`, nil, func(size *TeamSize, sum int64) { size.Members = int(sum) }},
		{`CAST(SUM(compliant + non_compliant) AS BIGINT) FROM team_days WHERE day BETWEEN $1 AND $2`, []any{from, to}, func(size *TeamSize, sum int64) { size.Messages = sum }},
		{`CAST(SUM(stored) AS BIGINT) FROM team_usage`, nil, func(size *TeamSize, sum int64) { size.Stored = sum }},
	} {
		sums, err := inRead(ctx, s.own(), func(read tx) (map[dmarcd.TeamID]int64, error) {
			return collectMap[dmarcd.TeamID, int64](ctx, read, `SELECT team_id, `+sum.query+` GROUP BY team_id`, sum.args...)
		})
		if err != nil {
			return nil, err
		}
		for i := range sizes {
			sum.set(&sizes[i], sums[sizes[i].ID])
		}
	}
	return sizes, nil
}

// TeamByID returns the team with that id, or ErrNotFound.
func (s *Store) TeamByID(ctx context.Context, id dmarcd.TeamID) (dmarcd.Team, error) {
	return teamBy(ctx, s.own(), "id", id)
}

// AllMemberships returns the teams of all users, ordered by name.
func (s *Store) AllMemberships(ctx context.Context) (map[dmarcd.UserID][]dmarcd.Membership, error) {
	type owned struct {
		user dmarcd.UserID
		dmarcd.Membership
	}
	rows, err := collectRead(ctx, s.own(), `SELECT teams.id, teams.name, teams.api, teams.created_at, members.user_id, members.role
		FROM members JOIN teams ON teams.id = members.team_id ORDER BY teams.name`, nil, func(scan scanner) (owned, error) {
		var o owned
		var err error
		o.Team, err = scanTeam(scan.before(&o.user, &o.Role))
		return o, err
	})
	all := make(map[dmarcd.UserID][]dmarcd.Membership)
	for _, row := range rows {
		all[row.user] = append(all[row.user], row.Membership)
	}
	return all, err
}

// SetReportDomain records the report domain of the daemon. Together with the DNS it
// decides which domains are active, so every command on the database must use the same.
func (s *Store) SetReportDomain(ctx context.Context, domain string) error {
	_, err := s.exec(ctx, `INSERT INTO installation (name, value) VALUES ('report_domain', $1)
		ON CONFLICT (name) DO UPDATE SET value = excluded.value`, domain)
	return err
}

// ReportDomain returns the report domain that a daemon recorded last; recorded is false
// if none has run on this database.
func (s *Store) ReportDomain(ctx context.Context) (domain string, recorded bool, err error) {
	err = s.own().queryRow(ctx, `SELECT value FROM installation WHERE name = 'report_domain'`, nil, &domain)
	if errors.Is(err, dmarcd.ErrNotFound) {
		return "", false, nil
	}
	return domain, err == nil, err
}
