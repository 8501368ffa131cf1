package memory_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/memory"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

func TestFindLimit(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		files map[string]string
		want  memory.Limit
	}{
		{name: "nothing", want: memory.Limit{Bytes: 384 << 20, Source: memory.FromDefault}},
		{name: "version 2", files: map[string]string{"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "max\n", "sys/fs/cgroup/a/memory.max": "5000\n"}, want: memory.Limit{Bytes: 4500, Source: memory.FromCgroup}},
		{name: "version 2 with a soft limit", files: map[string]string{"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.max": "5000\n", "sys/fs/cgroup/a/memory.high": "4000\n"}, want: memory.Limit{Bytes: 3600, Source: memory.FromCgroup}},
		{name: "version 2 in a container", files: map[string]string{"proc/self/cgroup": "0::/../x\n", "sys/fs/cgroup/memory.max": "5000\n"}, want: memory.Limit{Bytes: 4500, Source: memory.FromCgroup}},
		{name: "version 2 without a limit", files: map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n"}, want: memory.Limit{Bytes: 384 << 20, Source: memory.FromDefault}},
		{name: "version 1", files: map[string]string{"proc/self/cgroup": "5:cpu,cpuacct:/x\n4:memory:/x\n", "sys/fs/cgroup/memory/x/memory.limit_in_bytes": "7000\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, want: memory.Limit{Bytes: 6300, Source: memory.FromCgroup}},
		{name: "damaged files", files: map[string]string{"proc/self/cgroup": "x\n0::/\n", "sys/fs/cgroup/memory.max": "-5"}, want: memory.Limit{Bytes: 384 << 20, Source: memory.FromDefault}},
	} {
		root := fstest.MapFS{}
		for name, text := range test.files {
			root[name] = &fstest.MapFile{Data: []byte(text)}
		}
		if got := memory.FindLimitIn("", root); got != test.want {
			t.Errorf("%s: got %v, want %v", test.name, got, test.want)
		}
	}
	if got := memory.FindLimitIn("1GiB", fstest.MapFS{}); got.Source != memory.FromEnvironment {
		t.Errorf("GOMEMLIMIT: got %v, want the limit of the runtime", got)
	}
}

func TestReadsFitIntoTheLimit(t *testing.T) {
	t.Parallel()
	for limit, want := range map[int64]int64{384 << 20: 256 << 20, 8 << 30: 256 << 20, 64 << 20: 48 << 20} {
		if got := (memory.Limit{Bytes: limit}).Reads(); got != want {
			t.Errorf("%d: got %d, want %d", limit, got, want)
		}
	}
}

// TestBudgetIsFair lets one team ask for far more than the budget. Another team is admitted
// at once; the first one gets ErrBusy.
func TestBudgetIsFair(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const greedy, modest = dmarcd.TeamID(1), dmarcd.TeamID(2)
		budget := memory.NewBudget(100)
		var rejected atomic.Int64
		for range 80 {
			go func() {
				release, err := budget.Acquire(t.Context(), greedy, 1000)
				if errors.Is(err, memory.ErrBusy) && errors.Is(err, dmarcd.ErrTemporary) {
					rejected.Add(1)
					return
				}
				time.Sleep(time.Minute)
				release()
			}()
			synctest.Wait()
		}
		start := time.Now()
		for range 10 {
			release, err := budget.Acquire(t.Context(), modest, 50)
			if err != nil {
				t.Fatalf("the other team: %v", err)
			}
			release()
		}
		if waited := time.Since(start); waited > 0 {
			t.Errorf("the other team waited %v, want no wait", waited)
		}
		if got := rejected.Load(); got != 80-1-64 {
			t.Errorf("got %d rejections at once, want all but the one admitted and the 64 waiting", got)
		}
		time.Sleep(11 * time.Second)
		synctest.Wait()
		if got := rejected.Load(); got != 79 {
			t.Errorf("got %d rejections after 11 s, want all but the first", got)
		}
		time.Sleep(time.Minute)
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := budget.Acquire(cancelled, modest, 1); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want the error of the context", err)
		}
	})
}

// TestAcquireAll checks that reads of a request that holds the maximum need no more.
func TestAcquireAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		budget := memory.NewBudget(100)
		held, release, err := budget.AcquireAll(t.Context(), 1)
		musttest.Do(t, err)
		defer release()
		again, err := budget.Acquire(held, 1, 50)
		if err != nil {
			t.Fatalf("a read of the same request: %v", err)
		}
		again()
		if _, err := budget.Acquire(t.Context(), 1, 1); !errors.Is(err, memory.ErrBusy) {
			t.Errorf("another request of the team: got %v, want ErrBusy", err)
		}
	})
}
