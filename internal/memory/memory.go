// Package memory limits the memory of the process in two ways: a soft limit for the
// garbage collector, from the configuration or the cgroup, and a budget that large reads
// share, fairly by team. The budget counts what callers declare; it measures nothing.
package memory

import (
	"context"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/fair"
)

const (
	// maxWait is how long a read waits for memory. It equals the maximum duration of a
	// read (insight.maxTime), so a waiting read is admitted in time.
	maxWait = 10 * time.Second
	// maxWaiting is the number of reads per team that may wait.
	maxWaiting = 64
)

// ErrBusy is an ErrTemporary: other large reads use all the memory.
var ErrBusy = fmt.Errorf("%w: too many large requests at once", dmarcd.ErrTemporary)

// Budget is the number of bytes that all large reads together may hold. A team never holds
// more than half, and among waiting teams the one that holds least goes first. A nil
// Budget is unlimited. It is safe for concurrent use.
type Budget struct {
	limiter *fair.Limiter[dmarcd.TeamID]
}

// NewBudget returns a budget of that many bytes; 0 is unlimited.
func NewBudget(bytes int64) *Budget {
	return &Budget{fair.New[dmarcd.TeamID](fair.Options{Capacity: bytes, PerKey: max(bytes/2, 1), Waiting: maxWaiting})}
}

// Acquire waits until the team can hold that many bytes, at most half of the budget, and
// returns the release function. It returns ErrBusy after ten seconds, or if too many reads
// of the team are waiting; if ctx ends first, it returns the error of ctx.
func (b *Budget) Acquire(ctx context.Context, team dmarcd.TeamID, bytes int64) (release func(), err error) {
	if b == nil || ctx.Value(heldKey{}) != nil {
		return func() {}, nil
	}
	waiting, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	release, err = b.limiter.Acquire(waiting, team, bytes)
	if err == nil {
		return release, nil
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return nil, ErrBusy // waited for maxWait, or too many waiting
}

// heldKey marks the context of a request that already holds the maximum.
type heldKey struct{}

// AcquireAll acquires the maximum of one team, for a request whose reads are not known in
// advance. Acquire with the returned context succeeds without acquiring more. Errors are
// those of Acquire.
func (b *Budget) AcquireAll(ctx context.Context, team dmarcd.TeamID) (held context.Context, release func(), err error) {
	release, err = b.Acquire(ctx, team, math.MaxInt64)
	return context.WithValue(ctx, heldKey{}, true), release, err
}

// defaultLimit is the default soft limit: a process near it stays below 512 MiB resident.
const defaultLimit = 384 << 20

// Limit is the soft limit of the garbage collector: near it memory is freed earlier, at
// the cost of CPU time. It is not a hard limit.
type Limit struct {
	Bytes  int64
	Source string // one of the constants below
}

// The values of Limit.Source.
const (
	FromEnvironment = "GOMEMLIMIT"
	FromCgroup      = "cgroup"
	FromDefault     = "default"
)

// FindLimit returns the limit that applies: GOMEMLIMIT, which the Go runtime reads, else 90 %
// of the cgroup limit, else 384 MiB.
func FindLimit() Limit {
	return findLimit(os.Getenv("GOMEMLIMIT"), os.DirFS("/"))
}

// maxReads is the memory of all large reads together. A team may use half.
const maxReads = 256 << 20

// Reads returns the part of the limit that large reads may use.
func (l Limit) Reads() int64 { return min(maxReads, l.Bytes/4*3) }

// SetLimit sets the limit in the Go runtime, unless the runtime has it from GOMEMLIMIT.
func SetLimit(l Limit) {
	if l.Source != FromEnvironment {
		debug.SetMemoryLimit(l.Bytes)
	}
}

func findLimit(environment string, root fs.FS) Limit {
	if environment != "" {
		return Limit{debug.SetMemoryLimit(-1), FromEnvironment} // negative: only read
	}
	if allowed := cgroupLimit(root); allowed < math.MaxInt64 {
		return Limit{allowed / 10 * 9, FromCgroup}
	}
	return Limit{defaultLimit, FromDefault}
}

// unlimited is a lower bound of "no limit" in cgroup v1, which writes it as the largest
// multiple of the page size below 2^63.
const unlimited = 1 << 60

// cgroupLimit returns the smallest memory limit of the cgroup of this process and its
// ancestors, v2 or v1; math.MaxInt64 if there is none.
func cgroupLimit(root fs.FS) int64 {
	least := int64(math.MaxInt64)
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return least // not Linux, or no /proc
	}
	for line := range strings.Lines(string(groups)) {
		// hierarchy:controllers:path; in version 2 the hierarchy is 0 and there are no controllers
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 {
			continue
		}
		folder, files := "sys/fs/cgroup", []string{"memory.max", "memory.high"} // above the second the kernel slows the process down
		if fields[1] != "" {
			if !strings.Contains(","+fields[1]+",", ",memory,") {
				continue
			}
			folder, files = "sys/fs/cgroup/memory", []string{"memory.limit_in_bytes"}
		}
		// In a container the path may be that of the host and not exist: the mounted
		// cgroup is then the container's own.
		for group := path.Clean("/" + fields[2]); ; group = path.Dir(group) {
			for _, file := range files {
				least = min(least, readLimit(root, path.Join(folder, group, file)))
			}
			if group == "/" {
				break
			}
		}
	}
	return least
}

func readLimit(root fs.FS, file string) int64 {
	text, err := fs.ReadFile(root, file)
	if err != nil {
		return math.MaxInt64
	}
	bytes, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil || bytes <= 0 || bytes >= unlimited { // "max" in version 2
		return math.MaxInt64
	}
	return bytes
}
