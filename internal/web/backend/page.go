package backend

import (
	"math"
	"strconv"

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

// formatRecordPlace and parseRecordPlace write and read a place in a report, as the
// API has it; "" is its beginning.
func formatRecordPlace(c service.RecordCursor) string {
	return wire.FormatPlace(int64(c.Share), strconv.Itoa(c.N))
}

func parseRecordPlace(after string) (service.RecordCursor, error) {
	if after == "" {
		return service.RecordCursor{}, nil
	}
	share, rest, err := wire.ParsePlace(after)
	if err != nil {
		return service.RecordCursor{}, err
	}
	n, err := strconv.ParseInt(rest, 10, 32)
	if err != nil || share < 0 || share > math.MaxInt32 || n < 0 {
		return service.RecordCursor{}, wire.ErrAfter
	}
	return service.RecordCursor{Share: int(share), N: int(n), Begun: true}, nil
}

// asItIs is the shape of what pages show as the store has it.
func asItIs[T any](item T) (T, error) { return item, nil }
