package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store/db"
)

const teamColumns = `id, name, api, second_factor, approval, created_at`

func scanTeam(scan db.Scanner) (dmarcd.Team, error) {
	var team dmarcd.Team
	var createdAt int64
	err := scan(&team.ID, &team.Name, &team.API, &team.SecondFactor, &team.Approval, &createdAt)
	team.CreatedAt = fromUnix(createdAt)
	return team, err
}

// CreateTeam creates a team. api adds it to the API whitelist. An existing name is
// ErrConflict. The team dmarcd.DefaultTeam has no quotas; others have those of the
// installation.
func (s *Store) CreateTeam(ctx context.Context, name string, api bool, audit ...dmarcd.AuditEntry) (dmarcd.Team, error) {
	var team dmarcd.Team
	err := s.tx(ctx, func(t tx) (err error) {
		if team, err = t.createTeam(ctx, name, api); err != nil {
			return err
		}
		t.note(system, team.Name, audit...)
		return nil
	})
	return team, err
}

// teamsLock is the key of the advisory lock of a transaction that creates a team in a cluster:
// "teams" in ASCII.
const teamsLock = "499917090163"

func (t tx) createTeam(ctx context.Context, name string, api bool) (dmarcd.Team, error) {
	name, err := dmarcd.ParseTeamName(name)
	if err != nil {
		return dmarcd.Team{}, err
	}
	if t.store.db.Citus { // every server gets the row, in any order: two teams of one name would deadlock
		if _, err := t.Exec(ctx, `SELECT pg_advisory_xact_lock(`+teamsLock+`)`); err != nil {
			return dmarcd.Team{}, fmt.Errorf("create team: %w", err)
		}
	}
	team := dmarcd.Team{ID: dmarcd.TeamID(db.NewID()), Name: name, API: api, CreatedAt: t.store.now()}
	_, err = t.Exec(ctx, `INSERT INTO teams (`+teamColumns+`) VALUES ($1, $2, $3, FALSE, FALSE, $4)`,
		team.ID, team.Name, team.API, unix(team.CreatedAt))
	if err == nil {
		_, err = t.Exec(ctx, `INSERT INTO team_locks (team_id) VALUES ($1)`, team.ID)
	}
	if err == nil && name == dmarcd.DefaultTeam {
		_, err = t.Exec(ctx, `UPDATE teams SET quota_domains = 0, quota_stored = 0, quota_unreadable = 0, quota_reports = 0, quota_mailboxes = 0
			WHERE id = $1`, team.ID)
	}
	if err != nil {
		return dmarcd.Team{}, fmt.Errorf("create team: %w", err)
	}
	t.audit.of(team.ID).begins = true
	t.audit.of(system) // the log of the installation begins before that of the first team
	return team, nil
}

// Teams returns all teams, ordered by name.
func (s *Store) Teams(ctx context.Context) ([]dmarcd.Team, error) {
	return db.Collect(ctx, s.own(), `SELECT `+teamColumns+` FROM teams WHERE deleted_at = 0 ORDER BY name`, nil, scanTeam)
}

// TeamByName returns the team with that name, or ErrNotFound.
func (s *Store) TeamByName(ctx context.Context, name string) (dmarcd.Team, error) {
	return teamBy(ctx, s.own(), "name", name)
}

// teamBy returns the team with that value in a column.
func teamBy(ctx context.Context, from db.Querier, column string, value any) (dmarcd.Team, error) {
	return scanTeam(db.Row(ctx, from, `SELECT `+teamColumns+` FROM teams WHERE `+column+` = $1 AND deleted_at = 0`, value))
}

// SetAPI adds a team to the API whitelist or removes it. An unknown team is ErrNotFound.
func (s *Store) SetAPI(ctx context.Context, name string, allowed bool, audit ...dmarcd.AuditEntry) error {
	return s.audited(ctx, audit, name, func(t tx) error {
		team, err := teamBy(ctx, t, "name", name)
		if err != nil {
			return err
		}
		err = t.ExecOr(ctx, dmarcd.ErrNotFound, `UPDATE teams SET api = $1 WHERE id = $2`, allowed, team.ID)
		if err != nil || !s.db.Citus {
			return err
		}
		// Wait for transactions that use its tokens, which do not lock the team. The lock keeps new
		// tokens out.
		if err := s.Team(team.ID).lock(ctx, t); err != nil {
			return err
		}
		_, err = db.Collect(ctx, t, `SELECT id FROM tokens WHERE team_id = $1 ORDER BY id`+s.db.LockRow, []any{team.ID}, db.Value[dmarcd.TokenID])
		return err
	})
}

