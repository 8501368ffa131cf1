// Package recovered turns panics into errors at the boundary of goroutines that handle
// untrusted data, so that a hostile report, record or host cannot stop the daemon. The
// caller's Boundary reports the panic (log, metrics), and the caller decides about
// retries.
package recovered

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
)

// Error is a recovered panic.
type Error struct {
	// Where is the constant name of the boundary, a metric label.
	Where string
	// Value is what was passed to panic.
	Value any
	// Stack is the stack of the goroutine that panicked.
	Stack []byte

	reported bool
}

// Error returns the boundary and the value, without the stack.
func (e *Error) Error() string { return fmt.Sprintf("panic in %s: %v", e.Where, e.Value) }

// Unwrap returns the value if it is an error.
func (e *Error) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// Is reports whether err is, or wraps, a recovered panic.
func Is(err error) bool {
	var e *Error
	return errors.As(err, &e)
}

// Boundary receives each recovered panic once, to log and count it. A nil Boundary
// recovers without reporting and leaves that to the next one. It is called concurrently.
type Boundary func(*Error)

// Call runs f and returns its error. If f panics, or returns an unreported panic, it
// reports that; a panic is returned as an *Error. where is a short constant such as
// "check".
func (b Boundary) Call(where string, f func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = New(where, value)
		}
		var e *Error
		if b != nil && errors.As(err, &e) && !e.reported {
			e.reported = true
			b(e)
		}
	}()
	return f()
}

// New makes an Error from a recovered value, for boundaries that cannot use Call. A panic
// that a Group raised again keeps the stack of the original goroutine.
func New(where string, value any) *Error {
	if e, ok := value.(*Error); ok {
		return &Error{Where: where, Value: e.Value, Stack: e.Stack}
	}
	return &Error{Where: where, Value: value, Stack: debug.Stack()}
}

// Group runs functions in goroutines and waits for them, like sync.WaitGroup. Wait
// re-panics in the waiting goroutine if one of them panicked; otherwise no boundary
// further up could recover it. The zero value is ready to use.
type Group struct {
	running sync.WaitGroup
	mu      sync.Mutex
	first   *Error
}

// Go runs f in a goroutine.
func (g *Group) Go(f func()) {
	g.running.Go(func() {
		defer func() {
			if value := recover(); value != nil {
				g.mu.Lock()
				defer g.mu.Unlock()
				if g.first == nil {
					g.first = New("goroutine", value)
				}
			}
		}()
		f()
	})
}

// Wait waits for all functions to return, and panics with the *Error of the first
// one that panicked.
func (g *Group) Wait() {
	g.running.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.first != nil {
		panic(g.first)
	}
}
