package imap

import (
	"errors"
	"net"
	"sync/atomic"
)

var errTooMuch = errors.New("the server sent more than was asked for")

// meter is a connection with a limit on what may come in. The IMAP library keeps
// in memory what it reads outside of messages, and knows no limit of its own.
//
// The first error is the last: after it nothing more comes in. The library would
// try again, and make words of the error; what it was is noted here.
type meter struct {
	net.Conn

	left   atomic.Int64
	failed atomic.Pointer[error]
	rest   error // an error that came with bytes; of the reader alone
}

// allow lets so many bytes come in from now on.
func (m *meter) allow(bytes int64) { m.left.Store(bytes) }

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
	var late net.Error
	if errors.As(err, &late) && late.Timeout() {
		err = errSilent
	}
	m.failed.Store(&err)
	return 0, err
}
