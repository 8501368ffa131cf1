package zone

import (
	"context"
	"errors"
	"time"

	mdns "github.com/miekg/dns"
)

// notifyTimeout limits the wait for the answer to one NOTIFY message.
const notifyTimeout = 3 * time.Second

// notify tells a secondary about every new serial until ctx ends (RFC 1996). Serials that follow
// each other while it waits are one message. One secondary never waits for another.
func (s *Server) notify(ctx context.Context, secondary Secondary, changed <-chan struct{}) {
	for {
		s.announce(ctx, secondary, changed)
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

// announce sends the current serial until the secondary answers, with the waits of notifyWaits. A
// newer serial does not begin them again.
func (s *Server) announce(ctx context.Context, secondary Secondary, changed <-chan struct{}) {
	var err error
	for _, wait := range notifyWaits {
		drain(changed)
		serial := s.zone.Serial()
		if err = s.sendNotify(ctx, secondary, serial); err == nil {
			s.log.DebugContext(ctx, "secondary notified", "secondary", secondary.Address, "serial", serial)
			return
		}
		s.stats.notifyFailures.Add(1)
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
	s.log.WarnContext(ctx, "secondary does not answer NOTIFY", "secondary", secondary.Address, "error", err)
}

func drain(changed <-chan struct{}) {
	select {
	case <-changed:
	default:
	}
}

func (s *Server) sendNotify(ctx context.Context, secondary Secondary, serial uint32) error {
	message := new(mdns.Msg).SetNotify(s.zone.apex)
	message.Answer = []mdns.RR{s.zone.soa(serial)}
	message.SetTsig(secondary.Key.Name, secondary.Key.Algorithm, fudge, time.Now().Unix())
	client := mdns.Client{Timeout: notifyTimeout, TsigProvider: s.keys}
	reply, _, err := client.ExchangeContext(ctx, message, secondary.Address)
	switch {
	case err != nil:
		return err
	case reply.Rcode != mdns.RcodeSuccess:
		return errors.New("it answered " + mdns.RcodeToString[reply.Rcode])
	}
	return nil
}

// Serial asks a secondary for the serial that it serves of a zone.
func (s Secondary) Serial(ctx context.Context, apex string) (uint32, error) {
	client := mdns.Client{Timeout: notifyTimeout}
	reply, _, err := client.ExchangeContext(ctx, new(mdns.Msg).SetQuestion(mdns.CanonicalName(apex), mdns.TypeSOA), s.Address)
	if err != nil {
		return 0, err
	}
	for _, rr := range reply.Answer {
		if soa, ok := rr.(*mdns.SOA); ok && reply.Authoritative {
			return soa.Serial, nil
		}
	}
	return 0, errors.New("it answered " + mdns.RcodeToString[reply.Rcode] + " without the SOA record")
}
