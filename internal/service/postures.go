package service

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/memory"
	"github.com/dmarcd/dmarcd/internal/store"
)

const (
	// postureAge is the age at which a posture is computed again even if nothing has changed: names of
	// senders and the catalogue change. One of which the input has changed is computed again when
	// RefreshPostures comes to its team.
	postureAge = 24 * time.Hour
	// resavedAfter is the age from which an unchanged posture is saved again.
	resavedAfter = 5 * time.Minute
	// posturesAtOnce is the number of domains that RefreshPostures examines at once, postureStep how
	// long one call works.
	posturesAtOnce = 1000
	postureStep    = time.Second / 4
	// savePosturesIn limits the time that a page waits until its postures are saved.
	savePosturesIn = 2 * time.Second
)

// Postures returns domains with their stored postures: the stage, the next action and the counts of 30
// days. They are what the domain's own page showed when it was last opened, and at most some minutes
// older than a change of the DNS, of the mail or of a class; see RefreshPostures. No advice is
// computed.
func (t *Team) Postures(ctx context.Context, filter PostureFilter) ([]PostureRow, error) {
	return see(t, func() ([]PostureRow, error) { return t.team.Postures(ctx, filter) })
}

// PostureCounts counts all domains that match the search of a filter and the tag, whatever else it
// selects.
func (t *Team) PostureCounts(ctx context.Context, filter PostureFilter) ([]PostureCount, error) {
	return see(t, func() ([]PostureCount, error) { return t.team.PostureCounts(ctx, filter) })
}

// savePostures stores postures that were computed, unless they are stored. An error is logged: the
// next computation saves them.
func (t *Team) savePostures(ctx context.Context, computed []store.StoredPosture) {
	if len(computed) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, savePosturesIn)
	defer cancel()
	team := t.service.store.Team(t.team.ID()) // a user who only reads may have them saved
	ids := make([]dmarcd.DomainID, len(computed))
	for i, p := range computed {
		ids[i] = p.Domain
	}
	stored, err := team.StoredPostures(ctx, ids)
	var changed []store.StoredPosture
	for _, p := range computed {
		known := stored[p.Domain]
		recent := p.ComputedAt.Sub(known.ComputedAt) < resavedAfter
		if known.ComputedAt = p.ComputedAt; known != p || !recent {
			changed = append(changed, p)
		}
	}
	if err == nil && len(changed) > 0 {
		err = team.SavePostures(ctx, changed)
	}
	if err != nil && ctx.Err() == nil {
		t.service.options.Log.WarnContext(ctx, "postures of domains not saved", "error", err)
	}
}

// postureWalk is where RefreshPostures is.
type postureWalk struct {
	sync.Mutex
	// teams are still to be visited, the first from the domain after that name on.
	teams []dmarcd.TeamID
	after string
	next  time.Time // when it continues
}

// RefreshPostures computes the outdated postures of all teams, in 5 % of the time: it examines some
// domains after those of the previous call, and begins again after the last team. more is false: the
// caller waits.
func (s *Service) RefreshPostures(ctx context.Context) (more bool, err error) {
	w := &s.postures
	w.Lock()
	defer w.Unlock()
	begin := s.options.Now()
	if begin.Before(w.next) {
		return false, nil
	}
	defer func() {
		end := s.options.Now()
		w.next = end.Add(refreshFactor * end.Sub(begin))
	}()
	if len(w.teams) == 0 {
		teams, err := s.store.Teams(ctx)
		if err != nil {
			return false, err
		}
		for _, team := range teams {
			w.teams = append(w.teams, team.ID)
		}
	}
	for len(w.teams) > 0 && s.options.Now().Sub(begin) < postureStep && err == nil {
		t, after := s.Team(w.teams[0], CommandLine()), w.after
		w.teams, w.after = w.teams[1:], "" // a team that fails must not stop the others
		var last string
		if last, err = t.refreshPostures(ctx, after); last != "" {
			w.teams, w.after = append([]dmarcd.TeamID{t.team.ID()}, w.teams...), last
		}
	}
	if errors.Is(err, memory.ErrBusy) {
		err = nil // next time
	}
	return false, err
}

// refreshPostures computes the outdated postures of the first domains after a name. It returns the
// last one of them, "" at the end.
func (t *Team) refreshPostures(ctx context.Context, after string) (last string, err error) {
	domains, err := t.team.Domains(ctx, after, posturesAtOnce)
	if err != nil || len(domains) == 0 {
		return "", err
	}
	bases, err := t.adviceBases(ctx, domains)
	if err != nil {
		return "", err
	}
	ids := make([]dmarcd.DomainID, len(domains))
	for i, domain := range domains {
		ids[i] = domain.ID
	}
	stored, err := t.team.StoredPostures(ctx, ids)
	if err != nil {
		return "", err
	}
	oldest := t.service.options.Now().Add(-postureAge)
	var outdated []dmarcd.Domain
	for i, domain := range domains {
		if p, ok := stored[domain.ID]; !ok || p.Basis != bases[i] || p.ComputedAt.Before(oldest) {
			outdated = append(outdated, domain)
		}
	}
	if len(outdated) > 0 {
		if _, err := t.advise(ctx, outdated, 0); err != nil {
			return "", fmt.Errorf("refresh the postures of team %s: %w", t.team.ID(), err)
		}
	}
	if len(domains) < posturesAtOnce {
		return "", nil
	}
	return domains[len(domains)-1].Name, nil
}

// ReportDomain is the domain of the reporting addresses, "" if there is none.
func (s *Service) ReportDomain() string { return s.options.ReportDomain }
