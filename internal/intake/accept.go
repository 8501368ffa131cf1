package intake

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/failure"
	"github.com/dmarcd/dmarcd/internal/intake/unpack"
)

// Message is one thing that was sent: a mail, an upload or a file.
type Message struct {
	// Team is the team that the message is for. It is read on that team's account;
	// see Lanes.
	Team dmarcd.TeamID
	// Outsider tells that the sender has no account, as with TLS reports by HTTPS. Mails
	// by SMTP always count as such.
	Outsider bool
	// Domain is the domain whose reporting address the message was sent to, or 0.
	Domain  dmarcd.DomainID
	Intake  dmarcd.Intake
	Verdict dmarcd.Verdict
	// Name is what it is called, for people, or "".
	Name string
	// Content holds the Size bytes of it. It is read twice, and only until Read
	// returns. See CopyOf for what can be read once only.
	Content io.ReaderAt
	Size    int64
	// Audit are the entries that the audit log gets with what is stored.
	Audit []dmarcd.AuditEntry
}

// Keeper keeps deliveries.
type Keeper interface {
	// Receive keeps all deliveries or none, and says what became of each report
	// and refusal of each. It does not use them after it has returned.
	Receive(ctx context.Context, deliveries []*dmarcd.Delivery) ([][]dmarcd.Receipt, error)
}

// Acceptor makes deliveries of messages. All fields but Lanes, Disk, Failure, RefuseForged
// and Received must be set, and must not be changed once it is used. It must not be copied.
// Its methods are safe for concurrent use.
type Acceptor struct {
	// Lanes bounds how many messages are read at once; nil means any number.
	Lanes *Lanes
	// Limits bound each message. Temporary files go to its folder.
	Limits Limits
	// Disk returns an error that wraps ErrLowDisk if too little of the disk is left to
	// receive anything; nil means that this is not checked.
	Disk func() error
	// Failure says what personal data is kept of failure reports.
	Failure failure.Options
	// RefuseForged keeps the reports aside that came in a mail which is not from
	// whom it says.
	RefuseForged bool
	// Encode makes the document that is stored of a report; see dmarcd.NewReport.
	Encode func(dmarcd.Detail) string
	// Fault is told of a panic of ours while a message was read, with the stack. The
	// message is kept aside, and others are not held up.
	Fault func(error)
	// Received is called with the receipts of each delivery that Store has stored; nil
	// means that no caller is interested.
	Received func(dmarcd.Intake, []dmarcd.Receipt)

	packer packer
}

// ErrLowDisk means that too little of the disk is left to receive anything. It is a
// dmarcd.ErrTemporary.
var ErrLowDisk = fmt.Errorf("%w: the disk is almost full", dmarcd.ErrTemporary)

// Ready returns an ErrLowDisk if nothing can be received now. Read says the same; an
// entrance asks before it takes what it would have to store first.
func (a *Acceptor) Ready() error {
	if a.Disk == nil {
		return nil
	}
	return a.Disk()
}

// Opened is a delivery that was read from a message.
type Opened struct {
	// Delivery can be used until Close.
	Delivery *dmarcd.Delivery

	packed, documents Copy
	redaction         redaction
	slot              *slot
}

// Heavy reports whether the delivery is in the lane of those that take long. It then occupies one of a few
// slots until Close: whoever collects several deliveries must store and close them
// before reading the next message, which might wait for that very slot.
func (o *Opened) Heavy() bool { return o.slot.heavy && o.slot.lanes != nil }

// Close gives the space and the slot of the delivery back.
func (o *Opened) Close() {
	o.packed.Close()
	o.documents.Close()
	o.redaction.content.Close()
	o.slot.release()
}

// Accept reads a message and stores what it holds. It returns what became of each item.
// Its errors are those of Read and Store.
func (a *Acceptor) Accept(ctx context.Context, keeper Keeper, m Message) ([]dmarcd.Receipt, error) {
	opened, err := a.Read(ctx, m)
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	receipts, err := a.Store(ctx, keeper, opened.Delivery)
	if err != nil {
		return nil, err
	}
	return receipts[0], nil
}

// Store has the keeper store deliveries, all or none. It returns the receipts of each of
// them, in their order. All deliveries are stored through it, so that Received is called
// for each.
func (a *Acceptor) Store(ctx context.Context, keeper Keeper, deliveries ...*dmarcd.Delivery) ([][]dmarcd.Receipt, error) {
	receipts, err := keeper.Receive(ctx, deliveries)
	if err == nil && a.Received != nil {
		for i, d := range deliveries {
			a.Received(d.Intake, receipts[i])
		}
	}
	return receipts, err
}

// Read makes a delivery of a message. What is no report that can be used is among its
// refusals; a message that is over one of the limits is refused as a whole, and so is
// one that makes a reader panic. The delivery must be closed, and its records end with
// ctx.
//
// An error means that the message was not judged and may be tried again: it is that of
// ctx, or a dmarcd.ErrTemporary where the content or a temporary file failed, or too many
// messages of the team wait already.
func (a *Acceptor) Read(ctx context.Context, m Message) (*Opened, error) {
	o, err := a.open(ctx, m)
	if err == nil {
		err = a.read(ctx, m, o)
	}
	if err == nil {
		m, err = o.redaction.apply(m)
	}
	if err == nil {
		o.Delivery.Original, err = a.packer.pack(ctx, m, &o.packed)
	}
	if err == nil && storesMuch(o.Delivery) {
		err = o.slot.turnHeavy(ctx)
	}
	if err != nil {
		o.Close()
		if ctx.Err() == nil && !errors.Is(err, dmarcd.ErrTemporary) {
			err = fmt.Errorf("%w: %w", dmarcd.ErrTemporary, err)
		}
		return nil, fmt.Errorf("read message: %w", err)
	}
	if !o.slot.heavy {
		o.slot.release()
	}
	return o, nil
}

