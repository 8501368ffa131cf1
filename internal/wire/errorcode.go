package wire

import (
	"cmp"
	"net/http"
)

// errorCodes are the codes of errors without a code of their own, by status.
var errorCodes = map[int]string{
	http.StatusBadRequest:            "bad_request",
	http.StatusUnauthorized:          "unauthorized",
	http.StatusForbidden:             "forbidden",
	http.StatusNotFound:              "no_such_resource",
	http.StatusMethodNotAllowed:      "method_not_allowed",
	http.StatusConflict:              "conflict",
	http.StatusRequestEntityTooLarge: "body_too_large",
	http.StatusUnprocessableEntity:   "invalid_input",
	http.StatusTooManyRequests:       "too_many_requests",
	http.StatusServiceUnavailable:    "temporarily_unavailable",
}

// ErrorCode returns the Dmarcd-Error code of a status, for errors without a code of their own.
func ErrorCode(status int) string { return cmp.Or(errorCodes[status], "internal_error") }
