package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/intake"
	"github.com/dmarcd/dmarcd/internal/memory"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// failure is an error with its own status or message.
type failure struct {
	status  int
	code    string // in the header Dmarcd-Error; stable
	message string
}

func (f *failure) Error() string { return f.message }

var (
	errNotWhitelisted   = &failure{http.StatusForbidden, "team_not_allowed", "This team is not allowed to use the API. Ask the operator to add it to the whitelist with `dmarcd team allow`."}
	errOtherNetwork     = &failure{http.StatusForbidden, "address_not_allowed", "This token may not be used from this address. Use it from the networks that it was created for, or create a token for this address."}
	errQuota            = &failure{http.StatusForbidden, "quota_exceeded", "The team has reached its quota of domains. Delete one, or ask the operator to raise the quota."}
	errNoSuchPath       = &failure{http.StatusNotFound, "no_such_resource", "There is no such resource. See the page docs below the base URL for all resources."}
	errMethodNotAllowed = &failure{http.StatusMethodNotAllowed, "method_not_allowed", "This resource does not support that method. See the Allow header."}
	errNoSuchDomain     = &failure{http.StatusNotFound, "domain_not_found", "The team has no such domain. Add it with POST /domains."}
	errNotCheckedYet    = &failure{http.StatusNotFound, "not_checked_yet", "The domain has not been checked yet. Try again in a few seconds."}
	errDomainExists     = &failure{http.StatusConflict, "domain_exists", "The team already has this domain."}
	errMediaType        = &failure{http.StatusUnsupportedMediaType, "unsupported_media_type", "The body must be sent as application/json without a Content-Encoding."}
	errBodyTooLarge     = &failure{http.StatusRequestEntityTooLarge, "body_too_large", "The body is too large. Send at most 64 KiB."}
	errBulkTooLarge     = &failure{http.StatusRequestEntityTooLarge, "body_too_large", "The body is too large. Send at most 4 MiB."}
	errContentEncoding  = &failure{http.StatusUnsupportedMediaType, "unsupported_encoding", "The body must not have a Content-Encoding. It may be a gzip or zip file."}
	errEmptyBody        = &failure{http.StatusBadRequest, "empty_body", "The body is empty. Send a report, plain or compressed, or an email message with reports."}
	errBodyCut          = &failure{http.StatusBadRequest, "incomplete_body", "The body was incomplete or arrived too slowly. Send it again."}
	errNoSuchReport     = &failure{http.StatusNotFound, "report_not_found", "The team has no such report. GET /insights/reports lists its reports."}
	errNoSuchRejected   = &failure{http.StatusNotFound, "rejected_not_found", "The team has no such rejected report. GET /insights/rejected lists its rejected reports."}
	errOriginalGone     = &failure{http.StatusNotFound, "original_gone", "The original has been deleted after its retention period, which the operator sets."}
	errMailboxFull      = &failure{http.StatusTooManyRequests, "quota_exceeded", "This mailbox cannot receive more reports for now. Try again after the number of seconds in Retry-After."}
	errNoSuchMailbox    = &failure{http.StatusNotFound, "mailbox_not_found", "There is no such mailbox. Use the address in the TLS-RPT record of the domain."}
	errNoSuchWebhook    = &failure{http.StatusNotFound, "webhook_not_found", "The team has no such webhook. GET /webhooks lists those it has."}
	errNoSuchSender     = &failure{http.StatusNotFound, "sender_not_found", "The team did not add such a sender. GET /senders lists those it added."}
	errNoSuchAlert      = &failure{http.StatusNotFound, "alert_not_found", "The team has no such alert. GET /alerts lists those it has."}
	errNoSuchDelivery   = &failure{http.StatusNotFound, "delivery_not_found", "The webhook has no such delivery. GET /webhooks/{id}/deliveries lists those it has."}
	// A mailbox that is read for a team; errNoSuchMailbox is about an address.
	errNoSuchTeamMailbox = &failure{http.StatusNotFound, "mailbox_not_found", "The team has no such mailbox. GET /mailboxes lists those it has."}
	errNoSuchMember      = &failure{http.StatusNotFound, "member_not_found", "The team has no such member. GET /members lists those it has."}
	errNoSuchInvitation  = &failure{http.StatusNotFound, "invitation_not_found", "The team has no open invitation for this address. GET /invitations lists those it has."}
	errNoSuchToken       = &failure{http.StatusNotFound, "token_not_found", "The team has no such token. GET /tokens lists those it has."}
	errNoSuchRecord      = &failure{http.StatusNotFound, "record_not_found", "The team has no such domain, or it has no managed record of this kind. GET /domains/{domain}/records lists those it has."}
	errNoSuchTarget      = &failure{http.StatusNotFound, "target_not_found", "The team has no such domain, or its records are published at no server. PUT /domains/{domain}/target adds one."}
	errOtherVersion      = &failure{http.StatusConflict, "version_conflict", "Another version is published than the one in base, or is being published. Read it with GET /domains/{domain}/records, and decide again."}
	errKeyInUse          = &failure{http.StatusConflict, "key_in_use", "A request with this Idempotency-Key is under way. Try again in a few seconds."}
	errAnswerNotStored   = &failure{http.StatusConflict, "answer_not_stored", "A request with this Idempotency-Key was handled, but its answer was too large to be stored. Read the result with a GET."}
	errBadForm           = &failure{http.StatusBadRequest, "invalid_form", "The form is malformed. Send multipart/form-data with a file in each part, and at most 100 parts."}
	errTooManyRequests   = &failure{http.StatusTooManyRequests, "too_many_requests", "Too many requests. Try again after the number of seconds in Retry-After."}
)

