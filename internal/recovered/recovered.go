// Package recovered turns panics into errors at the boundary of goroutines that
// handle outside data, so that one hostile report, record or host cannot stop the
// daemon. It only recovers: what reports the panic (log, metrics) is the caller's
// Boundary, and how long to wait before the next attempt is the caller's choice.
package recovered

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
)

// Error is a recovered panic.
type Error struct {
	// Where names the boundary, as a constant: it is a label of a metric.
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

// Boundary receives each recovered panic once; it logs and counts. A nil Boundary
// recovers without reporting: that is left to the next one that the error passes. It is
// called concurrently.
type Boundary func(*Error)

// Call runs f and returns its error. If f panics, or returns a panic that was not
// reported yet, that is reported; a panic is returned as an *Error. The place where is a
// short constant such as "check".
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

// New makes an Error of a value that recover returned, for boundaries that cannot use
// Call. A panic that a Group raised again keeps the stack of the goroutine in which it
// happened.
func New(where string, value any) *Error {
	if e, ok := value.(*Error); ok {
		return &Error{Where: where, Value: e.Value, Stack: e.Stack}
	}
	return &Error{Where: where, Value: value, Stack: debug.Stack()}
}

// Group runs functions in goroutines of their own and waits for them, like
// sync.WaitGroup. A panic in one of them is raised again by Wait, in the goroutine
// that waits: without that, no boundary further up could recover it. The zero value
// is ready to use.
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