// open waits for the lane of a message. The delivery must be closed, also after an
// error.
func (a *Acceptor) open(ctx context.Context, m Message) (*Opened, error) {
	folder := a.Limits.Containers.Folder
	o := &Opened{
		Delivery:  &dmarcd.Delivery{Intake: m.Intake, Verdict: m.Verdict, Domain: m.Domain, Name: plain(m.Name), Audit: m.Audit},
		packed:    Copy{folder: folder},
		documents: Copy{folder: folder},
		redaction: redaction{options: a.Failure, content: Copy{folder: folder}},
	}
	o.slot = &slot{release: func() {}}
	err := a.Ready()
	if err == nil {
		o.slot, err = a.Lanes.enter(ctx, m)
	}
	return o, err
}

// errTime ends the reading of a message that takes too long.
var errTime = errors.New("time limit exceeded")

// read adds what is in a message to its delivery.
func (a *Acceptor) read(ctx context.Context, m Message, o *Opened) error {
	used, stop := startCPUTimer()
	defer stop()
	progress := func(expanded int64) error {
		if used() >= a.Limits.Time {
			return errTime
		}
		if expanded > lightExpanded {
			return o.slot.turnHeavy(ctx)
		}
		return nil
	}
	err := guarded(func() error { return a.items(ctx, progress, m, o) })
	var fault *faultError
	switch {
	case errors.As(err, &fault):
		a.Fault(fault)
		o.refuse("the parser failed; the original is stored and can be retried after an upgrade")
	case errors.Is(err, dmarcd.ErrLimit):
		o.refuse(err.Error())
	case errors.Is(err, errTime):
		o.refuse(fmt.Sprintf("the parsing time limit of %s was exceeded", a.Limits.Time))
	default:
		return err
	}
	return nil
}

// refuse makes one refusal of the whole delivery.
func (o *Opened) refuse(reason string) {
	o.documents.cut(0)
	o.Delivery.Reports = nil
	o.Delivery.Refusals = []dmarcd.Refusal{{Reason: reason}}
}

// maxDocuments is how many bytes of documents the reports of one message may have
// together. They are all in memory at once.
const maxDocuments = 32 << 20

// limitDocuments names maxDocuments.
const limitDocuments unpack.Limit = "bytes of report content"

// items adds every item of a message to its delivery.
func (a *Acceptor) items(ctx context.Context, progress func(int64) error, m Message, o *Opened) error {
	documents := 0
	in := &reading{limits: a.Limits, options: a.Failure, copies: &o.documents, redaction: &o.redaction}
	in.limits.Containers.Progress = progress
	return in.items(ctx, io.NewSectionReader(m.Content, 0, m.Size), func(item *Item) error {
		if reason, refused := a.refusal(item, m.Verdict); refused {
			o.Delivery.Refusals = append(o.Delivery.Refusals,
				dmarcd.Refusal{Kind: reportKind(item.Kind), Member: item.Path, Reason: plain(reason)})
			return nil
		}
		report := newReport(ctx, item)
		report.Document = a.Encode(item.detail())
		if documents += len(report.Document); documents > maxDocuments {
			return &unpack.LimitError{Limit: limitDocuments, Max: maxDocuments}
		}
		o.Delivery.Reports = append(o.Delivery.Reports, report)
		return nil
	})
}

// refusal returns why an item is not kept as a report.
func (a *Acceptor) refusal(item *Item, v dmarcd.Verdict) (reason string, refused bool) {
	switch {
	case item.Err != nil:
		return item.Err.Error(), true
	case a.RefuseForged && v.Genuine == dmarcd.GenuineNo:
		return "the sender of the message is spoofed: " + v.Reason, true
	default:
		return "", false
	}
}

// faultError is a panic of ours.
type faultError struct {
	value any
	stack []byte
}

func (e *faultError) Error() string {
	return fmt.Sprintf("panic while parsing a message: %v\n%s", e.value, e.stack)
}

// guarded makes an error of a panic: one odd report must not stop the others.
func guarded(f func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &faultError{value: value, stack: debug.Stack()}
		}
	}()
	return f()
}

// Refuse makes a delivery of a message that its transport could not bring whole, with
// the reason: it is kept aside with what there is of it.
func (a *Acceptor) Refuse(ctx context.Context, m Message, reason string) (*Opened, error) {
	o, err := a.open(ctx, m)
	if err == nil {
		o.Delivery.Original, err = a.packer.pack(ctx, m, &o.packed)
	}
	if err != nil {
		o.Close()
		return nil, fmt.Errorf("store original: %w", err)
	}
	o.refuse(plain(reason))
	if !o.slot.heavy {
		o.slot.release()
	}
	return o, nil
}
