package imap

import (
	"errors"
	"net"
	"sync/atomic"
)

var errTooMuch = errors.New("the server sent more data than requested")

// meter is a connection with a byte budget.
//
// The first error is final: later reads fail. The library would retry, and turns the error
// into text; failure returns the original.
type meter struct {
	net.Conn

	left   atomic.Int64
	failed atomic.Pointer[error]
	rest   error // an error that came with data; used by the reader only
}

// allow sets the byte budget.
func (m *meter) allow(bytes int64) { m.left.Store(bytes) }

// remaining returns the rest of the budget.
func (m *meter) remaining() int64 { return m.left.Load() }

// fail records the first error of the connection, and returns it.
func (m *meter) fail(err error) error {
	var late net.Error
	if errors.As(err, &late) && late.Timeout() {
		err = errSilent
	}
	m.failed.CompareAndSwap(nil, &err)
	return m.failure()
}

// failure returns the error that ended the connection, or nil.
func (m *meter) failure() error {
	if err := m.failed.Load(); err != nil {
		return *err
	}
	return nil
}

func (m *meter) Read(b []byte) (int, error) {
	if err := m.failure(); err != nil {
		return 0, err
	}
	left := m.left.Load()
	err := m.rest
	if left <= 0 {
		err = errTooMuch
	}
	if err == nil {
		var n int
		n, err = m.Conn.Read(b[:min(int64(len(b)), left)])
		m.left.Add(-int64(n))
		if n > 0 {
			m.rest = err
			return n, nil
		}
	}
	if err == nil {
		return 0, nil
	}
	return 0, m.fail(err)
}
