package resolvertest

import (
	"slices"

	mdns "github.com/miekg/dns"

	"github.com/dmarcd/dmarcd/internal/resolver/zone"
)

// Fault is a way in which the server misbehaves about a name.
type Fault uint8

// The faults. CNAME loops and answers too large for UDP are not faults: the zone text causes
// them.
const (
	None           Fault = iota // answers from the zone
	Drop                        // sends no reply; over TCP it closes the connection
	DropOnce                    // sends no reply to the next question, then answers from the zone
	Late                        // holds the next reply back until the question comes again, then answers from the zone
	ServFail                    // replies SERVFAIL
	Refused                     // replies REFUSED
	NXDomain                    // replies NXDOMAIN without an SOA record
	Truncate                    // replies over UDP with the TC bit and no records
	TruncateAlways              // the same over TCP too
	Oversize                    // sends up to 4,096 bytes over UDP, whatever the client asked for
	Garbage                     // sends bytes that are no DNS message
	WrongID                     // sends the right reply under another id
	WrongQuestion               // sends a reply to another question
	Stray                       // sends Garbage, WrongID, WrongQuestion, then the right reply; over TCP, where other hosts cannot send, that alone
	FormErrToEDNS               // replies FORMERR, with an empty question section, to a query with EDNS
	NotImpToEDNS                // replies NOTIMP to a query with EDNS
	BadVersToEDNS               // replies BADVERS to a query with EDNS
	OneAlias                    // sends the first CNAME record alone, without SOA or target
	Referral                    // sends a referral to other servers, as a lame server does
	Empty                       // replies NOERROR without any record, no SOA either
	Unrelated                   // replies with a record of another name only
	Contradiction               // sends the right reply with the code NXDOMAIN
)

// SetFault makes the server misbehave from now on for queries of a name, whatever their type.
// "*" means every name without its own fault; None ends a fault.
func (s *Server) SetFault(name string, f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f == None {
		delete(s.faults, faultName(name))
		return
	}
	s.faults[faultName(name)] = f
}

// faultName returns the key of a name in the table of faults.
func faultName(name string) string {
	if name == "*" {
		return name
	}
	return mdns.CanonicalName(name)
}

// takeFault returns the fault for a question about a name. DropOnce and Late are
// for one question only and end with it.
func (s *Server) takeFault(name string) Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := mdns.CanonicalName(name)
	if _, ok := s.faults[key]; !ok {
		key = "*"
	}
	f := s.faults[key]
	if f == DropOnce || f == Late {
		delete(s.faults, key)
	}
	return f
}

// maxBytes returns the size at which the reply to a request is truncated.
func (f Fault) maxBytes(request *mdns.Msg, over Transport) int {
	edns := request.IsEdns0()
	switch {
	case over == TCP:
		return mdns.MaxMsgSize
	case f == Oversize:
		return oversize
	case edns != nil:
		return int(edns.UDPSize())
	default:
		return mdns.MinMsgSize
	}
}

// misbehave sends the reply of the fault. It returns false if the correct reply must still be
// sent.
func (f Fault) misbehave(w mdns.ResponseWriter, request, right *mdns.Msg, overUDP bool) bool {
	switch f {
	case Drop, DropOnce:
		_ = w.Close() // over UDP this does nothing
	case ServFail:
		sendCode(w, request, mdns.RcodeServerFailure)
	case Refused:
		sendCode(w, request, mdns.RcodeRefused)
	case NXDomain:
		sendCode(w, request, mdns.RcodeNameError)
	case Truncate, TruncateAlways:
		if f == Truncate && !overUDP {
			return false
		}
		reply := newReply(request)
		reply.Truncated = true
		send(w, reply)
	case Garbage:
		sendGarbage(w)
	case WrongID:
		sendWrongID(w, right)
	case WrongQuestion:
		sendWrongQuestion(w, right)
	case Stray:
		if overUDP {
			sendGarbage(w)
			sendWrongID(w, right)
			sendWrongQuestion(w, right)
		}
		return false
	case FormErrToEDNS, NotImpToEDNS, BadVersToEDNS:
		if request.IsEdns0() == nil {
			return false
		}
		f.rejectEDNS(w, request)
	case OneAlias:
		if len(right.Answer) == 0 || right.Answer[0].Header().Rrtype != mdns.TypeCNAME {
			return false
		}
		reply := newReply(request)
		reply.Answer = right.Answer[:1]
		send(w, reply)
	case Referral:
		reply := newReply(request)
		reply.RecursionAvailable = false
		reply.Ns = []mdns.RR{&mdns.NS{
			Hdr: mdns.RR_Header{Name: ".", Rrtype: mdns.TypeNS, Class: mdns.ClassINET, Ttl: zone.DefaultTTL},
			Ns:  "elsewhere.invalid.",
		}}
		send(w, reply)
	case Empty:
		sendCode(w, request, mdns.RcodeSuccess)
	case Unrelated:
		reply := newReply(request)
		reply.Answer = []mdns.RR{&mdns.TXT{
			Hdr: mdns.RR_Header{Name: "unrelated.invalid.", Rrtype: mdns.TypeTXT, Class: mdns.ClassINET, Ttl: zone.DefaultTTL},
			Txt: []string{"v=DMARC1; p=reject"},
		}}
		send(w, reply)
	case Contradiction:
		right.Rcode = mdns.RcodeNameError
		send(w, right)
	default:
		return false
	}
	return true
}

// rejectEDNS replies like servers that do not support EDNS, or not version 0.
func (f Fault) rejectEDNS(w mdns.ResponseWriter, request *mdns.Msg) {
	switch f {
	case FormErrToEDNS:
		// A server that cannot read a query may echo no question (RFC 6891 §7).
		reply := newReply(request)
		reply.Rcode = mdns.RcodeFormatError
		reply.Question = nil
		send(w, reply)
	case BadVersToEDNS:
		reply := newReply(request)
		reply.SetEdns0(udpSize, false)
		reply.Rcode = mdns.RcodeBadVers
		send(w, reply)
	default:
		sendCode(w, request, mdns.RcodeNotImplemented)
	}
}

func sendCode(w mdns.ResponseWriter, request *mdns.Msg, code int) {
	reply := newReply(request)
	reply.Rcode = code
	send(w, reply)
}

func sendGarbage(w mdns.ResponseWriter) {
	_, _ = w.Write([]byte("this is no DNS message")) // the client may be gone
}

func sendWrongID(w mdns.ResponseWriter, right *mdns.Msg) {
	wrong := right.Copy()
	wrong.Id++
	send(w, wrong)
}

func sendWrongQuestion(w mdns.ResponseWriter, right *mdns.Msg) {
	wrong := right.Copy()
	wrong.Question = slices.Clone(right.Question)
	wrong.Question[0].Name = "wrong.invalid."
	send(w, wrong)
}

// newReply returns a reply without records as a recursive server sends it.
func newReply(request *mdns.Msg) *mdns.Msg {
	reply := new(mdns.Msg).SetReply(request)
	reply.RecursionAvailable = true
	reply.Compress = true
	return reply
}

func send(w mdns.ResponseWriter, reply *mdns.Msg) {
	_ = w.WriteMsg(reply) // the client may be gone
}
