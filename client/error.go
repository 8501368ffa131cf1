package client

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/dmarcd/dmarcd"
)

// Error is an answer of the server that reports an error. Test its kind with errors.Is and
// dmarcd.ErrNotFound, ErrConflict, ErrInvalid, ErrUnauthorized, ErrForbidden, ErrLimit or
// ErrTemporary.
type Error struct {
	Status int
	// Code is stable; the OpenAPI document lists all codes.
	Code string
	// Message is a sentence for people, with what to do.
	Message string
	// Fields are the invalid parameters and members of a request.
	Fields []FieldError
	// RetryAfter is how long to wait, 0 if the server does not say.
	RetryAfter time.Duration
	// RequestID identifies the request in the log of the server.
	RequestID string
}

// FieldError says what is wrong with a parameter or member. Field is nil for the whole request.
type FieldError struct {
	Field   *string `json:"field"`
	Code    string  `json:"code"`
	Message string  `json:"message"`
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Is reports whether the error is of that kind.
func (e *Error) Is(target error) bool {
	kind := map[int]error{
		http.StatusBadRequest: dmarcd.ErrInvalid, http.StatusUnprocessableEntity: dmarcd.ErrInvalid,
		http.StatusUnauthorized: dmarcd.ErrUnauthorized, http.StatusForbidden: dmarcd.ErrForbidden,
		http.StatusNotFound: dmarcd.ErrNotFound, http.StatusConflict: dmarcd.ErrConflict,
		http.StatusRequestEntityTooLarge: dmarcd.ErrLimit, http.StatusTooManyRequests: dmarcd.ErrTemporary,
		http.StatusBadGateway: dmarcd.ErrTemporary, http.StatusServiceUnavailable: dmarcd.ErrTemporary, http.StatusGatewayTimeout: dmarcd.ErrTemporary,
	}[e.Status]
	return kind != nil && target == kind || target == dmarcd.ErrLimit && e.Code == "quota_exceeded"
}

// maxErrorBody limits what is read of the body of an error, in bytes.
const maxErrorBody = 1 << 20

// readError returns the error of a response, and closes it.
func readError(response *http.Response) *Error {
	defer func() { _ = response.Body.Close() }() // the rest is not needed
	e := &Error{
		Status: response.StatusCode, RetryAfter: retryAfter(response.Header.Get("Retry-After")), RequestID: response.Header.Get("X-Request-Id"),
	}
	var body struct {
		Message string       `json:"message"`
		Error   string       `json:"error"` // of verifyDomain
		Code    string       `json:"code"`
		Errors  []FieldError `json:"errors"`
	}
	err := json.NewDecoder(io.LimitReader(response.Body, maxErrorBody)).Decode(&body)
	e.Code, e.Fields = cmp.Or(body.Code, response.Header.Get("Dmarcd-Error")), body.Errors
	if e.Message = cmp.Or(body.Message, body.Error); err != nil || e.Message == "" {
		e.Message = fmt.Sprintf("The server answered %s, but not as dmarcd does. Use the base URL of the API, such as https://dmarc.example.com/api.", response.Status)
	}
	return e
}
