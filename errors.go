package dmarcd

import "errors"

// The kinds of error that cross package borders. They are tested with
// errors.Is; each transport has one function that turns them into a status of
// its own.
var (
	// ErrNotFound means that the thing does not exist, or belongs to another
	// team: the two must look the same from outside.
	ErrNotFound = errors.New("not found")
	// ErrConflict means that the thing exists already.
	ErrConflict = errors.New("already exists")
	// ErrInvalid means that the input is wrong; see InvalidError.
	ErrInvalid = errors.New("invalid input")
	// ErrUnauthorized means that no valid token or session was presented.
	ErrUnauthorized = errors.New("unauthorized")
	// ErrForbidden means that the caller is known and may not do this.
	ErrForbidden = errors.New("forbidden")
	// ErrLimit means that a size or a quota was exceeded.
	ErrLimit = errors.New("limit exceeded")
	// ErrTemporary means that the same call may succeed later: the database
	// is out of reach or locked.
	ErrTemporary = errors.New("temporarily unavailable")
)

// InvalidError is an ErrInvalid with words for the person who sent the input.
type InvalidError struct {
	// Field names the input in the words of the interface, such as "domain".
	Field string
	// Message is one full sentence that says what would be right. It never
	// repeats the input, which may hold a secret.
	Message string
}

// Error returns the sentence.
func (e *InvalidError) Error() string { return e.Message }

// Is makes errors.Is(err, ErrInvalid) hold.
func (e *InvalidError) Is(target error) bool { return target == ErrInvalid }
