package store_test

import (
	"testing"

	"github.com/dmarcd/dmarcd/internal/store"
)

// TestNothingIsInsertedAfterTheEnd holds the insertion of many rows to its transaction,
// which it passes by on PostgreSQL.
func TestNothingIsInsertedAfterTheEnd(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		if err := store.InsertAfterEnd(in.Context(), in.team); err == nil {
			in.Error("rows were inserted after the transaction had ended")
		}
		if got := in.rows("records"); got != 0 {
			in.Errorf("got %d records, want none", got)
		}
	})
}