// errKeyReused is for an idempotency key that was used for another request.
var errKeyReused = &dmarcd.InvalidError{Field: keyHeader, Code: "key_reused", Message: "The Idempotency-Key was used for another request within 24 hours. Use a new key for each request."}

// errScope is for a token without the scope of the operation.
func errScope(scope dmarcd.Scope) *failure {
	return &failure{http.StatusForbidden, "insufficient_scope", "This token does not have the scope " + string(scope) + ". Use a token that has it."}
}

func errUploadTooLarge(maxBytes int64) *failure {
	size := fmt.Sprintf("%d bytes", maxBytes)
	if maxBytes%(1<<20) == 0 {
		size = fmt.Sprintf("%d MiB", maxBytes>>20)
	}
	return &failure{http.StatusRequestEntityTooLarge, "body_too_large", "The body is too large. Send at most " + size + "."}
}

// retryAfter is for a temporary database error, in seconds.
const retryAfter = "5"

// lowDiskRetryAfter is for a full disk, in seconds.
const lowDiskRetryAfter = "600"

// message is the body of most errors. Endpoints of the interface have no code in it.
type message struct {
	Message string `json:"message"`
	Code    string `json:"code,omitempty"`
}

// invalidRequest is the body of a 422 of an addition. Field is the first invalid parameter or
// member, null if the whole request is invalid.
type invalidRequest struct {
	message
	Field  *string        `json:"field"`
	Errors []invalidField `json:"errors"`
}

// invalidField says what is wrong with a parameter or member.
type invalidField struct {
	Field   *string `json:"field"`
	Code    string  `json:"code"`
	Message string  `json:"message"`
}

// newInvalidRequest returns the body for an error with that code and text.
func newInvalidRequest(err error, code, text string) invalidRequest {
	body := invalidRequest{message: message{Message: text, Code: code}}
	for _, invalid := range invalidInputs(err) {
		item := invalidField{Code: cmp.Or(invalid.Code, codeInvalid), Message: invalid.Message}
		if invalid.Field != "" {
			item.Field = &invalid.Field
		}
		body.Errors = append(body.Errors, item)
	}
	if body.Errors == nil {
		body.Errors = []invalidField{{Code: code, Message: text}}
	}
	body.Field = body.Errors[0].Field
	return body
}

// invalidInputs returns all invalid inputs of an error, which may join several.
func invalidInputs(err error) []*dmarcd.InvalidError {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []*dmarcd.InvalidError
		for _, e := range joined.Unwrap() {
			all = append(all, invalidInputs(e)...)
		}
		return all
	}
	var invalid *dmarcd.InvalidError
	if errors.As(err, &invalid) {
		return []*dmarcd.InvalidError{invalid}
	}
	return nil
}

