package demo

import (
	"context"
	"errors"
	"fmt"
	"net"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/dmarcd/dmarcd/dns"
)

// maxQuery is the longest query that is read, maxReply the longest reply that is
// sent: what passes everywhere in one piece.
const (
	maxQuery = 512
	maxReply = 1232
)

// Server is a DNS server that answers from a zone over UDP, so that a daemon can use the
// scenario like any resolver.
type Server struct {
	conn *net.UDPConn
	zone *Zone
}

// Listen returns a server of the zone on a free port of the loopback interface. The
// caller calls Run.
func Listen(zone *Zone) (*Server, error) {
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, fmt.Errorf("listen for DNS: %w", err)
	}
	return &Server{conn: conn, zone: zone}, nil
}

// Addr returns the host:port that the server listens on.
func (s *Server) Addr() string { return s.conn.LocalAddr().String() }

// Run answers until ctx ends.
func (s *Server) Run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = s.conn.Close() }) // ends the reading below
	defer func() {
		stop()
		_ = s.conn.Close() // closed already, or nothing is left to send
	}()
	query := make([]byte, maxQuery)
	for {
		n, client, err := s.conn.ReadFromUDPAddrPort(query)
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read DNS query: %w", err)
		}
		if reply, ok := s.zone.reply(ctx, query[:n]); ok {
			_, _ = s.conn.WriteToUDPAddrPort(reply, client) // who lost it asks again
		}
	}
}

// reply returns the answer to a query, false where it is none that can be answered.
func (z *Zone) reply(ctx context.Context, query []byte) ([]byte, bool) {
	var parser dnsmessage.Parser
	header, err := parser.Start(query)
	if err != nil || header.Response {
		return nil, false
	}
	question, err := parser.Question()
	if err != nil {
		return nil, false
	}
	answer := z.Resolve(ctx, dns.Question{Name: dns.Name(question.Name.String()), Type: dns.Type(question.Type)})
	reply := dnsmessage.Message{
		Header: dnsmessage.Header{
			ID: header.ID, Response: true, OpCode: header.OpCode,
			RecursionDesired: header.RecursionDesired, RecursionAvailable: true,
			AuthenticData: answer.Authentic,
		},
		Questions:   []dnsmessage.Question{question},
		Additionals: []dnsmessage.Resource{extension()},
	}
	if answer.Outcome == dns.NoSuchName {
		reply.RCode = dnsmessage.RCodeNameError
	}
	reply.Answers, err = resources(answer.Records)
	if err == nil && len(answer.Records) == 0 {
		apex := dns.Question{Name: z.apex(answer.Name), Type: dns.SOA}
		reply.Authorities, err = resources(z.records[apex])
	}
	if err != nil {
		return nil, false
	}
	packed, err := reply.Pack()
	return packed, err == nil && len(packed) <= maxReply
}

// extension returns the record of EDNS (RFC 6891 §6.1).
func extension() dnsmessage.Resource {
	var header dnsmessage.ResourceHeader
	_ = header.SetEDNS0(maxReply, dnsmessage.RCodeSuccess, false) // fails for other codes only
	return dnsmessage.Resource{Header: header, Body: &dnsmessage.OPTResource{}}
}

// resources returns records in the form of a message.
func resources(records []dns.Record) ([]dnsmessage.Resource, error) {
	var all []dnsmessage.Resource
	for _, r := range records {
		name, err := dnsmessage.NewName(r.Name + ".")
		if err != nil {
			return nil, err
		}
		body, err := body(r)
		if err != nil {
			return nil, err
		}
		all = append(all, dnsmessage.Resource{
			Header: dnsmessage.ResourceHeader{
				Name: name, Type: dnsmessage.Type(r.Type), Class: dnsmessage.ClassINET, TTL: uint32(r.TTL.Seconds()),
			},
			Body: body,
		})
	}
	return all, nil
}

// body returns the data of a record in the form of a message.
func body(r dns.Record) (dnsmessage.ResourceBody, error) {
	host, err := dnsmessage.NewName(r.Host + ".")
	if err != nil {
		return nil, err
	}
	switch r.Type {
	case dns.A:
		return &dnsmessage.AResource{A: r.Addr.As4()}, nil
	case dns.AAAA:
		return &dnsmessage.AAAAResource{AAAA: r.Addr.As16()}, nil
	case dns.TXT:
		return &dnsmessage.TXTResource{TXT: r.Text}, nil
	case dns.MX:
		return &dnsmessage.MXResource{Pref: r.Preference, MX: host}, nil
	case dns.NS:
		return &dnsmessage.NSResource{NS: host}, nil
	case dns.PTR:
		return &dnsmessage.PTRResource{PTR: host}, nil
	default:
		return &dnsmessage.UnknownResource{Type: dnsmessage.Type(r.Type), Data: r.Raw}, nil
	}
}
