package web

import (
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// parseCursor reads a place in a list that is ordered by time; "" is its beginning.
func parseCursor(after string) (service.Cursor, error) {
	if after == "" {
		return service.Cursor{}, nil
	}
	at, id, err := wire.ParseCursor(after)
	return service.Cursor{At: at, ID: id}, err
}

// parseRecordCursor reads a place in a report; "" is its beginning.
func parseRecordCursor(after string) (cursor service.RecordCursor, err error) {
	if after != "" {
		cursor.Begun = true
		cursor.Share, cursor.N, err = wire.ParseRecordCursor(after)
	}
	return cursor, err
}

// asItIs is for lists of what pages show as the service returns it.
func asItIs[T any](item T) (T, error) { return item, nil }
