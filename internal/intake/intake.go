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
	"strconv"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/failure"
	"github.com/dmarcd/dmarcd/internal/intake/unpack"
	"github.com/dmarcd/dmarcd/internal/reporttext"
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
	// Now tells the time, against which the times of reports are judged; nil stands
	// for time.Now.
	Now func() time.Time
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

	// latest is the latest time that the report may plausibly be about.
	latest int64
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

	latest           int64 // the latest plausible time, in seconds since 1970
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
	now := time.Now
	if in.limits.Now != nil {
		now = in.limits.Now
	}
	in.latest = now().Add(reporttext.Ahead).Unix()
	in.limits.Aggregate.Latest, in.limits.TLS.Latest, in.options.Latest = in.latest, in.latest, in.latest
	return unpack.Walk(ctx, r, in.limits.Containers, func(part *unpack.Part) error {
		item := &Item{Kind: part.Kind, Path: part.Path}
		switch part.Kind {
		case unpack.Aggregate:
			return in.aggregates(part, visit)
		case unpack.TLS:
			return in.tlsReports(part, visit)
		case unpack.Failure:
			return in.hand(item, in.failure(item, part), part, visit)
		default:
			item.Err = part.Err
			return visit(item)
		}
	})
}

// hand gives an item to visit, or the reason for which it was refused. It returns
// errors that end the reading.
func (in *reading) hand(item *Item, err error, part *unpack.Part, visit Visit) error {
	item.latest = in.latest
	switch {
	case err == nil:
		item.Damage = part.Damage()
	case concernsItem(err):
		item = &Item{Kind: item.Kind, Path: item.Path, Err: err}
	default:
		return err
	}
	return visit(item)
}

// tlsReports reads the reports of a document, of which most have one, and hands each
// to visit.
func (in *reading) tlsReports(part *unpack.Part, visit Visit) error {
	reader := tlsrpt.NewReader(part, in.limits.TLS)
	for number := 1; ; number++ {
		report, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if number > 1 {
			if err := part.AnotherDocument(); err != nil {
				return err
			}
		}
		item := &Item{Kind: part.Kind, Path: documentPath(part.Path, number), TLS: &report}
		if err := in.hand(item, err, part, visit); err != nil {
			return err
		}
	}
}

// failure reads the failure report in a part.
func (in *reading) failure(item *Item, part *unpack.Part) error {
	if in.redaction != nil {
		if err := in.redaction.add(part.Failure); err != nil {
			return err
		}
	}
	report, err := failure.Parse(part.Failure, in.options)
	item.Failure = &report
	item.sameness = failureSameness(part.Failure)
	return err
}

// documentPath returns the path of one of several reports of a document. The first has
// that of the document.
func documentPath(path string, number int) string {
	switch {
	case number == 1:
		return path
	case path == "":
		return strconv.Itoa(number)
	default:
		return path + "/" + strconv.Itoa(number)
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
