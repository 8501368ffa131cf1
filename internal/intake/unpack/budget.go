package unpack

import (
	"errors"
	"io"
)

// budget tracks how much of its limits a walk has used.
type budget struct {
	limits   Limits
	stopped  func() error // the Err method of the walk's context
	expanded int64
	members  int
	// fatal is the error that ended the walk. After it, no reader of this walk returns
	// data.
	fatal error
}

// fail ends the walk.
func (b *budget) fail(err error) error {
	if b.fatal == nil {
		b.fatal = err
	}
	return b.fatal
}

// exceeded ends the walk with a LimitError.
func (b *budget) exceeded(limit Limit, maximum int64) error {
	return b.fail(&LimitError{Limit: limit, Max: maximum})
}

// alive returns the error that ended the walk, or nil.
func (b *budget) alive() error {
	if b.fatal != nil {
		return b.fatal
	}
	if err := b.stopped(); err != nil {
		return b.fail(err)
	}
	if b.limits.Progress != nil {
		if err := b.limits.Progress(b.expanded); err != nil {
			return b.fail(err)
		}
	}
	return nil
}

// member counts one member of a container.
func (b *budget) member() error {
	if err := b.alive(); err != nil {
		return err
	}
	b.members++
	if b.members > b.limits.Members {
		return b.exceeded(LimitMembers, int64(b.limits.Members))
	}
	return nil
}

// reject returns the error that ended the walk, or err if it is a LimitError. It returns
// nil if err only means that a container is damaged.
func (b *budget) reject(err error) error {
	if b.fatal != nil {
		return b.fatal
	}
	var limit *LimitError
	if errors.As(err, &limit) {
		return limit
	}
	return nil
}

// input reads the reader given to Walk, up to the limit. Errors of that reader end the
// walk: a broken connection is not a damaged report.
type input struct {
	r      io.Reader
	budget *budget
	n      int64
}

func (in *input) Read(p []byte) (int, error) {
	if err := in.budget.alive(); err != nil {
		return 0, err
	}
	// One byte more than allowed may be read, to detect that the limit is exceeded.
	n, err := in.r.Read(p[:min(int64(len(p)), in.budget.limits.Input-in.n+1)])
	in.n += int64(n)
	if in.n > in.budget.limits.Input {
		return 0, in.budget.exceeded(LimitInput, in.budget.limits.Input)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = in.budget.fail(err)
	}
	return n, err
}

// counter counts the compressed bytes that a decompressor has consumed.
type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// meter counts the bytes that one container expands to.
type meter struct {
	r      io.Reader
	from   *counter
	budget *budget
	n      int64
	err    error // a limit exceeded by this container only
}

func (m *meter) Read(p []byte) (int, error) {
	if err := m.budget.alive(); err != nil {
		return 0, err
	}
	if m.err != nil {
		return 0, m.err
	}
	n, err := m.r.Read(p)
	m.n += int64(n)
	m.budget.expanded += int64(n)
	limits := &m.budget.limits
	if m.budget.expanded > limits.Expanded {
		return 0, m.budget.exceeded(LimitExpanded, limits.Expanded)
	}
	if m.n > limits.RatioFrom && m.n/limits.Ratio > m.from.n {
		m.err = &LimitError{Limit: LimitRatio, Max: limits.Ratio}
		return 0, m.err
	}
	return n, err
}
