package api

import (
	"net/http"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// bodyRead lifts the time limits of a request whose body has been read, because what is
// read may have to wait for its turn. The function that it returns sets the limit for the
// answer.
func (a *API) bodyRead(w http.ResponseWriter) (answer func()) {
	// The limit would end the context, as if the client had left.
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	return func() { a.beginAnswer(w) }
}

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
		const code = "no_report"
		w.Header().Set(errorHeader, code)
		writeJSON(w, status, refusedReceipts{
			message{Code: code, Message: "The upload contains no valid report. It is stored as rejected; GET /insights/rejected lists the reasons."}, items,
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
		case dmarcd.Stored, dmarcd.Replaced, dmarcd.Unclaimed, dmarcd.Held:
			return http.StatusCreated
		case dmarcd.Duplicate:
			status = http.StatusOK
		case dmarcd.Refused:
		}
	}
	return status
}
