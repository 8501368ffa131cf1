package unpack

import (
	"fmt"

	"github.com/dmarcd/dmarcd"
)

// Limits are the limits of one walk. All except Progress and Folder are required: zero
// allows nothing. The context, or Progress, limits the time.
type Limits struct {
	// Input is the number of bytes read from the reader given to Walk.
	Input int64
	// Expanded is the number of bytes that all containers together expand to, including
	// nested ones.
	Expanded int64
	// Ratio is the maximum expansion of one compressed stream. It applies from RatioFrom
	// expanded bytes on: smaller output is harmless, and short repetitive texts compress
	// very well.
	Ratio     int64
	RatioFrom int64
	// Members is the total number of files in archives, parts of mails, messages in
	// mailboxes, and further documents in files.
	Members int
	// Nesting is the number of containers around a report.
	Nesting int
	// Folder is the folder for temporary files; "" is that of the system.
	Folder string
	// Progress, if not nil, is called before each read with the number of expanded bytes
	// so far. It may block; its error ends the walk.
	Progress func(expanded int64) error
}

// DefaultLimits returns limits well above every report seen in practice.
func DefaultLimits() Limits {
	return Limits{
		Input:     32 << 20,
		Expanded:  256 << 20,
		Ratio:     200,
		RatioFrom: 1 << 20,
		Members:   1000,
		Nesting:   5,
	}
}

// Limit names one of the Limits.
type Limit string

// The limits that can be exceeded.
const (
	LimitInput    Limit = "input bytes"
	LimitExpanded Limit = "expanded bytes"
	LimitRatio    Limit = "compression ratio"
	LimitMembers  Limit = "members"
	LimitNesting  Limit = "nesting"
)

// LimitError names the limit that was exceeded. It is a dmarcd.ErrLimit.
type LimitError struct {
	Limit Limit
	Max   int64
}

// Error returns the limit and its value.
func (e *LimitError) Error() string {
	return fmt.Sprintf("over the limit of %d for %s", e.Max, e.Limit)
}

// Is implements errors.Is for dmarcd.ErrLimit.
func (e *LimitError) Is(target error) bool { return target == dmarcd.ErrLimit }
