// Package zone answers DNS questions from a zone text, for the demo and for test servers.
//
// A zone is authoritative for the whole tree: a name that is not in the text does not exist.
// Empty non-terminals, wildcards (RFC 4592), CNAME chains and negative answers with an SOA
// record (RFC 2308) are as in a real server. Delegation and DNAME have no effect. DNSSEC is
// limited to one rule: names at or below a DNSKEY record count as validated.
package zone

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	mdns "github.com/miekg/dns"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/resolver"
)

// DefaultTTL is the TTL, in seconds, of a record whose line has none. Without a $TTL line the
// parser would use that of the previous line.
const DefaultTTL = 300

// maxLinks ends the walk along CNAME records. It is more than any client
// follows, so a loop in the zone is a loop in the reply.
const maxLinks = 16

// rootSOA is used for negative answers if the zone text has no SOA record on the way to the
// root. Its last number is the negative TTL.
const rootSOA = ". 300 IN SOA ns.invalid. hostmaster.invalid. 1 3600 600 86400 60"

// Zone has the records of the whole tree. It implements dns.Resolver and is safe for concurrent
// use. Names are in miekg's canonical form: lower case, with a trailing dot.
type Zone struct {
	records map[string][]mdns.RR
	// exists has every owner and its ancestors: those without records are the empty
	// non-terminals of RFC 4592 §2.2.2.
	exists map[string]bool
}

// Parse reads master-file lines. Blanks in front of a line are dropped, so
// that a zone text can be indented in Go source; every line names its owner.
func Parse(text string) (*Zone, error) {
	var lines strings.Builder
	fmt.Fprintf(&lines, "$TTL %d\n", DefaultTTL)
	for line := range strings.Lines(text) {
		lines.WriteString(strings.TrimLeft(line, " \t"))
	}
	z := &Zone{records: map[string][]mdns.RR{}, exists: map[string]bool{".": true}}
	parser := mdns.NewZoneParser(strings.NewReader(lines.String()), ".", "")
	for rr, ok := parser.Next(); ok; rr, ok = parser.Next() {
		z.add(rr)
	}
	if err := parser.Err(); err != nil {
		return nil, fmt.Errorf("zone text: %w", err)
	}
	if len(z.ofType(".", mdns.TypeSOA)) == 0 {
		soa, err := mdns.NewRR(rootSOA)
		if err != nil {
			return nil, fmt.Errorf("root SOA: %w", err)
		}
		z.add(soa)
	}
	return z, nil
}

func (z *Zone) add(rr mdns.RR) {
	owner := mdns.CanonicalName(rr.Header().Name)
	z.records[owner] = append(z.records[owner], rr)
	for name := owner; !z.exists[name]; name = parent(name) {
		z.exists[name] = true
	}
}

// Resolve answers a question.
func (z *Zone) Resolve(_ context.Context, q dns.Question) dns.Answer {
	reply := new(mdns.Msg).SetQuestion(mdns.Fqdn(q.Name), uint16(q.Type))
	reply.AuthenticatedData = z.signed(q.Name)
	z.Answer(reply, q.Name, uint16(q.Type))
	packed, err := reply.Pack()
	if err == nil {
		err = reply.Unpack(packed) // as records read from the wire are
	}
	var answer dns.Answer
	if err == nil {
		answer, err = resolver.Read(reply, q)
	}
	if err != nil {
		return dns.Answer{Question: q, Reason: err.Error()}
	}
	return answer
}

// signed reports whether there is a DNSKEY record at a name or above it.
func (z *Zone) signed(name string) bool {
	for name = mdns.CanonicalName(name); name != "."; name = parent(name) {
		if len(z.ofType(name, mdns.TypeDNSKEY)) > 0 {
			return true
		}
	}
	return false
}

// Answer fills in the answer and authority sections and the response code for
// a question, following CNAME records as a recursive server does.
func (z *Zone) Answer(reply *mdns.Msg, name string, typ uint16) {
	name = mdns.CanonicalName(name)
	for range maxLinks {
		owner, exists := z.source(name)
		if !exists {
			// RFC 6604 §3: after an alias the code is that of the last name.
			reply.Rcode = mdns.RcodeNameError
			reply.Ns = append(reply.Ns, z.soa(name))
			return
		}
		if found := z.ofType(owner, typ); len(found) > 0 {
			reply.Answer = append(reply.Answer, ownedBy(name, found)...)
			return
		}
		alias := z.ofType(owner, mdns.TypeCNAME)
		if len(alias) == 0 {
			reply.Ns = append(reply.Ns, z.soa(name))
			return
		}
		reply.Answer = append(reply.Answer, ownedBy(name, alias[:1])...)
		name = mdns.CanonicalName(alias[0].(*mdns.CNAME).Target)
	}
}

// source returns the owner whose records answer for name: the name itself, or
// the wildcard at its closest encloser (RFC 4592 §3.3.1).
func (z *Zone) source(name string) (owner string, exists bool) {
	if z.exists[name] {
		return name, true
	}
	encloser := parent(name)
	for !z.exists[encloser] {
		encloser = parent(encloser)
	}
	wildcard := "*." + strings.TrimPrefix(encloser, ".")
	return wildcard, z.exists[wildcard]
}

func (z *Zone) ofType(owner string, typ uint16) []mdns.RR {
	var found []mdns.RR
	for _, rr := range z.records[owner] {
		if rr.Header().Rrtype == typ {
			found = append(found, rr)
		}
	}
	return found
}

// soa returns the SOA record nearest above name; there is one at the root.
func (z *Zone) soa(name string) mdns.RR {
	for {
		if found := z.ofType(name, mdns.TypeSOA); len(found) > 0 {
			return found[0]
		}
		name = parent(name)
	}
}

// ownedBy returns the records with name as their owner. Only records of a
// wildcard are copied for it.
func ownedBy(name string, records []mdns.RR) []mdns.RR {
	owned := make([]mdns.RR, len(records))
	for i, rr := range records {
		if mdns.CanonicalName(rr.Header().Name) != name {
			rr = mdns.Copy(rr)
			rr.Header().Name = name
		}
		owned[i] = rr
	}
	return owned
}

// parent returns the name without its left-most label, "." at the top.
func parent(name string) string {
	next, end := mdns.NextLabel(name, 0)
	if end {
		return "."
	}
	return name[next:]
}

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
