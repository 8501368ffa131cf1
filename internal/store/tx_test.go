package store_test

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/recovered"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// TestNothingIsInsertedAfterTheEnd checks that a bulk insert fails after the end of its
// transaction: on PostgreSQL, COPY bypasses database/sql.
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

// TestPanicInATransaction checks that a panic rolls the transaction back, reaches the
// caller, and returns the connection: SQLite has only one for writes.
func TestPanicInATransaction(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		in.add(ours)
		bad := storetest.Delivery(report("bad", ours, storetest.Passed(ours, 1)))
		bad.Original.Packed = func() io.Reader { panic("odd original") }
		failed := make(chan error, 1)
		go func() {
			failed <- recovered.Boundary(nil).Call("test", func() error {
				_, err := in.team.Receive(context.WithoutCancel(in.Context()), []*dmarcd.Delivery{bad})
				return err
			})
		}()
		select {
		case err := <-failed:
			if !recovered.Is(err) {
				in.Fatalf("got %v, want the panic", err)
			}
		case <-time.After(time.Minute):
			in.Fatal("the panic never reached the caller: the transaction is still open")
		}
		in.sound()
		good := report("good", ours, storetest.Passed(ours, 2))
		in.receive(good)
		in.sound()
	})
}
