package store

import (
	"context"
	"time"
)

// ClaimJob leases a job that is due to this process, and reports whether it did. early claims
// it also before it is due, and extends a lease of this process. It is one statement on one
// row, a compare-and-set. On SQLite, which one daemon uses, jobs are always claimed.
func (s *Store) ClaimJob(ctx context.Context, name string, lease time.Duration, early bool) (claimed bool, err error) {
	if s.dialect.name == sqliteDialect.name {
		return true, nil
	}
	now := s.now()
	due := unix(now)
	if early {
		due = never
	}
	changed, err := s.exec(ctx, `INSERT INTO job_leases (name, holder, lease_until, due_at) VALUES ($1, $2, $3, $4)
		ON CONFLICT (name) DO UPDATE SET holder = EXCLUDED.holder, lease_until = EXCLUDED.lease_until
			WHERE job_leases.due_at <= $5 AND (job_leases.lease_until <= $4 OR job_leases.holder = $2)`,
		name, s.holder, unix(now.Add(lease)), unix(now), due)
	return changed > 0, err
}

// EndJob ends the lease of a job, if this process still has it, and sets when it is due again.
func (s *Store) EndJob(ctx context.Context, name string, next time.Duration) error {
	if s.dialect.name == sqliteDialect.name {
		return nil
	}
	_, err := s.exec(ctx, `UPDATE job_leases SET lease_until = 0, due_at = $1 WHERE name = $2 AND holder = $3`,
		unix(s.now().Add(next)), name, s.holder)
	return err
}
