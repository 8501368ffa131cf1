package unpack

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// walker walks through one input.
type walker struct {
	*Walker

	budget *budget
	visit  Visit
	parts  int // number passed to visit
}

// location is the position of a piece of content.
type location struct {
	path   string
	depth  int // number of enclosing containers
	media  string
	mail   *mail // innermost enclosing mail, nil if none
	inside bool  // content is the body of a part of that mail, not in an archive
	damage error // damage of the enclosing container
}

// in returns the place of a member of the container at this place.
func (at location) in(name string) location {
	at.path = joinPath(at.path, name)
	at.depth++
	at.inside = false
	return at
}

func (at location) part(kind Kind) *Part {
	return &Part{Kind: kind, Path: at.path, damage: at.damage}
}

// hand passes a part to the visitor.
func (w *walker) hand(p *Part) error {
	w.parts++
	p.budget = w.budget
	if err := w.visit(p); err != nil {
		return w.budget.fail(err)
	}
	return w.budget.alive()
}

// reject passes on a part that cannot be read.
func (w *walker) reject(at location, reason error) error {
	p := at.part(Rejected)
	p.Err = reason
	return w.hand(p)
}

// content detects the format of r, and passes it on or opens it. Like all methods of
// walker, it only returns errors that end the walk.
func (w *walker) content(r io.Reader, at location) error {
	buffered := w.buffer(r)
	defer w.release(buffered)
	head, err := buffered.Peek(sniffBytes)
	if err := w.budget.alive(); err != nil {
		return err
	}
	if len(head) == 0 && !errors.Is(err, io.EOF) {
		if limit := w.budget.reject(err); limit != nil {
			return w.reject(at, limit)
		}
		return w.reject(at, damaged(err))
	}
	f, sure := sniff(head)
	if at.inside && !wanted(f, sure, at.media) {
		return nil
	}
	switch f {
	case formatXML:
		return w.document(Aggregate, buffered, at)
	case formatJSON:
		return w.document(TLS, buffered, at)
	case formatFeedback:
		return w.feedback(buffered, at)
	case formatEmpty:
		return w.reject(at, errEmpty)
	case formatUnused:
		return w.reject(at, errUnused)
	case formatUnknown:
		return w.reject(at, fmt.Errorf("%w: it is %s", errUnknown, describe(head)))
	default:
		return w.open(f, r, buffered, at)
	}
}

// open walks through a container.
func (w *walker) open(f format, r io.Reader, buffered *bufio.Reader, at location) error {
	if at.depth >= w.budget.limits.Nesting {
		return w.reject(at, &LimitError{Limit: LimitNesting, Max: int64(w.budget.limits.Nesting)})
	}
	switch f {
	case formatGzip:
		return w.gzip(buffered, at)
	case formatZlib:
		return w.zlib(buffered, at)
	case formatZip:
		if in, ok := r.(*input); ok {
			if s, ok := in.r.(sized); ok {
				return w.zip(w.inPlace(s, s.Size()), at)
			}
		}
		return w.zipStream(buffered, at)
	case formatBzip2:
		return w.bzip2(buffered, at)
	case formatEmlx:
		return w.emlx(buffered, at)
	case formatUU:
		return w.uu(buffered, at)
	case formatBase64:
		return w.content(&base64Reader{r: buffered}, at.in(""))
	case formatMbox:
		return w.mbox(buffered, at)
	default:
		return w.mail(buffered, at)
	}
}

// document passes on a report.
func (w *walker) document(kind Kind, r io.Reader, at location) error {
	p := at.part(kind)
	p.content = r
	return w.hand(p)
}
