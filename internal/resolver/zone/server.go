package zone

import (
	"context"
	"errors"
	"fmt"
	"net"

	mdns "github.com/miekg/dns"
)

// udpSize is the EDNS payload size that the server offers.
const udpSize = 1232

// Server answers from a zone over UDP, so that a daemon can use it like any resolver.
type Server struct {
	zone *Zone
	conn net.PacketConn
}

// Listen returns a server of the zone on a free port of the loopback interface. The
// caller calls Run.
func Listen(z *Zone) (*Server, error) {
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, fmt.Errorf("listen for DNS: %w", err)
	}
	return &Server{zone: z, conn: conn}, nil
}

// Addr returns the host:port that the server listens on.
func (s *Server) Addr() string { return s.conn.LocalAddr().String() }

// Run answers until ctx ends.
func (s *Server) Run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = s.conn.Close() }) // ends the reading below
	defer stop()
	server := mdns.Server{PacketConn: s.conn, Handler: mdns.HandlerFunc(s.handle)}
	if err := server.ActivateAndServe(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

func (s *Server) handle(w mdns.ResponseWriter, request *mdns.Msg) {
	question := request.Question[0] // the server library refuses messages without exactly one
	reply := new(mdns.Msg).SetReply(request)
	reply.RecursionAvailable, reply.AuthenticatedData = true, s.zone.signed(question.Name)
	s.zone.Answer(reply, question.Name, question.Qtype)
	reply.SetEdns0(udpSize, false)
	reply.Truncate(udpSize)
	_ = w.WriteMsg(reply) // the client may be gone
}
