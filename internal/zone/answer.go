package zone

import (
	"encoding/binary"
	"net/netip"

	mdns "github.com/miekg/dns"
)

const (
	// maxUDP is the largest answer over UDP, one that is not fragmented (RFC 9715).
	maxUDP = 1232
	// plainUDP is the limit for clients without EDNS.
	plainUDP    = 512
	headerBytes = 12
	// signatureBytes is what a TSIG record may take.
	signatureBytes = 300
	// maxAliases limits the CNAME records that an answer follows.
	maxAliases = 8
)

// query is a message with what decides about its answer.
type query struct {
	message *mdns.Msg
	from    netip.Addr
	stream  bool
	// signed is the TSIG record of the message, nil without one; failure is why it is not valid.
	signed  *mdns.TSIG
	failure error
}

// respond answers one message. send is called for every message of the answer, which are several
// only for a transfer; it is not called if there is no answer.
func (s *Server) respond(data []byte, from netip.Addr, stream bool, send func([]byte) error) error {
	if len(data) < headerBytes {
		return nil
	}
	flags := binary.BigEndian.Uint16(data[2:])
	if flags&(1<<15) != 0 {
		return nil // a response: no server answers it
	}
	fail := func(rcode int) error {
		s.stats.count(rcode, true)
		if !stream && s.limit.decide(from, "", erroneous) != answered {
			return s.drop() // as short as this, there is no use in a truncated answer
		}
		return send(failure(data, rcode))
	}
	if opcode := int(flags >> 11 & 0xf); opcode != mdns.OpcodeQuery {
		return fail(mdns.RcodeNotImplemented)
	}
	q := query{message: new(mdns.Msg), from: from, stream: stream}
	if q.message.Unpack(data) != nil || !wellFormed(q.message) {
		return fail(mdns.RcodeFormatError)
	}
	if q.signed = q.message.IsTsig(); q.signed != nil {
		q.failure = mdns.TsigVerifyWithProvider(append([]byte(nil), data...), s.keys, "", false)
	}
	question := q.message.Question[0]
	if q.failure == nil && (question.Qtype == mdns.TypeAXFR || question.Qtype == mdns.TypeIXFR) &&
		question.Qclass == mdns.ClassINET && mdns.CanonicalName(question.Name) == s.zone.apex {
		return s.transfer(q, send)
	}
	reply, class := s.answer(q)
	if q.failure != nil && (question.Qtype == mdns.TypeAXFR || question.Qtype == mdns.TypeIXFR) {
		s.stats.rejected.Add(1)
	}
	s.stats.count(reply.Rcode, len(reply.Answer) == 0)
	if !stream {
		switch s.stats.limited(s.limit.decide(from, limitName(reply, class), class)) {
		case silenced:
			return nil
		case shortened:
			truncate(reply)
		case answered:
		}
	}
	packed, err := s.pack(q, reply)
	if err != nil {
		return fail(mdns.RcodeServerFailure)
	}
	return send(packed)
}

// drop counts an answer that is left out because of a limit.
func (s *Server) drop() error {
	s.stats.dropped.Add(1)
	return nil
}

// failure returns an answer without sections, so that it is shorter than any query.
func failure(data []byte, rcode int) []byte {
	reply := make([]byte, headerBytes)
	copy(reply, data[:2])
	flags := binary.BigEndian.Uint16(data[2:])
	const copied = 0xf<<11 | 1<<8 // the operation, and that recursion is desired
	binary.BigEndian.PutUint16(reply[2:], 1<<15|flags&copied|uint16(rcode&0xf))
	return reply
}

// wellFormed reports whether a message has the sections of a query. That of an incremental
// transfer has the SOA record of the client.
func wellFormed(m *mdns.Msg) bool {
	options := 0
	for i, rr := range m.Extra {
		switch rr := rr.(type) {
		case *mdns.OPT:
			options++
		case *mdns.TSIG:
			// The library accepts one without data, and would answer with one that no client can read.
			if i != len(m.Extra)-1 || rr.Algorithm == "" {
				return false
			}
		}
	}
	// The library accepts a question that ends after its name, with zeros for the rest.
	return len(m.Question) == 1 && m.Question[0].Qtype != 0 && m.Question[0].Qclass != 0 && len(m.Answer) == 0 && len(m.Ns) <= 1 && options <= 1
}

// limitName returns the name that the limit of answers counts: the name of the query if it
// exists, and the zone for all that do not, because there is no end of them.
func limitName(reply *mdns.Msg, class answerClass) string {
	if class != positive {
		return ""
	}
	return mdns.CanonicalName(reply.Question[0].Name)
}

