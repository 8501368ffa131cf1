// Package upload receives the bodies of large requests: files with reports, sent by a
// token, a form or an outsider. It bounds how long a client may take and how many
// bodies are received at once, fairly by team and by the network of the client. What is
// in a body, and who may send one, is left to the caller.
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

// Limits bound the receiving of bodies. All fields must be set.
type Limits struct {
	// Idle is how long a client may send nothing.
	Idle time.Duration
	// Grace is how long a body may take whatever its length. After that Rate bytes a
	// second must have arrived.
	Grace time.Duration
	Rate  int64
	// Total is how long a body may take at most.
	Total time.Duration
	// Wait is how long a body waits for the others.
	Wait time.Duration
	// Short is the length up to which a body is received without waiting for others.
	Short int64
	// Bodies is how many longer bodies are received or held at once, PerTeam and
	// PerNetwork how many of them for one team and from one network.
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
	limits   Limits
	networks *fair.Limiter[netip.Prefix]
	teams    *fair.Limiter[dmarcd.TeamID]
}

// NewGate returns a gate with these limits.
func NewGate(limits Limits) *Gate {
	return &Gate{
		limits:   limits,
		networks: fair.New[netip.Prefix](fair.Options{Capacity: limits.Bodies, PerKey: limits.PerNetwork}),
		teams:    fair.New[dmarcd.TeamID](fair.Options{Capacity: limits.Bodies, PerKey: limits.PerTeam}),
	}
}

// ErrSlow is the error of a body that did not arrive in time.
var ErrSlow = errors.New("the body arrived too slowly")

// Body is the body of a request. It counts as held until Close.
type Body struct {
	gate    *Gate
	team    dmarcd.TeamID
	network netip.Prefix
	ctx     context.Context //nolint:containedctx // that of the request
	body    io.Reader
	control *http.ResponseController

	received int64
	spent    time.Duration // waiting for the client
	leave    []func()
}

// Body returns the body of a request, which a team is to get. It must be closed once
// nothing of it is held any more.
func (g *Gate) Body(w http.ResponseWriter, r *http.Request, team dmarcd.TeamID) *Body {
	return &Body{gate: g, team: team, network: clientaddr.Network(r), ctx: r.Context(), body: r.Body, control: http.NewResponseController(w)}
}

// Read reads the body. It returns ErrSlow if the client takes too long, and an
// ErrTemporary if too many bodies are received already.
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
	// A writer without deadlines, as in tests, is not the server's.
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

// enter waits until the rest of a long body may be received.
func (b *Body) enter() error {
	ctx, cancel := context.WithTimeout(b.ctx, b.gate.limits.Wait)
	defer cancel()
	byNetwork, err := b.gate.networks.Acquire(ctx, b.network, 1)
	if err == nil {
		b.leave = append(b.leave, byNetwork)
		var byTeam func()
		if byTeam, err = b.gate.teams.Acquire(ctx, b.team, 1); err == nil {
			b.leave = append(b.leave, byTeam)
			return nil
		}
	}
	b.Close()
	if errors.Is(err, context.DeadlineExceeded) && b.ctx.Err() == nil {
		err = fmt.Errorf("%w: too many uploads at once", dmarcd.ErrTemporary)
	}
	return err
}

// Close gives the place of the body to others.
func (b *Body) Close() {
	for _, leave := range b.leave {
		leave()
	}
	b.leave = nil
}