// TeamSize is a team with its usage, and how well its domains are protected.
type TeamSize struct {
	dmarcd.Team
	Members int
	Quota   dmarcd.Quota
	Usage   dmarcd.Usage
	// Messages counts the given days.
	Messages int64
	// Stages and Grades count domains, by the words of PostureFilter.
	Stages, Grades map[string]int
	// Mail adds up the postures of the domains.
	Mail dmarcd.MailCounts
}

// TeamSizes returns all teams with their usage, ordered by name.
func (s *Store) TeamSizes(ctx context.Context, days dmarcd.Days) ([]TeamSize, error) {
	sizes, err := db.Collect(ctx, s.own(), `SELECT `+teamColumns+` FROM teams WHERE deleted_at = 0 ORDER BY name`, nil, func(scan db.Scanner) (TeamSize, error) {
		team, err := scanTeam(scan)
		return TeamSize{Team: team, Stages: map[string]int{}, Grades: map[string]int{}}, err
	})
	if err != nil {
		return nil, err
	}
	of := make(map[dmarcd.TeamID]*TeamSize, len(sizes))
	for i := range sizes {
		of[sizes[i].ID] = &sizes[i]
	}

	// In a cluster the tables are on different servers.
	from, to := bounds(days)
	for _, sum := range []struct {
		query string
		args  []any
		set   func(size *TeamSize, sum int64)
	}{
		{`COUNT(*) FROM members`, nil, func(size *TeamSize, sum int64) { size.Members = int(sum) }},
		{`CAST(SUM(compliant + non_compliant) AS BIGINT) FROM team_days WHERE day BETWEEN $1 AND $2`, []any{from, to}, func(size *TeamSize, sum int64) { size.Messages = sum }},
	} {
		sums, err := db.CollectMap[dmarcd.TeamID, int64](ctx, s.own(), `SELECT team_id, `+sum.query+` GROUP BY team_id`, sum.args...)
		if err != nil {
			return nil, err
		}
		for i := range sizes {
			sum.set(&sizes[i], sums[sizes[i].ID])
		}
	}
	err = s.eachUsage(ctx, func(team dmarcd.TeamID, quota dmarcd.Quota, usage dmarcd.Usage) {
		if size := of[team]; size != nil { // it may be new
			size.Quota, size.Usage = quota, usage
		}
	})
	if err != nil {
		return nil, err
	}
	return sizes, s.own().Query(ctx, `SELECT domains.team_id, `+stageWord+`, `+gradeWord+`, COUNT(*), CAST(COALESCE(SUM(postures.messages), 0) AS BIGINT),
			CAST(COALESCE(SUM(postures.yours), 0) AS BIGINT), CAST(COALESCE(SUM(postures.yours_passing), 0) AS BIGINT)
		FROM domains LEFT JOIN postures ON postures.team_id = domains.team_id AND postures.domain_id = domains.id
		WHERE domains.deleted_at = 0 GROUP BY 1, 2, 3`, nil, func(scan db.Scanner) error {
		var team dmarcd.TeamID
		var stage, grade string
		var domains int
		var mail dmarcd.MailCounts
		if err := scan(&team, &stage, &grade, &domains, &mail.Messages, &mail.Yours, &mail.YoursPassing); err != nil {
			return err
		}
		if size := of[team]; size != nil {
			size.Stages[stage] += domains
			size.Grades[grade] += domains
			size.Mail.Messages, size.Mail.Yours, size.Mail.YoursPassing = size.Mail.Messages+mail.Messages, size.Mail.Yours+mail.Yours, size.Mail.YoursPassing+mail.YoursPassing
		}
		return nil
	})
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
	rows, err := db.Collect(ctx, s.own(), `SELECT teams.id, teams.name, teams.api, teams.second_factor, teams.approval, teams.created_at, members.user_id, members.role
		FROM members JOIN teams ON teams.id = members.team_id ORDER BY teams.name`, nil, func(scan db.Scanner) (owned, error) {
		var o owned
		var err error
		o.Team, err = scanTeam(scan.Before(&o.user, &o.Role))
		return o, err
	})
	all := make(map[dmarcd.UserID][]dmarcd.Membership)
	for _, row := range rows {
		all[row.user] = append(all[row.user], row.Membership)
	}
	return all, err
}

