package unpack

import (
	"fmt"

	"github.com/dmarcd/dmarcd"
)

// Limits bound one walk. All of them but Progress must be set: a limit of zero lets nothing
// through. Time is bounded by the context, or by Progress.
type Limits struct {
	// Input is how many bytes may be read from the reader given to Walk.
	Input int64
	// Expanded is how many bytes all containers together may yield, those
	// inside others included.
	Expanded int64
	// Ratio is how many times its size one compressed stream may expand to.
	// It applies from RatioFrom expanded bytes on: less does no harm, and
	// short texts that repeat themselves compress very well.
	Ratio     int64
	RatioFrom int64
	// Members is how many files of archives, parts of mails, messages of
	// mailboxes and further documents of files there may be in all.
	Members int
	// Nesting is how many containers may be around a report.
	Nesting int
	// Folder is where temporary files go; "" is the system's folder for them.
	Folder string
	// Progress, unless it is nil, is called before each read with the number of bytes
	// that containers have yielded so far. It may wait; its error ends the walk.
	Progress func(expanded int64) error
}

// DefaultLimits returns the limits that serve every report seen in the wild
// with room to spare.
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

// LimitError says which limit was exceeded. It is a dmarcd.ErrLimit.
type LimitError struct {
	Limit Limit
	Max   int64
}

// Error returns the limit and its value.
func (e *LimitError) Error() string {
	return fmt.Sprintf("over the limit of %d for %s", e.Max, e.Limit)
}

// Is makes errors.Is(err, dmarcd.ErrLimit) hold.
func (e *LimitError) Is(target error) bool { return target == dmarcd.ErrLimit }
