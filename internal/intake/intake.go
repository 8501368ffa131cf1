// Package intake turns input into reports: it opens containers and reads each report with the
// package for its kind. Unusable items are returned with the reason. Read passes on the
// reports one by one; an Acceptor collects them in a delivery that can be stored.
//
// Records of long aggregate reports are streamed, so that a report with a million records
// needs little memory. Transports, storage and notifications are left to the caller.
package intake

import (
	"bytes"
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

// Limits bounds the reading of one message.
type Limits struct {
	// Containers limits unpacking. All its fields must be set.
	Containers unpack.Limits
	// Aggregate and TLS limit a report; zero fields are the defaults of their packages.
	Aggregate aggregate.Limits
	TLS       tlsrpt.Limits
	// Time limits the CPU time of an Acceptor for one message (wall time where the system does
	// not report it). It must be set. Read uses only its context.
	Time time.Duration
	// Now is the clock that report times are checked against; nil is time.Now.
	Now func() time.Time
}

// DefaultLimits returns limits far above real reports.
func DefaultLimits() Limits {
	return Limits{
		Containers: unpack.DefaultLimits(),
		Aggregate:  aggregate.DefaultLimits(),
		TLS:        tlsrpt.DefaultLimits(),
		Time:       time.Minute,
	}
}

// Item is a report or a rejected item. Exactly one of Aggregate, Failure, TLS and Err is set.
type Item struct {
	// Kind is the detected kind, also of a rejected item.
	Kind unpack.Kind
	// Path is the location in the input, for users; "" for the input itself. See unpack.Part.
	Path string

	Aggregate *Aggregate
	// Failure is redacted as configured; Read redacts everything.
	Failure *failure.Report
	TLS     *tlsrpt.Report
	// Err is the reason for the rejection, in a sentence for the sender.
	Err error

	// Damage describes a damaged container whose report could still be read; nil if it is
	// intact.
	Damage error

	// latest is the latest plausible time for the report.
	latest int64
	// sameness is the hash of a failure report before redaction.
	sameness dmarcd.Hash
}

// Visit is called for every item in order. Its records are valid until it returns. An error
// stops the reading.
type Visit func(item *Item) error

// Reader reads inputs one after another and reuses its buffers, which makes reading many
// small inputs faster. It is not safe for concurrent use.
type Reader struct{ in reading }

// NewReader returns a reader with limits that apply to each input.
func NewReader(limits Limits) *Reader {
	return &Reader{reading{limits: limits, copies: &Copy{folder: limits.Containers.Folder}}}
}

// Read passes every report in input and every rejected item to visit. It calls visit at least
// once or returns an error: dmarcd.ErrLimit if the input as a whole exceeds a limit, else the
// error of ctx, input, visit or a temporary file. Items visited before the error are valid.
//
// A zip archive is read in place if the input allows it; see unpack.Walker.
func (r *Reader) Read(ctx context.Context, input io.Reader, visit Visit) error {
	in := &r.in
	defer in.forget()
	return in.items(ctx, input, func(item *Item) error {
		defer in.forget()
		defer in.reuse(item)
		return visit(item)
	})
}

const (
	// maxCollected is how many records of one input stay in memory, and collectedFrom the
	// limit of bytes of their documents. Most inputs are smaller; longer ones are read twice.
	maxCollected  = 4096
	collectedFrom = 1 << 20
)

// reading is the state of reading one input.
type reading struct {
	limits Limits
	// copies holds all documents that are read twice, in one temporary file.
	copies *Copy
	// redaction collects failure reports; nil if no original is stored.
	redaction *redaction

	latest           int64 // the latest plausible time, in seconds since 1970
	collectedRecords int
	collectedBytes   int64

	// Buffers that are reused.
	walker  unpack.Walker
	reader  *aggregate.Reader
	records []aggregate.Record // empty
}

// fits reports whether more records, from a document of that many bytes, fit in memory.
func (in *reading) fits(records int, bytes int64) bool {
	return in.collectedRecords+records <= maxCollected && in.collectedBytes+bytes <= collectedFrom
}

// forget releases all items.
func (in *reading) forget() {
	in.copies.cut(0)
	in.collectedRecords, in.collectedBytes = 0, 0
}

// reuse takes back the memory of an item, which must not be used after that.
func (in *reading) reuse(item *Item) {
	if item.Aggregate != nil {
		in.records = item.Aggregate.records[:0]
	}
}

// items passes every item in r to visit. Items are valid until copies is closed.
func (in *reading) items(ctx context.Context, r io.Reader, visit Visit) error {
	now := time.Now
	if in.limits.Now != nil {
		now = in.limits.Now
	}
	in.latest = now().Add(reporttext.MaxAhead).Unix()
	in.limits.Aggregate.Latest, in.limits.TLS.Latest = in.latest, in.latest
	return in.walker.Walk(ctx, r, in.limits.Containers, func(part *unpack.Part) error {
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

// hand passes an item, or the reason for its rejection, to visit. It returns only errors that
// stop the reading.
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

// tlsReports passes each report of a document to visit. Most documents have one.
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

func (in *reading) failure(item *Item, part *unpack.Part) error {
	if in.redaction != nil {
		if err := in.redaction.add(part.Failure); err != nil {
			return err
		}
	}
	report, err := failure.Parse(part.Failure, failure.Options{Latest: in.latest})
	item.Failure = &report
	item.sameness = failureSameness(part.Failure)
	return err
}

// documentPath returns the path of a report in a document. The first one has the path of the
// document.
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

// concernsItem reports whether an error rejects one item and does not stop the reading. Of the
// container limits, only the ratio does.
func concernsItem(err error) bool {
	var (
		noAggregate *aggregate.RejectedError
		noTLS       *tlsrpt.RejectedError
		noFailure   *failure.RejectedError
		limit       *unpack.LimitError
	)
	return errors.As(err, &noAggregate) || errors.As(err, &noTLS) || errors.As(err, &noFailure) ||
		errors.As(err, &limit) && limit.Limit == unpack.LimitRatio
}

// redaction collects the redacted failure reports of a message. They replace the original of
// the delivery: one mail, or an mbox if there are several.
//
// Other content of the message is not part of that original. Other reports in it are stored as
// read.
type redaction struct {
	content Copy
	// first is set while there is only one report.
	first   []byte
	reports int
}

// add appends a failure report. Its errors are those of Copy.Write.
func (r *redaction) add(m failure.Message) error {
	mail := failure.Redact(m).Mail()
	r.reports++
	if r.reports == 1 {
		r.first = mail
		return nil
	}
	if r.first != nil {
		if err := r.append(r.first); err != nil {
			return err
		}
		r.first = nil
	}
	return r.append(mail)
}

// append writes a mail to the mbox, with From lines quoted.
func (r *redaction) append(mail []byte) error {
	entry := []byte("From dmarcd Thu Jan  1 00:00:00 1970\n")
	for line := range bytes.Lines(mail) {
		if bytes.HasPrefix(line, []byte("From ")) {
			entry = append(entry, '>')
		}
		entry = append(entry, line...)
	}
	_, err := r.content.Write(append(entry, '\n'))
	return err
}

// apply returns the message with the redacted reports as content, or unchanged if it has none.
func (r *redaction) apply(m Message) (Message, error) {
	if r.reports == 0 {
		return m, nil
	}
	if r.first != nil {
		if _, err := r.content.Write(r.first); err != nil {
			return m, err
		}
		r.first = nil
	}
	m.Content, m.Size = &r.content, r.content.Size()
	return m, nil
}
