package api

import (
	"net/http"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// bodyRead removes the time limit of a request whose body was read, because processing may
// wait for a slot. The returned function sets the limit of the response.
func (a *API) bodyRead(w http.ResponseWriter) (answer func()) {
	// The deadline would cancel the context as if the client had disconnected.
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	return func() { a.beginAnswer(w) }
}

// rejectedReceipts is the error body if nothing was accepted.
type rejectedReceipts struct {
	message
	wire.Receipts
}

func writeReceipts(w http.ResponseWriter, receipts []dmarcd.Receipt) {
	status := receiptsStatus(receipts)
	items := wire.NewReceipts(receipts)
	if status == http.StatusUnprocessableEntity {
		const code = "no_report"
		w.Header().Set(errorHeader, code)
		writeJSON(w, status, rejectedReceipts{
			message{Code: code, Message: "The upload contains no valid report. It is stored as rejected; GET /insights/rejected lists the reasons."}, items,
		})
		return
	}
	writeJSON(w, status, items)
}

// receiptsStatus is 201 if something is new, 200 if something is a duplicate, and 422 if
// nothing was accepted.
func receiptsStatus(receipts []dmarcd.Receipt) int {
	status := http.StatusUnprocessableEntity
	for _, receipt := range receipts {
		switch receipt.Status {
		case dmarcd.Stored, dmarcd.Replaced, dmarcd.Unclaimed, dmarcd.Held:
			return http.StatusCreated
		case dmarcd.Duplicate:
			status = http.StatusOK
		case dmarcd.StatusRejected:
		}
	}
	return status
}
