package resolver

import (
	"context"
	"fmt"
	"strings"
	"time"

	mdns "github.com/miekg/dns"

	"github.com/dmarcd/dmarcd/dns"
)

// failure is why one server gave no usable answer.
type failure struct {
	reason string
	// final means that the server replied: retrying immediately would give the same reply.
	final bool
}

func silence(servers string) string {
	return fmt.Sprintf("no answer from %s in time", servers)
}

// askServers queries one server after the other until one gives a usable reply, and
// retries silent ones. If none does, the failure lists the reason of each server.
func (r *Resolver) askServers(ctx context.Context, q dns.Question, deadline func() time.Time) (part, *failure) {
	var reasons map[*server]string
	plan := r.plan()
	for round := range r.config.Attempts {
		var silent []*server
		for i, s := range plan {
			// In the first round the remaining time is shared with the servers still to
			// come, and with one retry.
			shares := 1
			if round == 0 {
				shares = len(plan) - i + 1
			}
			found, failed := r.askServer(ctx, s, q, deadline, shares)
			if failed == nil {
				return found, nil
			}
			if ctx.Err() != nil {
				return part{}, &failure{reason: r.whyEnded(ctx)}
			}
			if reasons == nil {
				reasons = make(map[*server]string)
			}
			reasons[s] = failed.reason
			if !failed.final {
				silent = append(silent, s)
			}
		}
		plan = silent
	}
	return part{}, &failure{reason: r.joinReasons(reasons)}
}

// joinReasons lists the reasons in the order of the configuration.
func (r *Resolver) joinReasons(reasons map[*server]string) string {
	var list []string
	for _, s := range r.servers {
		if reason, ok := reasons[s]; ok {
			list = append(list, reason)
		}
	}
	return strings.Join(list, "; ")
}

// askServer queries one server once, when a slot is free. It waits at most for the
// configured timeout and one share of the remaining time.
func (r *Resolver) askServer(ctx context.Context, s *server, q dns.Question, deadline func() time.Time, shares int) (part, *failure) {
	leave, ok := r.enter(ctx, s)
	if !ok {
		return part{}, &failure{reason: r.whyEnded(ctx)}
	}
	defer leave()
	left := time.Until(deadline())
	if left <= 0 {
		return part{}, &failure{reason: silence(s.address)}
	}
	until := time.Now().Add(min(r.config.Timeout, left/time.Duration(shares)))

	reply, err := r.exchange(ctx, s, newQuery(q), until)
	if err != nil {
		if ctx.Err() == nil {
			s.noteSilence(r.config.Now())
		}
		return part{}, &failure{reason: explain(s.address, err)}
	}
	s.noteReply()
	found, err := read(reply, q)
	if err != nil {
		return part{}, &failure{reason: fmt.Sprintf("%s %v", s.address, err), final: true}
	}
	return found, nil
}

// enter waits for a slot of the server and a global slot. The global slot is taken last,
// so that a queue at one server does not block queries to the others. It returns false if
// ctx ends first.
func (r *Resolver) enter(ctx context.Context, s *server) (leave func(), ok bool) {
	client := dns.ClientOf(ctx)
	leaveServer, err := s.inflight.Acquire(ctx, client, 1)
	if err != nil {
		return nil, false
	}
	leaveAll, err := r.inAll.Acquire(ctx, client, 1)
	if err != nil {
		leaveServer()
		return nil, false
	}
	return func() {
		leaveAll()
		leaveServer()
	}, true
}

// exchange gets a complete reply: over TCP if the UDP reply is truncated, and without EDNS
// if the server does not support it (RFC 6891 §6.2.2).
func (r *Resolver) exchange(ctx context.Context, s *server, query *mdns.Msg, until time.Time) (*mdns.Msg, error) {
	reply, err := r.overUDP(ctx, s, query, until)
	if err == nil && refusesEDNS(reply) {
		query = query.Copy()
		query.Id = mdns.Id()
		query.Extra = nil
		reply, err = r.overUDP(ctx, s, query, until)
	}
	if err == nil && reply.Truncated {
		reply, err = r.overTCP(ctx, s, query, until)
	}
	return reply, err
}

// refusesEDNS reports whether a reply rejects EDNS.
func refusesEDNS(reply *mdns.Msg) bool {
	switch reply.Rcode {
	case mdns.RcodeFormatError, mdns.RcodeNotImplemented, mdns.RcodeBadVers:
		return true
	default:
		return false
	}
}
