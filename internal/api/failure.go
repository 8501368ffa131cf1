package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/intake"
	"github.com/dmarcd/dmarcd/internal/memory"
)

// failure is an error that only HTTP knows, or that has words of its own.
type failure struct {
	status  int
	message string
}

func (f *failure) Error() string { return f.message }

var (
	errNotWhitelisted   = &failure{http.StatusForbidden, "This team may not use the API. Ask the operator to put it on the whitelist with `dmarcd team allow`."}
	errReadOnlyToken    = &failure{http.StatusForbidden, "This token may only read. Use a token with the scope write."}
	errQuota            = &failure{http.StatusForbidden, "The team has as many domains as it may have. Delete one, or ask the operator to raise the limit."}
	errNoSuchPath       = &failure{http.StatusNotFound, "There is no such resource. The page docs below the base URL lists all there are."}
	errMethodNotAllowed = &failure{http.StatusMethodNotAllowed, "This resource does not take that method. The Allow header lists those it takes."}
	errNoSuchDomain     = &failure{http.StatusNotFound, "The team has no such domain. Add it with POST /domains."}
	errNotCheckedYet    = &failure{http.StatusNotFound, "The domain has not been looked at yet. Try again in a few seconds."}
	errDomainExists     = &failure{http.StatusConflict, "The team has this domain already."}
	errMediaType        = &failure{http.StatusUnsupportedMediaType, "The body must be sent as application/json without a Content-Encoding."}
	errBodyTooLarge     = &failure{http.StatusRequestEntityTooLarge, "The body is too large. Send at most 64 KiB."}
	errContentEncoding  = &failure{http.StatusUnsupportedMediaType, "The body must be sent without a Content-Encoding. It may be compressed as a file is, with gzip or zip."}
	errEmptyBody        = &failure{http.StatusBadRequest, "The body is empty. Send a report in it, as it is or compressed, or the whole mail that brought it."}
	errBodyCut          = &failure{http.StatusBadRequest, "The body ended early or came too slowly. Send it again."}
	errNoSuchReport     = &failure{http.StatusNotFound, "The team has no such report. GET /insights/reports lists those it has."}
	errNoSuchRejected   = &failure{http.StatusNotFound, "The team has nothing of this id that was rejected. GET /insights/rejected lists what it has."}
	errOriginalGone     = &failure{http.StatusNotFound, "What was sent is not kept any more. The operator sets for how long it is."}
	errMailboxFull      = &failure{http.StatusTooManyRequests, "This mailbox takes no more reports for now. Try again after the seconds that the Retry-After header tells."}
	errNoSuchMailbox    = &failure{http.StatusNotFound, "There is no such mailbox. The TLS-RPT record of the domain names the right address."}
	errTooManyRequests  = &failure{http.StatusTooManyRequests, "Too many requests. Try again after the seconds that the Retry-After header tells."}
)

// errUploadTooLarge refuses an upload of more than so many bytes.
func errUploadTooLarge(maxBytes int64) *failure {
	size := fmt.Sprintf("%d bytes", maxBytes)
	if maxBytes%(1<<20) == 0 {
		size = fmt.Sprintf("%d MiB", maxBytes>>20)
	}
	return &failure{http.StatusRequestEntityTooLarge, "The body is too large. Send at most " + size + "."}
}

// retryAfter is what a client is told to wait for the database, in seconds.
const retryAfter = "5"

// lowDiskRetryAfter is the same where the disk is nearly full.
const lowDiskRetryAfter = "600"

// message is the shape of every error but one.
type message struct {
	Message string `json:"message"`
}

// kindStatus returns the status for an error: that of a failure, or of its kind.
func kindStatus(err error) int {
	var f *failure
	switch {
	case errors.As(err, &f):
		return f.status
	case errors.Is(err, dmarcd.ErrInvalid):
		return http.StatusUnprocessableEntity
	case errors.Is(err, dmarcd.ErrUnauthorized):
		return http.StatusUnauthorized
	case errors.Is(err, dmarcd.ErrForbidden):
		return http.StatusForbidden
	case errors.Is(err, dmarcd.ErrNotFound):
		return http.StatusNotFound
	case errors.Is(err, dmarcd.ErrConflict):
		return http.StatusConflict
	case errors.Is(err, dmarcd.ErrLimit):
		return http.StatusRequestEntityTooLarge
	case errors.Is(err, dmarcd.ErrTemporary):
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// fail answers a request with an error. Words for people come from a failure or
// an InvalidError; of any other error the client learns the kind alone, and the
// log the rest.
func (a *API) fail(w http.ResponseWriter, r *http.Request, err error) {
	status := kindStatus(err)
	var text string
	var f *failure
	var invalid *dmarcd.InvalidError
	var full *dmarcd.QuotaError
	switch {
	case errors.As(err, &f):
		text = f.message
	case errors.As(err, &invalid):
		text = invalid.Message
	case errors.As(err, &full):
		text = full.Error()
	case errors.Is(err, intake.ErrLowDisk):
		w.Header().Set("Retry-After", lowDiskRetryAfter)
		text = "The service takes nothing at the moment, because its disk is nearly full. Try again later."
	case status == http.StatusUnauthorized:
		text = "Unauthorized"
	case errors.Is(err, memory.ErrBusy):
		w.Header().Set("Retry-After", retryAfter)
		text = "Too many large requests are being answered. Try again after the seconds that the Retry-After header gives."
	case status == http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", retryAfter)
		text = "The service cannot use its database or its disk at the moment. Try again in a few seconds."
	default:
		status = http.StatusInternalServerError
		text = "Internal error"
	}
	if status >= http.StatusInternalServerError && !errors.Is(err, memory.ErrBusy) && !errors.Is(r.Context().Err(), context.Canceled) {
		a.options.Log.ErrorContext(r.Context(), "request failed", "error", err, "request_id", w.Header().Get("X-Request-Id"))
	}
	writeJSON(w, status, message{text})
}
