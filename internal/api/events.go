package api

import (
	"slices"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/wire"
)

func (a *API) listEvents(c *call) error {
	limit, after, err := readCursor(c)
	if err != nil {
		return err
	}
	filter, err := readEventFilter(c)
	if err != nil {
		return err
	}
	events, err := c.service.Events(c.r.Context(), filter, after, limit+1)
	if err != nil {
		return err
	}
	page, err := wire.NewPage(events, limit, func(e dmarcd.Event) string {
		return wire.FormatCursor(e.At, int64(e.ID))
	}, func(e dmarcd.Event) (wire.Event, error) { return wire.NewEvent(e), nil })
	if err != nil {
		return err
	}
	writeCacheable(c, page)
	return nil
}

func readEventFilter(c *call) (service.EventFilter, error) {
	var filter service.EventFilter
	values, err := query(c)
	if err != nil {
		return filter, err
	}
	if values.Has("domain") {
		if filter.Domain, err = dmarcd.ParseName(values.Get("domain")); err != nil {
			return filter, err
		}
	}
	if values.Has("kind") {
		filter.Kind = dmarcd.EventKind(values.Get("kind"))
		if !slices.Contains(dmarcd.EventKinds(), filter.Kind) {
			return filter, &dmarcd.InvalidError{Field: "kind", Message: "The parameter kind must be a kind of event, such as record.changed. See the documentation for all kinds."}
		}
	}
	return filter, nil
}
