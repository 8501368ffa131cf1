package backend

import (
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// parseCursor reads a place in a list that is ordered by time; "" is its beginning.
func parseCursor(after string) (store.Cursor, error) {
	if after == "" {
		return store.Cursor{}, nil
	}
	at, id, err := wire.ParseCursor(after)
	return store.Cursor{At: at, ID: id}, err
}

// asItIs is the shape of what pages show as the store has it.
func asItIs[T any](item T) (T, error) { return item, nil }
