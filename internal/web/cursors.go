package web

import (
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// parseCursor parses a position in a list ordered by time; "" is the start.
func parseCursor(after string) (service.Cursor, error) {
	if after == "" {
		return service.Cursor{}, nil
	}
	at, id, err := wire.ParseCursor(after)
	return service.Cursor{At: at, ID: id}, err
}

// parseRecordCursor parses a position in a report; "" is the start.
func parseRecordCursor(after string) (cursor service.RecordCursor, err error) {
	if after != "" {
		cursor.Begun = true
		cursor.Share, cursor.N, err = wire.ParseRecordCursor(after)
	}
	return cursor, err
}

// asItIs is the identity, for lists that pages show unchanged.
func asItIs[T any](item T) T { return item }
