// Package intake turns what was sent into reports: it opens the containers, and has
// each report in them read by the package that knows its kind. What cannot be read
// comes out beside the rest, with the reason. Read hands the reports over one after
// the other; an Acceptor makes a delivery of them, which can be kept.
//
// The records of a long aggregate report are streamed, so that a report of a million
// of them takes little memory. Where the bytes come from, how a delivery is kept, and
// who hears of a refusal is left to the caller.
package intake

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/failure"
	"github.com/dmarcd/dmarcd/internal/intake/unpack"
	"github.com/dmarcd/dmarcd/tlsrpt"
)

// Limits bound the reading of one message.
type Limits struct {
	// Containers bounds what is opened. All its fields must be set.
	Containers unpack.Limits
	// Aggregate and TLS bound one report; a field that is zero stands for the
	// default of its package.
	Aggregate aggregate.Limits
	TLS       tlsrpt.Limits
	// Time is how long an Acceptor may compute to read one message: time of the
	// processor, where the system tells it. It must be set. Read leaves time to its
	// context.
	Time time.Duration
}

// DefaultLimits returns limits that no honest report comes near.
func DefaultLimits() Limits {
	return Limits{
		Containers: unpack.DefaultLimits(),
		Aggregate:  aggregate.DefaultLimits(),
		TLS:        tlsrpt.DefaultLimits(),
		Time:       time.Minute,
	}
}

// Item is one report, or one thing that should be one and is not. Exactly one of
// Aggregate, Failure, TLS and Err is set.
type Item struct {
	// Kind is what the item looks like, also where it is refused.
	Kind unpack.Kind
	// Path says where in the input it was found, "" for the input itself. It is for
	// people; see unpack.Part.
	Path string

	Aggregate *Aggregate
	// Failure has of personal data only what was asked for: nothing, from Read.
	Failure *failure.Report
	TLS     *tlsrpt.Report
	// Err is the reason of a refusal, in words for the sender.
	Err error

	// Damage says what is wrong with the container of a report that could be read
	// all the same, as far as it goes. It is nil where nothing is.
	Damage error

	// sameness is a hash of all that a failure report says, also of what is not kept.
	sameness dmarcd.Hash
}

// Visit is called for every item, in the order in which they are found. The records
// of the item can be read until it returns. An error of it ends the reading.
type Visit func(item *Item) error

// Read hands every report in r, and everything that should be one and is not, to
// visit. It calls visit at least once unless it returns an error: a dmarcd.ErrLimit
// if r as a whole is too much, else the error of ctx, of r, of visit or of a
// temporary file. Items visited before that are sound.
//
// A zip archive is read in place where r allows it; see unpack.Walk.
func Read(ctx context.Context, r io.Reader, limits Limits, visit Visit) error {
	in := &reading{limits: limits, copies: &Copy{folder: limits.Containers.Folder}}
	defer in.copies.Close()
	return in.items(ctx, r, func(item *Item) error {
		defer in.forget()
		return visit(item)
	})
}

const (
	// maxCollected is how many records of one input are kept in memory as they are,
	// and collectedFrom how long the documents may be that they come from. Nearly
	// every input stays below; what has more is read a second time instead.
	maxCollected  = 4096
	collectedFrom = 1 << 20
)

// reading is an input that is being read.
type reading struct {
	limits  Limits
	options failure.Options
	// copies holds the documents whose records are read again, one behind the other:
	// an archive of a thousand reports takes one temporary file.
	copies *Copy
	// redaction collects the failure reports, nil if no original is stored.
	redaction *redaction

	collectedRecords int
	collectedBytes   int64
}

// fits tells whether some more records, from a document of so many bytes, are kept in
// memory.
func (in *reading) fits(records int, bytes int64) bool {
	return in.collectedRecords+records <= maxCollected && in.collectedBytes+bytes <= collectedFrom
}

// forget gives the space of all items back.
func (in *reading) forget() {
	in.copies.cut(0)
	in.collectedRecords, in.collectedBytes = 0, 0
}

// items hands every item in r to visit. The items can be used until the copies are
// closed.
func (in *reading) items(ctx context.Context, r io.Reader, visit Visit) error {
	return unpack.Walk(ctx, r, in.limits.Containers, func(part *unpack.Part) error {
		item := &Item{Kind: part.Kind, Path: part.Path}
		err := in.item(item, part)
		switch {
		case err == nil && item.Err == nil:
			item.Damage = part.Damage()
		case concernsItem(err):
			item = &Item{Kind: part.Kind, Path: part.Path, Err: err}
		case err != nil:
			return err
		}
		return visit(item)
	})
}

// item reads the report in a part.
func (in *reading) item(item *Item, part *unpack.Part) (err error) {
	switch part.Kind {
	case unpack.Aggregate:
		item.Aggregate, err = in.aggregate(part)
		return err
	case unpack.TLS:
		report, err := tlsrpt.ReadReport(part, in.limits.TLS)
		item.TLS = &report
		return err
	case unpack.Failure:
		if in.redaction != nil {
			if err := in.redaction.add(part.Failure); err != nil {
				return err
			}
		}
		report, err := failure.Parse(part.Failure, in.options)
		item.Failure = &report
		item.sameness = failureSameness(part.Failure)
		return err
	default:
		item.Err = part.Err
		return nil
	}
}

// concernsItem tells the errors that refuse one item from those that end the
// reading: of the limits on containers, the ratio alone concerns a single one.
func concernsItem(err error) bool {
	var (
		noAggregate *aggregate.RefusedError
		noTLS       *tlsrpt.RefusedError
		noFailure   *failure.RefusedError
		limit       *unpack.LimitError
	)
	return errors.As(err, &noAggregate) || errors.As(err, &noTLS) || errors.As(err, &noFailure) ||
		errors.As(err, &limit) && limit.Limit == unpack.LimitRatio
}
