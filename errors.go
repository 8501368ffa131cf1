package dmarcd

import (
	"context"
	"errors"
	"slices"
)

// The kinds of errors that cross package boundaries. Test them with errors.Is; each
// transport has one function that maps them to its own statuses.
var (
	// ErrNotFound means that the object does not exist, or belongs to another team:
	// clients must not be able to distinguish the two.
	ErrNotFound = errors.New("not found")
	// ErrConflict means that the object already exists.
	ErrConflict = errors.New("already exists")
	// ErrInvalid means that the input is invalid; see InvalidError.
	ErrInvalid = errors.New("invalid input")
	// ErrUnauthorized means that no valid token or session was presented.
	ErrUnauthorized = errors.New("unauthorized")
	// ErrForbidden means that the caller is known but not allowed to do this.
	ErrForbidden = errors.New("forbidden")
	// ErrLimit means that a size or a quota was exceeded.
	ErrLimit = errors.New("limit exceeded")
	// ErrTemporary means that a retry may succeed: for example, the database is
	// unavailable or locked.
	ErrTemporary = errors.New("temporarily unavailable")
)

// Permanent reports whether storing an input failed because of its content, so that no retry can
// succeed. Errors with another known cause are not permanent: temporary failures, quotas, missing
// rights, the end of the process. No other code decides this.
func Permanent(err error) bool {
	others := []error{ErrTemporary, ErrLimit, ErrNotFound, ErrUnauthorized, ErrForbidden, context.Canceled, context.DeadlineExceeded}
	return err != nil && !slices.ContainsFunc(others, func(other error) bool { return errors.Is(err, other) })
}

// InvalidError is an ErrInvalid with a message for the user.
type InvalidError struct {
	// Field is the name of the input in the API, such as "domain".
	Field string
	// Message is a full sentence that says what is valid. It never repeats the input,
	// which may contain a secret.
	Message string
	// Code is a stable code for programs, "" for the code of all invalid input.
	Code string
}

// Error returns the sentence.
func (e *InvalidError) Error() string { return e.Message }

// Is makes errors.Is(err, ErrInvalid) hold.
func (e *InvalidError) Is(target error) bool { return target == ErrInvalid }
