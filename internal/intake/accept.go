package intake

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/fair"
	"github.com/dmarcd/dmarcd/internal/intake/unpack"
	"github.com/dmarcd/dmarcd/internal/recovered"
	"github.com/dmarcd/dmarcd/internal/trace"
)

// Message is one input: a mail, an upload or a file.
type Message struct {
	// Team is the recipient. Reading is charged to it; see Lanes.
	Team dmarcd.TeamID
	// Outsider means that the sender has no account, as for TLS reports over HTTPS. SMTP mail
	// always counts as such.
	Outsider bool
	// Domain is the domain whose reporting address received the message, or 0.
	Domain         dmarcd.DomainID
	Intake         dmarcd.Intake
	Authentication dmarcd.Authentication
	// Name is shown to users; "" if unknown.
	Name string
	// Content holds Size bytes. It is read twice, and not after Read returns. See CopyOf for
	// streams.
	Content io.ReaderAt
	Size    int64
	// Audit are entries to write with the stored data.
	Audit []dmarcd.AuditEntry
}

// Acceptor reads messages into deliveries. All fields except Lanes, Disk, RejectForged,
// Received and Took must be set, and must not change after the first use. Do not copy
// it. Its methods are safe for concurrent use.
type Acceptor struct {
	// Lanes limits how many messages are read at once; nil means no limit.
	Lanes *Lanes
	// Limits applies to each message, and names the folder for temporary files.
	Limits Limits
	// Disk returns an error that wraps ErrLowDisk if the disk is almost full; nil disables the
	// check.
	Disk func() error
	// RejectForged rejects reports in mail that fails authentication.
	RejectForged bool
	// Encode returns the stored document of a report; see dmarcd.NewReport.
	Encode func(dmarcd.Detail) string
	// Recovered reports panics of parsers. The message is stored as rejected.
	Recovered recovered.Boundary
	// Received is called with the receipts of each stored delivery; nil ignores them.
	Received func(dmarcd.Intake, []dmarcd.Receipt)
	// Took is called with the time of each Read and Store that succeeded; nil ignores it.
	Took func(stage string, took time.Duration)

	packer packer
}

// ErrLowDisk means that the disk is almost full. It is a dmarcd.ErrTemporary.
var ErrLowDisk = fmt.Errorf("%w: the disk is almost full", dmarcd.ErrTemporary)

// Ready returns ErrLowDisk if nothing can be received now. Read checks it too; a transport
// calls it before it spools data.
func (a *Acceptor) Ready() error {
	if a.Disk == nil {
		return nil
	}
	return a.Disk()
}

// Opened is a delivery that was read from a message.
type Opened struct {
	// Delivery is valid until Close.
	Delivery *dmarcd.Delivery

	packed, documents Copy
	redaction         redaction
	slot              *slot
}

// Heavy reports whether the delivery holds one of the few slots for heavy messages. The slot
// is held until Close: a caller that collects deliveries must store and close them before it
// reads the next message, which may need the same slot.
func (o *Opened) Heavy() bool { return o.slot.heavy && o.slot.lanes != nil }

// Close releases the temporary files and the slot of the delivery.
func (o *Opened) Close() {
	o.packed.Close()
	o.documents.Close()
	o.redaction.content.Close()
	o.slot.release()
}

// Accept reads a message, stores its reports, and returns a receipt for each item. Its errors
// are those of Read and Store.
func (a *Acceptor) Accept(ctx context.Context, store DeliveryStore, m Message) ([]dmarcd.Receipt, error) {
	opened, err := a.Read(ctx, m)
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	return a.Store(ctx, store, opened.Delivery)
}