// alsoInvalid adds an error about a field to others, unless there is one about it, or one that is
// not about input.
func alsoInvalid(err error, added *dmarcd.InvalidError) error {
	if err == nil {
		return added
	}
	inputs := invalidInputs(err)
	if len(inputs) == 0 || slices.ContainsFunc(inputs, func(i *dmarcd.InvalidError) bool { return i.Field == added.Field }) {
		return err
	}
	return errors.Join(err, added)
}

// errorHeader has the code of an error.
const errorHeader = "Dmarcd-Error"

// Codes of errors that are not a failure. codeInvalid is that of invalid input without one of its
// own.
const (
	codeBusy          = "busy"
	codeInvalid       = "invalid_input"
	codeLowDisk       = "low_disk"
	codeNoReport      = "no_report"
	codeQuota         = "quota_exceeded"
	codeUnknownMember = "unknown_member"
)

// kindStatus returns the status of a failure, or the status for the kind of another error.
func kindStatus(err error) int {
	var f *failure
	var throttled *service.ThrottledError
	switch {
	case errors.As(err, &f):
		return f.status
	case errors.As(err, &throttled):
		return http.StatusTooManyRequests
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

// errorCode returns the code of an error with that status.
func errorCode(err error, status int) string {
	var f *failure
	var full *dmarcd.QuotaError
	var invalid *dmarcd.InvalidError
	switch {
	case errors.As(err, &f):
		return f.code
	case errors.As(err, &invalid) && invalid.Code != "":
		return invalid.Code
	case errors.As(err, &full):
		return codeQuota
	case errors.Is(err, intake.ErrLowDisk):
		return codeLowDisk
	case errors.Is(err, memory.ErrBusy):
		return codeBusy
	case status == http.StatusUnprocessableEntity:
		return codeInvalid
	default:
		return wire.ErrorCode(status)
	}
}

// fail responds with an error. Messages for users come from a failure or an InvalidError. The
// client sees only the kind of other errors, which are logged. The body has a code if the endpoint
// is an addition.
func (a *API) fail(w http.ResponseWriter, r *http.Request, addition bool, err error) {
	status := kindStatus(err)
	var text string
	var f *failure
	var invalid *dmarcd.InvalidError
	var full *dmarcd.QuotaError
	var throttled *service.ThrottledError
	switch {
	case errors.As(err, &f):
		text = f.message
	case errors.As(err, &throttled):
		w.Header().Set("Retry-After", strconv.Itoa(int(throttled.RetryAfter.Seconds())))
		text = throttled.Error()
	case errors.As(err, &invalid):
		text = invalid.Message
	case errors.As(err, &full):
		text = full.Error()
	case a.options.Operator:
		text = err.Error()
	case errors.Is(err, intake.ErrLowDisk):
		w.Header().Set("Retry-After", lowDiskRetryAfter)
		text = "The server does not accept reports at the moment because its disk is almost full. Try again later."
	case status == http.StatusUnauthorized:
		text = "Unauthorized"
	case errors.Is(err, memory.ErrBusy):
		w.Header().Set("Retry-After", retryAfter)
		text = "Too many large requests are in progress. Try again after the number of seconds in Retry-After."
	case status == http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", retryAfter)
		text = "The database or the disk of the server is temporarily unavailable. Try again in a few seconds."
	default:
		status = http.StatusInternalServerError
		text = "Internal error"
	}
	if status >= http.StatusInternalServerError && !a.options.Operator && !errors.Is(err, memory.ErrBusy) && !errors.Is(r.Context().Err(), context.Canceled) {
		a.options.Log.ErrorContext(r.Context(), "request failed", "error", err, "request_id", w.Header().Get("X-Request-Id"))
	}
	code := errorCode(err, status)
	w.Header().Set(errorHeader, code)
	switch {
	case !addition:
		writeJSON(w, status, message{Message: text})
	case status == http.StatusUnprocessableEntity:
		writeJSON(w, status, newInvalidRequest(err, code, text))
	default:
		writeJSON(w, status, message{Message: text, Code: code})
	}
}

// WriteMessage writes a text in the shape of API errors, for responses outside the API. From
// status 400 on it sets the code of the status.
func WriteMessage(w http.ResponseWriter, status int, text string) {
	if status >= http.StatusBadRequest {
		w.Header().Set(errorHeader, wire.ErrorCode(status))
	}
	writeJSON(w, status, message{Message: text})
}