// SetReportDomain records the report domain of the daemon. It decides, with the DNS, which domains
// are active: every command on the database must use the same.
func (s *Store) SetReportDomain(ctx context.Context, domain string) error {
	_, err := s.exec(ctx, `INSERT INTO installation (name, value) VALUES ('report_domain', $1)
		ON CONFLICT (name) DO UPDATE SET value = excluded.value`, domain)
	return err
}

// ReportDomain returns the report domain that a daemon recorded last; recorded is false
// if none has run on this database.
func (s *Store) ReportDomain(ctx context.Context) (domain string, recorded bool, err error) {
	err = s.own().QueryRow(ctx, `SELECT value FROM installation WHERE name = 'report_domain'`, nil, &domain)
	if errors.Is(err, dmarcd.ErrNotFound) {
		return "", false, nil
	}
	return domain, err == nil, err
}

// Retention is how long data is stored; 0 means forever.
type Retention struct {
	// Originals applies to the original bytes.
	Originals time.Duration
	// Rejected applies to rejected items with their originals.
	Rejected time.Duration
	// Records applies to the records of reports, from the end of their period; failure and TLS
	// reports lose their document then.
	Records time.Duration
	// Counters applies to daily counters and the rows of their reports: until then a report is
	// recognized as a duplicate.
	Counters time.Duration
	// Failure applies to failure reports with their originals. They describe single messages and
	// are not counted.
	Failure time.Duration
	// Audit applies to the audit log. Entries limits the entries of a team in each of the audit
	// log, the events and the deliveries; 0 is no limit. Both are settings of the installation.
	Audit   time.Duration
	Entries int64
}

// AsConfigured in a team's Retention means the setting of the installation.
const AsConfigured = -time.Second

// SetRetention sets the team's retention. The other fields are ignored: they are settings of
// the installation.
func (t *Team) SetRetention(ctx context.Context, retention Retention, audit ...dmarcd.AuditEntry) error {
	return t.change(ctx, audit, `UPDATE teams SET retention_originals = $1, retention_records = $2, retention_counters = $3 WHERE id = $4`,
		int64(retention.Originals/time.Second), int64(retention.Records/time.Second), int64(retention.Counters/time.Second), t.id)
}

// Retention returns the team's retention, AsConfigured for unset fields.
func (t *Team) Retention(ctx context.Context) (Retention, error) {
	return scanRetention(db.Row(ctx, t.store, `SELECT retention_originals, retention_records, retention_counters FROM teams WHERE id = $1`, t.id))
}

func scanRetention(scan db.Scanner) (Retention, error) {
	var originals, records, counters int64
	err := scan(&originals, &records, &counters)
	return Retention{
		Originals: time.Duration(originals) * time.Second, Rejected: AsConfigured, Failure: AsConfigured,
		Records: time.Duration(records) * time.Second, Counters: time.Duration(counters) * time.Second,
	}, err
}

// records returns how long records are stored: at most as long as their reports.
func (r Retention) records() time.Duration {
	if r.Records == 0 || r.Counters > 0 && r.Counters < r.Records {
		return r.Counters
	}
	return r.Records
}

// Or fills unset fields from the settings of the installation.
func (r Retention) Or(configured Retention) Retention {
	choose := func(own, other time.Duration) time.Duration {
		if own < 0 {
			return other
		}
		return own
	}
	return Retention{
		Originals: choose(r.Originals, configured.Originals), Rejected: choose(r.Rejected, configured.Rejected),
		Records: choose(r.Records, configured.Records), Counters: choose(r.Counters, configured.Counters),
		Failure: choose(r.Failure, configured.Failure), Audit: configured.Audit, Entries: configured.Entries,
	}
}
