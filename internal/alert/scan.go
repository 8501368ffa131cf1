package alert

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/dmarcd/dmarcd"
)

const (
	// lease is how long a claim holds: enough to judge a batch of domains.
	lease = 5 * time.Minute
	// batch is how many domains of a team are judged before the next team has its turn.
	batch = 100
)

// Batch is what is judged at once.
type Batch struct {
	Domains []dmarcd.DomainMail
	// Rejected are the reports of the team that could not be read, by day.
	Rejected map[dmarcd.Day]int64
	// Incidents are those that are known.
	Incidents []dmarcd.Incident
}

// Source is where mail is read from and detections go.
type Source interface {
	// AlertTeams returns the teams whose alerts are due.
	AlertTeams(ctx context.Context) ([]dmarcd.TeamID, error)
	// Claim claims the scan of a team; ok is false if another has it.
	Claim(ctx context.Context, team dmarcd.TeamID, lease time.Duration) (scan dmarcd.AlertScan, ok bool, err error)
	// Read returns up to limit domains of a scan, and the incidents since a day.
	Read(ctx context.Context, scan dmarcd.AlertScan, limit int, since dmarcd.Day) (Batch, error)
	// Save stores what was detected. It is dmarcd.ErrConflict if the claim ended.
	Save(ctx context.Context, scan dmarcd.AlertScan, fresh []dmarcd.Detection, extended []dmarcd.Incident) error
	// End gives the claim back after a domain was judged; 0 ends the pass.
	End(ctx context.Context, scan dmarcd.AlertScan, after dmarcd.DomainID) error
}

// Scanner detects the alerts of all teams.
type Scanner struct {
	Source Source
	Now    func() time.Time
}

// Step judges a batch of domains of each team that is due, and reports whether there is more
// to do. What fails for one team is done for the others all the same.
func (s *Scanner) Step(ctx context.Context) (more bool, err error) {
	teams, err := s.Source.AlertTeams(ctx)
	if err != nil {
		return false, err
	}
	rand.Shuffle(len(teams), func(i, j int) { teams[i], teams[j] = teams[j], teams[i] }) //nolint:gosec // no secret
	var errs []error
	for _, team := range teams {
		again, err := s.team(ctx, team)
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		more = more || again
		if !errors.Is(err, dmarcd.ErrConflict) { // another process took over
			errs = append(errs, err)
		}
	}
	return more, errors.Join(errs...)
}

func (s *Scanner) team(ctx context.Context, team dmarcd.TeamID) (more bool, err error) {
	scan, ok, err := s.Source.Claim(ctx, team, lease)
	if err != nil || !ok {
		return false, err
	}
	today := dmarcd.DayOf(s.Now())
	read, err := s.Source.Read(ctx, scan, batch, today-Days)
	if err != nil {
		return false, err
	}
	var found []dmarcd.Detection
	for _, domain := range read.Domains {
		found = append(found, Detect(domain, today)...)
	}
	if scan.After == 0 { // once in each pass
		found = append(found, Rejected(read.Rejected, today)...)
	}
	fresh, extended := Merge(read.Incidents, found)
	if err := s.Source.Save(ctx, scan, fresh, extended); err != nil {
		return false, err
	}
	var last dmarcd.DomainID
	if len(read.Domains) == batch {
		last = read.Domains[batch-1].ID
	}
	return last != 0, s.Source.End(ctx, scan, last)
}
