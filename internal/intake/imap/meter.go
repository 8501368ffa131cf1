package imap

import (
	"errors"
	"net"
	"sync/atomic"
)

var errTooMuch = errors.New("the server sent more data than requested")

// meter is a connection with a limit on the bytes that may arrive.
//
// The first error is final: nothing is read after it. The library would try again,
// and turns the error into text; failure returns it as it was.
type meter struct {
	net.Conn

	left   atomic.Int64
	failed atomic.Pointer[error]
	rest   error // an error that came with bytes; of the reader alone
}

// allow lets so many bytes arrive from now on.
func (m *meter) allow(bytes int64) { m.left.Store(bytes) }

// remaining returns how many bytes may still arrive.
func (m *meter) remaining() int64 { return m.left.Load() }

// fail notes the error that ended the connection, if it is the first, and returns
// the first.
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