// Read reads a message into a delivery. Items that are not usable reports become rejections. A
// message that exceeds a limit or makes a reader panic is rejected as a whole. Close the
// delivery; its records end with ctx.
//
// An error means that the message was not evaluated and can be retried: the error of ctx, or a
// dmarcd.ErrTemporary if the content or a temporary file failed or too many messages of the
// team are waiting.
func (a *Acceptor) Read(ctx context.Context, m Message) (_ *Opened, err error) {
	began := time.Now()
	// The records are read with ctx after the end of this span.
	_, span := trace.Start(ctx, "parse reports", trace.Internal)
	defer func() { span.End(err) }()
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
		err = o.slot.switchToHeavy(ctx)
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
	a.took("read", began)
	return o, nil
}

func (a *Acceptor) took(stage string, began time.Time) {
	if a.Took != nil {
		a.Took(stage, time.Since(began))
	}
}

// open waits for a slot. The delivery must be closed, also after an error.
func (a *Acceptor) open(ctx context.Context, m Message) (*Opened, error) {
	folder := a.Limits.Containers.Folder
	o := &Opened{
		Delivery:  &dmarcd.Delivery{Intake: m.Intake, Authentication: m.Authentication, Domain: m.Domain, Name: plain(m.Name), Audit: m.Audit},
		packed:    Copy{folder: folder},
		documents: Copy{folder: folder},
		redaction: redaction{content: Copy{folder: folder}},
	}
	o.slot = &slot{release: func() {}}
	err := a.Ready()
	if err == nil {
		o.slot, err = a.Lanes.enter(ctx, m)
	}
	return o, err
}

// errTime stops a message that exceeds its time limit.
var errTime = errors.New("time limit exceeded")

// read adds the items of a message to its delivery.
func (a *Acceptor) read(ctx context.Context, m Message, o *Opened) error {
	used, stop := startCPUTimer()
	defer stop()
	progress := func(expanded int64) error {
		if used() >= a.Limits.Time {
			return errTime
		}
		if expanded > lightExpanded {
			return o.slot.switchToHeavy(ctx)
		}
		return nil
	}
	err := a.Recovered.Call("parser", func() error { return a.items(ctx, progress, m, o) })
	o.Delivery.SetAuthentication(m.Authentication)
	switch {
	case recovered.Is(err):
		o.reject("the parser failed; the original is stored and can be retried after an upgrade")
	case errors.Is(err, dmarcd.ErrLimit):
		o.reject(err.Error())
	case errors.Is(err, errTime):
		o.reject(fmt.Sprintf("the parsing time limit of %s was exceeded", a.Limits.Time))
	default:
		return err
	}
	return nil
}

// reject replaces the content of the delivery with one rejection.
func (o *Opened) reject(reason string) {
	o.documents.cut(0)
	o.Delivery.Reports = nil
	o.Delivery.Rejections = []dmarcd.Rejection{{Reason: reason}}
}

// maxDocuments limits the bytes of all report documents of one message, which are in memory at
// once.
const maxDocuments = 32 << 20

// The names of maxDocuments and maxShares in errors.
const (
	limitDocuments unpack.Limit = "bytes of report content"
	limitShares    unpack.Limit = "From domains"
)

func (a *Acceptor) items(ctx context.Context, progress func(int64) error, m Message, o *Opened) error {
	documents, shares := 0, 0
	in := &reading{limits: a.Limits, copies: &o.documents, redaction: &o.redaction}
	in.limits.Containers.Progress = progress
	return in.items(ctx, io.NewSectionReader(m.Content, 0, m.Size), func(item *Item) error {
		if reason, rejected := a.rejection(item, m.Authentication); rejected {
			o.Delivery.Rejections = append(o.Delivery.Rejections,
				dmarcd.Rejection{Kind: reportKind(item.Kind), Member: item.Path, Reason: plain(reason)})
			return nil
		}
		report := newReport(ctx, item)
		report.Document = a.Encode(item.detail())
		if documents += len(report.Document); documents > maxDocuments {
			return &unpack.LimitError{Limit: limitDocuments, Max: maxDocuments}
		}
		if shares += len(report.Shares); shares > maxShares {
			return &unpack.LimitError{Limit: limitShares, Max: maxShares}
		}
		o.Delivery.Reports = append(o.Delivery.Reports, report)
		return nil
	})
}

