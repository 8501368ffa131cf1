package backend

import (
	"context"

	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/web"
)

// maxTimelineEvents bounds the events that a timeline tells.
const maxTimelineEvents = 200

// Timeline implements web.Sources.
func (s *sources) Timeline(ctx context.Context, name string, period web.Period) (web.Timeline, error) {
	domain, err := s.named(ctx, name)
	if err != nil {
		return web.Timeline{}, err
	}
	counted, err := s.team.DomainDaily(ctx, domain.Name, withBefore(period), 2*period.Len())
	if err != nil {
		return web.Timeline{}, err
	}
	var found web.Timeline
	found.Days, found.Counts, found.Before = series(counted, period)
	events, err := s.team.Events(ctx, service.EventFilter{Domain: domain.Name}, service.Cursor{At: dayTime(period.To + 1)}, maxTimelineEvents)
	found.Events = since(events, dayTime(period.From))
	return found, err
}
