package genuine

import (
	"context"
	"errors"
	"io"
)

// maxBlankRun limits a run of white space and empty lines. The library buffers such a run and
// scans it again for every read.
const maxBlankRun = 64 << 10

// errBlank means that a mail exceeds maxBlankRun.
var errBlank = errors.New("too much white space")

// guard reads a mail for the library. The library leaks goroutines on a read error, so it sees
// EOF instead, and err holds the error.
type guard struct {
	ctx   context.Context // the library takes no context
	r     io.Reader
	blank int // length of the current run
	err   error
}

// Read implements io.Reader. It stops when the context ends.
func (g *guard) Read(p []byte) (int, error) {
	if g.err == nil {
		g.err = g.ctx.Err()
	}
	if g.err != nil {
		return 0, io.EOF
	}
	n, err := g.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		g.err = err
	}
	for _, c := range p[:n] {
		switch c {
		case ' ', '\t', '\r', '\n':
			g.blank++
		default:
			g.blank = 0
		}
		if g.blank > maxBlankRun {
			g.err = errBlank
		}
	}
	if g.err != nil {
		return 0, io.EOF
	}
	return n, err
}