// rejection returns why an item is rejected, if it is.
func (a *Acceptor) rejection(item *Item, v dmarcd.Authentication) (reason string, rejected bool) {
	switch {
	case item.Err != nil:
		return item.Err.Error(), true
	case a.RejectForged && v.Genuine == dmarcd.GenuineNo:
		return "the sender of the message is spoofed: " + v.Reason, true
	default:
		return "", false
	}
}

// Reject returns a delivery with one rejection for a message that its transport could not read
// completely. The available bytes are stored as the original.
func (a *Acceptor) Reject(ctx context.Context, m Message, reason string) (*Opened, error) {
	o, err := a.open(ctx, m)
	if err == nil {
		o.Delivery.Original, err = a.packer.pack(ctx, m, &o.packed)
	}
	if err != nil {
		o.Close()
		return nil, fmt.Errorf("store original: %w", err)
	}
	o.reject(plain(reason))
	if !o.slot.heavy {
		o.slot.release()
	}
	return o, nil
}

// A message is heavy if it exceeds one of these limits: bytes received, bytes expanded, or
// number of reports.
const (
	lightSize     = 64 << 10
	lightExpanded = collectedFrom
	lightReports  = 16
	lightShares   = 256
)

// Lanes limits how many messages are read and stored at once, fairly by team and across all
// transports. Light messages have their own lane and never wait for heavy ones; a message that
// turns out to be heavy switches lanes. It is safe for concurrent use; nil means no limits.
type Lanes struct {
	light, heavy *fair.Limiter[payer]
}

// payer is the account that a message is charged to. Messages from outsiders are charged
// separately, so that a flood of mail does not block the team's own uploads.
type payer struct {
	team     dmarcd.TeamID
	outsider bool
}

// maxWaiting limits the waiting messages of a payer.
const maxWaiting = 64

// memory is how long usage counts against a payer: a quiet payer goes first.
const memory = time.Minute

// NewLanes returns lanes for a number of cores.
func NewLanes(cores int) *Lanes {
	light := int64(max(4, 2*cores))
	heavy := int64(max(1, cores/2)) // the others stay free for light messages and requests
	return &Lanes{
		light: fair.New[payer](fair.Options{Capacity: light, PerKey: light / 2, Waiting: maxWaiting, HalfLife: memory}),
		heavy: fair.New[payer](fair.Options{Capacity: heavy, PerKey: (heavy + 1) / 2, Waiting: maxWaiting, HalfLife: memory}),
	}
}

// enter waits for a slot. The slot must be released, also after an error, which is one of
// fair.Limiter.
func (l *Lanes) enter(ctx context.Context, m Message) (*slot, error) {
	s := &slot{lanes: l, payer: payer{m.Team, m.Outsider || m.Intake == dmarcd.IntakeSMTP}}
	return s, s.acquire(ctx, m.Size > lightSize)
}

// slot is the right to be read and stored in a lane.
type slot struct {
	lanes   *Lanes
	payer   payer
	heavy   bool
	release func()
}

// switchToHeavy switches to the heavy lane and waits for a slot.
func (s *slot) switchToHeavy(ctx context.Context) error {
	if s.heavy {
		return nil
	}
	s.release()
	return s.acquire(ctx, true)
}

func (s *slot) acquire(ctx context.Context, heavy bool) error {
	s.heavy, s.release = heavy, func() {}
	if s.lanes == nil {
		return nil
	}
	lane := s.lanes.light
	if heavy {
		lane = s.lanes.heavy
	}
	release, err := lane.Acquire(ctx, s.payer, 1)
	if err == nil {
		s.release = release
	}
	return err
}

// storesMuch reports whether storing the delivery is slow.
func storesMuch(d *dmarcd.Delivery) bool {
	shares := 0
	for i := range d.Reports {
		shares += len(d.Reports[i].Shares)
	}
	return len(d.Reports)+len(d.Rejections) > lightReports || shares > lightShares
}
