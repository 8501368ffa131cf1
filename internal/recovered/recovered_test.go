package recovered_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/internal/recovered"
)

func explode(value any) { panic(value) }

// zero is an index that the compiler does not know.
var zero = 0

func TestCall(t *testing.T) {
	t.Parallel()
	ordinary := errors.New("ordinary")
	for _, tt := range []struct {
		name  string
		f     func() error
		panic string // what is reported, "" for nothing
		is    error
		// reportedBelow is set for a panic that needs no report.
		reportedBelow bool
	}{
		{name: "nothing happens", f: func() error { return nil }},
		{name: "an error stays as it is", f: func() error { return ordinary }, is: ordinary},
		{name: "a panic", f: func() error { explode("odd"); return nil }, panic: "panic in reader: odd"},
		{name: "an error as the value", f: func() error { explode(fmt.Errorf("read: %w", io.EOF)); return nil }, panic: "panic in reader: read: EOF", is: io.EOF},
		{name: "an index", f: func() error { _ = make([]int, 0)[zero]; return nil }, panic: "panic in reader: runtime error: index out of range [0] with length 0"},
		{name: "in a goroutine below", f: func() error {
			var g recovered.Group
			g.Go(func() { explode("deep") })
			g.Go(func() {})
			g.Wait()
			return nil
		}, panic: "panic in reader: deep"},
		{name: "recovered below without a report", f: func() error {
			return fmt.Errorf("step: %w", recovered.Boundary(nil).Call("step", func() error { explode("odd"); return nil }))
		}, panic: "panic in step: odd"},
		{name: "reported below", f: func() error {
			return recovered.Boundary(func(*recovered.Error) {}).Call("step", func() error { explode("odd"); return nil })
		}, reportedBelow: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var reported []*recovered.Error
			report := recovered.Boundary(func(e *recovered.Error) { reported = append(reported, e) })
			err := report.Call("reader", tt.f)
			if tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("got error %v, want %v", err, tt.is)
			}
			if got := recovered.Is(err); got != (tt.panic != "" || tt.reportedBelow) {
				t.Errorf("got Is %v for %v", got, err)
			}
			if tt.panic == "" {
				if len(reported) != 0 {
					t.Errorf("got report %v, want none", reported)
				}
				return
			}
			if len(reported) != 1 || reported[0].Error() != tt.panic {
				t.Fatalf("got reports %v, want one of %q", reported, tt.panic)
			}
			if stack := string(reported[0].Stack); !strings.Contains(stack, "recovered_test.go") {
				t.Errorf("got a stack that does not show where it happened:\n%s", stack)
			}
		})
	}
}

func TestNilBoundaryRecovers(t *testing.T) {
	t.Parallel()
	var b recovered.Boundary
	if err := b.Call("reader", func() error { explode(1); return nil }); !recovered.Is(err) {
		t.Errorf("got %v, want a recovered panic", err)
	}
}

func TestGroupWaitsForAll(t *testing.T) {
	t.Parallel()
	done := make(chan struct{})
	slow := false
	var b recovered.Boundary
	err := b.Call("reader", func() error {
		var g recovered.Group
		g.Go(func() { defer close(done); explode("first") })
		g.Go(func() { <-done; slow = true })
		g.Wait()
		return nil
	})
	if !recovered.Is(err) || !slow {
		t.Errorf("got %v with the other goroutine finished: %v, want a panic after both", err, slow)
	}
}
