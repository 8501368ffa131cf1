package api

import (
	"net/http"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/intake"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// maxReading is how many uploads are read at once, which bounds the memory. Others
// wait for their turn on disk.
const maxReading = 4

// accept reads a message and has the team keep what is in it, after judge has
// looked at it. It returns what became of each item.
func (a *API) accept(w http.ResponseWriter, r *http.Request, team *store.Team, message intake.Message, judge func(*dmarcd.Delivery)) (receipts []dmarcd.Receipt, err error) {
	err = a.inTurn(w, r, func() error {
		opened, err := a.options.Acceptor.Read(r.Context(), message)
		if err != nil {
			return err
		}
		defer opened.Close()
		judge(opened.Delivery)
		all, err := team.Receive(r.Context(), []*dmarcd.Delivery{opened.Delivery})
		if err == nil {
			receipts = all[0]
		}
		return err
	})
	return receipts, err
}

// inTurn calls read when it is the request's turn.
func (a *API) inTurn(w http.ResponseWriter, r *http.Request, read func() error) error {
	// The request has been read. Its time limit would end the context, as if the
	// client had left.
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	defer a.beginAnswer(w)
	select {
	case a.reading <- struct{}{}:
		defer func() { <-a.reading }()
	case <-r.Context().Done():
		return r.Context().Err()
	}
	return read()
}

// asRead is the judgement of whoever takes reports of every kind.
func asRead(*dmarcd.Delivery) {}

// refusedReceipts is the shape of the error where nothing could be used.
type refusedReceipts struct {
	message
	wire.Receipts
}

// writeReceipts tells what became of what was sent.
func writeReceipts(w http.ResponseWriter, receipts []dmarcd.Receipt) {
	status := receiptsStatus(receipts)
	items := wire.NewReceipts(receipts)
	if status == http.StatusUnprocessableEntity {
		writeJSON(w, status, refusedReceipts{
			message{"Nothing in it can be used as a report. It is kept, and GET /insights/rejected lists it with the reasons."}, items,
		})
		return
	}
	writeJSON(w, status, items)
}

// receiptsStatus is 201 where something is new, 200 where something was known, and
// 422 where nothing could be used.
func receiptsStatus(receipts []dmarcd.Receipt) int {
	status := http.StatusUnprocessableEntity
	for _, receipt := range receipts {
		switch receipt.Status {
		case dmarcd.Stored, dmarcd.Replaced, dmarcd.Unclaimed:
			return http.StatusCreated
		case dmarcd.Duplicate:
			status = http.StatusOK
		case dmarcd.Refused:
		}
	}
	return status
}
