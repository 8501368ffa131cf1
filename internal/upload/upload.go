// Package upload receives large request bodies from tokens, forms and outsiders. It limits the
// time of a client and the number of concurrent bodies, fairly by team and client network. The
// caller authorizes the request and reads the content.
package upload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/clientaddr"
	"github.com/dmarcd/dmarcd/internal/fair"
)

// Limits bounds receiving bodies. All fields must be set.
type Limits struct {
	// Idle limits a pause of the client.
	Idle time.Duration
	// Grace is the time without a minimum rate. After that Rate bytes per second must have
	// arrived.
	Grace time.Duration
	Rate  int64
	// Total limits the time of a body.
	Total time.Duration
	// Wait limits the wait for a slot.
	Wait time.Duration
	// Short is the length up to which a body needs no slot.
	Short int64
	// Bodies limits longer bodies that are received or held, in total, per team and per
	// network.
	Bodies, PerTeam, PerNetwork int64
}

// DefaultLimits returns the limits of a server.
func DefaultLimits() Limits {
	return Limits{
		Idle: 15 * time.Second, Grace: 20 * time.Second, Rate: 32 << 10, Total: 5 * time.Minute, Wait: 30 * time.Second,
		Short: 64 << 10, Bodies: 64, PerTeam: 16, PerNetwork: 32,
	}
}

// Gate admits bodies. It is safe for concurrent use.
type Gate struct {
	limits Limits
	slots  *fair.Limiter[sender]
}

// sender is a team, a client network, or a client network of a team.
type sender struct {
	team    dmarcd.TeamID
	network netip.Prefix
}

// NewGate returns a gate with these limits.
func NewGate(limits Limits) *Gate {
	return &Gate{limits: limits, slots: fair.New(fair.Options{Capacity: limits.Bodies},
		fair.Group[sender]{Of: func(s sender) sender { return sender{team: s.team} }, Max: limits.PerTeam},
		fair.Group[sender]{Of: func(s sender) sender { return sender{network: s.network} }, Max: limits.PerNetwork})}
}

// ErrSlow means that a body did not arrive in time.
var ErrSlow = errors.New("the body arrived too slowly")

// Body is a request body. It holds its slot until Close.
type Body struct {
	gate    *Gate
	sender  sender
	ctx     context.Context //nolint:containedctx // that of the request
	body    io.Reader
	control *http.ResponseController

	received int64
	spent    time.Duration // time spent waiting for the client
	leave    func()        // nil without a slot
}

// Body returns the body of a request for a team. Close it when nothing of it is held any more.
func (g *Gate) Body(w http.ResponseWriter, r *http.Request, team dmarcd.TeamID) *Body {
	return &Body{gate: g, sender: sender{team, clientaddr.Network(r)}, ctx: r.Context(), body: r.Body, control: http.NewResponseController(w)}
}

// Read returns ErrSlow if the client is too slow, and an ErrTemporary if too many bodies are
// being received.
func (b *Body) Read(p []byte) (int, error) {
	limits := &b.gate.limits
	if b.leave == nil {
		if left := limits.Short - b.received; left > 0 {
			p = p[:min(int64(len(p)), left)]
		} else if err := b.enter(); err != nil {
			return 0, err
		}
	}
	earned := limits.Grace + time.Duration(b.received/limits.Rate)*time.Second
	left := min(limits.Idle, earned-b.spent, limits.Total-b.spent)
	began := time.Now()
	// Writers in tests have no deadlines.
	_ = b.control.SetReadDeadline(began.Add(left))
	n, err := b.body.Read(p)
	took := time.Since(began)
	b.received += int64(n)
	b.spent += took
	if err != nil && !errors.Is(err, io.EOF) && took >= left {
		err = ErrSlow
	}
	return n, err
}

// enter waits for a slot for the rest of a long body.
func (b *Body) enter() error {
	ctx, cancel := context.WithTimeout(b.ctx, b.gate.limits.Wait)
	defer cancel()
	leave, err := b.gate.slots.Acquire(ctx, b.sender, 1)
	b.leave = leave
	if errors.Is(err, context.DeadlineExceeded) && b.ctx.Err() == nil {
		err = fmt.Errorf("%w: too many uploads at once", dmarcd.ErrTemporary)
	}
	return err
}

// Close releases the slot.
func (b *Body) Close() {
	if b.leave != nil {
		b.leave()
		b.leave = nil
	}
}