// answer returns the answer to a query that is not a transfer.
func (s *Server) answer(q query) (*mdns.Msg, answerClass) {
	reply := new(mdns.Msg).SetReply(q.message)
	reply.RecursionDesired, reply.Compress = q.message.RecursionDesired, true
	question := q.message.Question[0]
	if options := q.message.IsEdns0(); options != nil {
		reply.SetEdns0(maxUDP, options.Do())
		if options.Version() != 0 {
			reply.Rcode = mdns.RcodeBadVers
			return reply, erroneous
		}
	}
	switch {
	case q.failure != nil:
		reply.Rcode = mdns.RcodeNotAuth
	case question.Qtype == mdns.TypeOPT:
		reply.Rcode = mdns.RcodeFormatError
	case question.Qclass != mdns.ClassINET || !mdns.IsSubDomain(s.zone.apex, mdns.CanonicalName(question.Name)):
		reply.Rcode = mdns.RcodeRefused
	case question.Qtype == mdns.TypeAXFR || question.Qtype == mdns.TypeIXFR:
		reply.Rcode = mdns.RcodeNotAuth // of a name that is not the zone
	case isMeta(question.Qtype):
		reply.Rcode = mdns.RcodeNotImplemented
	default:
		reply.Authoritative = true
		s.zone.fill(reply, question)
	}
	switch reply.Rcode {
	case mdns.RcodeSuccess:
		return reply, positive
	case mdns.RcodeNameError:
		return reply, missing
	}
	return reply, erroneous
}

// isMeta reports whether a type is for queries only (RFC 6895 §3.1). ANY is answered.
func isMeta(kind uint16) bool { return kind >= 128 && kind < mdns.TypeANY }

// fill adds the records that answer a query, following aliases within the zone.
func (z *Zone) fill(reply *mdns.Msg, question mdns.Question) {
	z.mu.RLock()
	defer z.mu.RUnlock()
	owner := mdns.CanonicalName(question.Name)
	for range maxAliases {
		if !mdns.IsSubDomain(z.apex, owner) {
			return // the client follows the alias elsewhere
		}
		n := z.names[owner]
		if n == nil {
			reply.Rcode = mdns.RcodeNameError // of the last name (RFC 6604 §3)
			reply.Ns = []mdns.RR{z.negative()}
			return
		}
		found := n.of(question.Qtype)
		if owner == z.apex && (question.Qtype == mdns.TypeSOA || question.Qtype == mdns.TypeANY) {
			found = []mdns.RR{z.soa(z.serial)}
		}
		reply.Answer = append(reply.Answer, found...)
		alias := n.alias()
		switch {
		case len(found) > 0 && (alias == nil || question.Qtype == mdns.TypeCNAME || question.Qtype == mdns.TypeANY):
			z.addServers(reply, found)
			return
		case alias == nil:
			reply.Ns = []mdns.RR{z.negative()}
			return
		}
		reply.Answer = append(reply.Answer, alias)
		owner = alias.Target
	}
}

// of returns the records of a type. For ANY these are those of one type (RFC 8482 §4.1).
func (n *name) of(kind uint16) []mdns.RR {
	if len(n.records) == 0 {
		return nil
	}
	if kind == mdns.TypeANY {
		kind = n.records[0].Header().Rrtype
	}
	if len(n.records) == 1 && n.records[0].Header().Rrtype == kind {
		return n.records
	}
	var found []mdns.RR
	for _, rr := range n.records {
		if rr.Header().Rrtype == kind {
			found = append(found, rr)
		}
	}
	return found
}

// alias returns the CNAME record of a name, nil if there is none.
func (n *name) alias() *mdns.CNAME {
	if len(n.records) != 1 {
		return nil
	}
	alias, _ := n.records[0].(*mdns.CNAME)
	return alias
}

// negative returns the SOA record of a negative answer, whose TTL is that of the answer (RFC 2308
// §3). The caller holds z.mu.
func (z *Zone) negative() mdns.RR {
	soa := z.soa(z.serial)
	soa.Hdr.Ttl = negativeTTL
	return soa
}

// addServers adds the addresses of the name servers in an answer. The caller holds z.mu.
func (z *Zone) addServers(reply *mdns.Msg, found []mdns.RR) {
	for _, rr := range found {
		ns, ok := rr.(*mdns.NS)
		if !ok {
			return
		}
		if n := z.names[ns.Ns]; n != nil {
			reply.Extra = append(append(reply.Extra, n.of(mdns.TypeA)...), n.of(mdns.TypeAAAA)...)
		}
	}
}

// truncate removes the records of an answer, so that the client asks again over TCP.
func truncate(reply *mdns.Msg) {
	reply.Truncated = true
	reply.Answer, reply.Ns = nil, nil
	reply.Extra = onlyOptions(reply.Extra)
}

func onlyOptions(extra []mdns.RR) []mdns.RR {
	var options []mdns.RR
	for _, rr := range extra {
		if rr.Header().Rrtype == mdns.TypeOPT {
			options = append(options, rr)
		}
	}
	return options
}

// pack returns the bytes of an answer that fits the client, signed if the query was.
func (s *Server) pack(q query, reply *mdns.Msg) ([]byte, error) {
	size := mdns.MaxMsgSize
	if !q.stream {
		size = plainUDP
		if options := q.message.IsEdns0(); options != nil {
			size = min(max(int(options.UDPSize()), plainUDP), maxUDP)
		}
		if q.signed != nil {
			size -= signatureBytes
		}
	}
	packed, err := reply.Pack()
	if err == nil && len(packed) > size {
		reply.Extra = onlyOptions(reply.Extra) // addresses of servers are optional
		packed, err = reply.Pack()
	}
	if err == nil && len(packed) > size {
		truncate(reply)
		packed, err = reply.Pack()
	}
	if err != nil || q.signed == nil {
		return packed, err
	}
	packed, _, err = s.sign(reply, q, q.signed.MAC, false)
	return packed, err
}
