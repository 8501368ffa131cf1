package genuine

import (
	"context"
	"errors"
	"io"
)

// maxBlankRun bounds a run of white space and empty lines. The library holds back a run,
// and goes over all of it again with every piece of the mail that adds to it.
const maxBlankRun = 64 << 10

// errBlank means that a mail has more white space in one place than anybody writes.
var errBlank = errors.New("too much white space")

// guard reads a mail for the library. The library must not see an error, as it would
// leave goroutines behind: it sees the end of the mail, and err tells what it was.
type guard struct {
	ctx   context.Context // the library's reader knows none
	r     io.Reader
	blank int // the length of the run so far
	err   error
}

// Read reads on, unless the time is up.
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
