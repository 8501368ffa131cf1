// Package intake turns what was sent into reports: it opens the containers, and has
// each report in them read by the package that knows its kind. What cannot be read
// comes out beside the rest, with the reason.
//
// The records of an aggregate report are streamed, so that a report of a million of
// them takes little memory. Where the bytes come from, what becomes of the reports,
// and who hears of a refusal is left to the caller; nothing is stored.
package intake

import (
	"context"
	"errors"
	"io"

	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/failure"
	"github.com/dmarcd/dmarcd/internal/intake/unpack"
	"github.com/dmarcd/dmarcd/tlsrpt"
)

// Limits bound one Read. Time is bounded by the context.
type Limits struct {
	// Containers bounds what is opened. All its fields must be set.
	Containers unpack.Limits
	// Aggregate and TLS bound one report; a field that is zero stands for the
	// default of its package.
	Aggregate aggregate.Limits
	TLS       tlsrpt.Limits
}

// DefaultLimits returns limits that no honest report comes near.
func DefaultLimits() Limits {
	return Limits{
		Containers: unpack.DefaultLimits(),
		Aggregate:  aggregate.DefaultLimits(),
		TLS:        tlsrpt.DefaultLimits(),
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
	// Failure has no local part of any address, and no body of a mail.
	Failure *failure.Report
	TLS     *tlsrpt.Report
	// Err is the reason of a refusal, in words for the sender.
	Err error

	// Damage says what is wrong with the container of a report that could be read
	// all the same, as far as it goes. It is nil where nothing is.
	Damage error
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
	return unpack.Walk(ctx, r, limits.Containers, func(part *unpack.Part) error {
		item := &Item{Kind: part.Kind, Path: part.Path}
		err := item.read(part, limits)
		if item.Aggregate != nil {
			defer item.Aggregate.document.release()
		}
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

// read reads the report in a part.
func (item *Item) read(part *unpack.Part, limits Limits) error {
	switch part.Kind {
	case unpack.Aggregate:
		item.Aggregate = newAggregate(limits)
		return item.Aggregate.read(part)
	case unpack.TLS:
		report, err := tlsrpt.ReadReport(part, limits.TLS)
		item.TLS = &report
		return err
	case unpack.Failure:
		report, err := failure.Parse(part.Failure, failure.Options{})
		item.Failure = &report
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
