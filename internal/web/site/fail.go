package site

import (
	"context"
	"errors"
	"net/http"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/memory"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// failure is an error with its own page; see Failure.
type failure struct {
	status        int
	title, advice string
}

// Failure returns an error with its own page: title says what happened, advice what to do.
func Failure(status int, title, advice string) error { return &failure{status, title, advice} }

func (f *failure) Error() string { return f.title }

// The pages of errors that do not depend on what the request is about.
var (
	ErrNoSuchPage       = &failure{http.StatusNotFound, "Page not found", "The address may be mistyped, or the item was deleted. Go to the overview, or use the search."}
	errNoSuchPart       = &failure{http.StatusUnprocessableEntity, "This page of the list does not exist", "The address may be incomplete. Go back to the first page of the list."}
	errMethodNotAllowed = &failure{http.StatusMethodNotAllowed, "This request is not supported", "Go back, and use the form on the page."}
	errNotAllowed       = &failure{http.StatusForbidden, "Your role does not allow this", "Ask an owner of the team for another role, or an operator if it concerns the whole installation."}
	errSignedOut        = &failure{http.StatusUnauthorized, "You are signed out", "Nothing was changed. Sign in in another tab, then try again here."}
	errNoTeam           = &failure{http.StatusForbidden, "You are not a member of a team", "Ask an owner of a team for an invitation, then open its link here."}
	errOtherSite        = &failure{http.StatusForbidden, "The form was sent from another site", "Nothing was changed. Open the page here, and send the form again."}
	ErrBadForm          = &failure{http.StatusBadRequest, "The form could not be read", "It is damaged or too large, so nothing was changed. Go back, and send it again."}
	ErrTooLarge         = &failure{http.StatusRequestEntityTooLarge, "The request is too large", "Send it in smaller parts, or ask the operator to raise the limit."}
	errConflict         = &failure{http.StatusConflict, "This name is already in use", "Go back and choose another name, or use the existing one."}
	errUnavailable      = &failure{http.StatusServiceUnavailable, "The service is temporarily unavailable", "Nothing is lost. Try again in a few seconds. If it happens again, contact the operator: the database may be unreachable, or the disk nearly full."}
	errBusy             = &failure{http.StatusServiceUnavailable, "The server is busy", "Too many large pages are requested at the same time. Try again in a few seconds."}
	errTooManyRequests  = &failure{http.StatusTooManyRequests, "Too many requests", "You have too many pages open that are still loading. Try again in a few seconds."}
	errInternal         = &failure{http.StatusInternalServerError, "Something went wrong on our side", "Try again. If it happens again, send the operator the request id below."}
)

// retryAfter is the Retry-After of temporary errors, in seconds.
const retryAfter = "5"

// pageOf returns the failure in err, or the one for its kind.
func pageOf(err error) *failure {
	var f *failure
	var invalid *dmarcd.InvalidError
	var tooLarge *http.MaxBytesError
	var full *dmarcd.QuotaError
	var throttled *service.ThrottledError
	switch {
	case errors.As(err, &f):
		return f
	case errors.As(err, &throttled):
		return &failure{http.StatusTooManyRequests, "Too many attempts", throttled.Error()}
	case errors.As(err, &tooLarge):
		return ErrTooLarge
	case errors.As(err, &invalid) && invalid.Field == "after":
		return errNoSuchPart
	case errors.As(err, &invalid):
		return &failure{http.StatusUnprocessableEntity, "Some fields need your attention", invalid.Message}
	case errors.As(err, &full):
		return &failure{http.StatusForbidden, "The team has reached a quota", full.Error()}
	case errors.Is(err, dmarcd.ErrNotFound):
		return ErrNoSuchPage
	case errors.Is(err, dmarcd.ErrUnauthorized): // since the request began
		return errSignedOut
	case errors.Is(err, dmarcd.ErrForbidden):
		return errNotAllowed
	case errors.Is(err, dmarcd.ErrConflict):
		return errConflict
	case errors.Is(err, dmarcd.ErrLimit):
		return ErrTooLarge
	case errors.Is(err, memory.ErrBusy):
		return errBusy
	case errors.Is(err, dmarcd.ErrTemporary):
		return errUnavailable
	}
	return errInternal
}

type errorPage struct {
	Status        int
	Title, Advice string
	// RequestID is the request id in the log, "" if there is none.
	RequestID string
	// Back is the page with the rejected form, "" if no form was sent.
	Back string
}

// fail renders an error page. For internal errors it shows only the request id; the log
// contains the error.
func (c *Call) fail(err error) {
	page := pageOf(err)
	if page.status == http.StatusServiceUnavailable || page.status == http.StatusTooManyRequests {
		c.W.Header().Set("Retry-After", retryAfter)
	}
	code := wire.ErrorCode(page.status)
	var full *dmarcd.QuotaError
	if errors.As(err, &full) {
		code = "quota_exceeded"
	}
	c.W.Header().Set("Dmarcd-Error", code)
	id := c.W.Header().Get("X-Request-Id")
	// The failure of a request that the client has cancelled is not an error of ours.
	cancelled := errors.Is(c.R.Context().Err(), context.Canceled)
	if page.status >= http.StatusInternalServerError && page != errBusy && !cancelled {
		c.site.options.Log.ErrorContext(c.R.Context(), "page failed", "error", err, "request_id", id)
	}
	shown := errorPage{Status: page.status, Title: page.title, Advice: page.advice, RequestID: id}
	if c.R.Method == http.MethodPost {
		shown.Back = c.referer()
	}
	if err := c.Render(page.status, Page{Template: "error", Title: page.title}, shown); err != nil {
		if !cancelled {
			c.site.options.Log.ErrorContext(c.R.Context(), "page failed", "error", err, "request_id", id)
		}
		http.Error(c.W, page.title, page.status)
	}
}
