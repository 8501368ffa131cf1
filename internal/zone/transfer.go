package zone

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"strings"
	"time"

	mdns "github.com/miekg/dns"
)

// messageBytes is the size at which a message of a transfer is sent. Names in it are compressed,
// which works for the first 16 KiB.
const messageBytes = 16 << 10

// Key is a TSIG key. Name is that of the key at both servers.
type Key struct {
	Name, Algorithm string
	Secret          []byte
}

// ParseKey parses a key in the form of kdig and dig, [algorithm:]name:secret, with the secret in
// base64. The algorithm is hmac-sha256, hmac-sha384 or hmac-sha512; without one, hmac-sha256.
func ParseKey(text string) (Key, error) {
	parts := strings.Split(text, ":")
	if len(parts) == 2 {
		parts = append([]string{"hmac-sha256"}, parts...)
	}
	if len(parts) != 3 {
		return Key{}, errors.New("a key is [algorithm:]name:secret")
	}
	k := Key{Name: mdns.CanonicalName(parts[1]), Algorithm: mdns.CanonicalName(parts[0])}
	if _, ok := mdns.IsDomainName(k.Name); !ok || k.Name == "." {
		return Key{}, errors.New("the name of a key has the form of a domain name")
	}
	if algorithm(k.Algorithm) == nil {
		return Key{}, errors.New("the algorithm of a key is hmac-sha256, hmac-sha384 or hmac-sha512")
	}
	var err error
	if k.Secret, err = base64.StdEncoding.DecodeString(parts[2]); err != nil || len(k.Secret) < minSecretBytes {
		return Key{}, fmt.Errorf("the secret of a key is at least %d bytes in base64", minSecretBytes)
	}
	return k, nil
}

// minSecretBytes is the length that RFC 8945 §8 asks for with truncated digests, and more than can
// be guessed.
const minSecretBytes = 16

func algorithm(name string) func() hash.Hash {
	switch name {
	case mdns.HmacSHA256:
		return sha256.New
	case mdns.HmacSHA384:
		return sha512.New384
	case mdns.HmacSHA512:
		return sha512.New
	}
	return nil
}

// keyring has the keys of the secondaries, by canonical name. It implements mdns.TsigProvider. A
// key works with its own algorithm only.
type keyring map[string]Key

// Generate returns the signature of a message.
func (k keyring) Generate(message []byte, t *mdns.TSIG) ([]byte, error) {
	key, ok := k[mdns.CanonicalName(t.Hdr.Name)]
	if !ok || key.Algorithm != mdns.CanonicalName(t.Algorithm) {
		return nil, mdns.ErrSecret
	}
	h := hmac.New(algorithm(key.Algorithm), key.Secret)
	h.Write(message)
	return h.Sum(nil), nil
}

// Verify checks a signature, which must not be truncated.
func (k keyring) Verify(message []byte, t *mdns.TSIG) error {
	want, err := k.Generate(message, t)
	if err != nil {
		return err
	}
	if got, err := hex.DecodeString(t.MAC); err != nil || !hmac.Equal(got, want) {
		return mdns.ErrSig
	}
	return nil
}

const fudge = 300 // seconds by which clocks may differ

// sign returns the bytes of a message with a TSIG record. previous is the signature of the
// query, or that of the message before with timersOnly (RFC 8945 §5.3.1).
func (s *Server) sign(reply *mdns.Msg, q query, previous string, timersOnly bool) (packed []byte, mac string, err error) {
	t := &mdns.TSIG{
		Hdr:       mdns.RR_Header{Name: q.signed.Hdr.Name, Rrtype: mdns.TypeTSIG, Class: mdns.ClassANY},
		Algorithm: q.signed.Algorithm, Fudge: fudge, OrigId: q.message.Id, TimeSigned: uint64(s.limit.now().Unix()), //nolint:gosec // after 1970
	}
	switch {
	case q.failure == nil:
	case errors.Is(q.failure, mdns.ErrTime):
		t.Error, t.TimeSigned = mdns.RcodeBadTime, q.signed.TimeSigned
		t.OtherLen, t.OtherData = 6, fmt.Sprintf("%012x", s.limit.now().Unix()) // RFC 8945 §5.2.3
	case errors.Is(q.failure, mdns.ErrSecret):
		t.Error = mdns.RcodeBadKey // the answer is not signed
	default:
		t.Error = mdns.RcodeBadSig
	}
	reply.Extra = append(reply.Extra, t)
	return mdns.TsigGenerateWithProvider(reply, s.keys, previous, timersOnly)
}

// transfer answers a query for AXFR or IXFR. A query without a signature is refused: the
// library has no error for it.
func (s *Server) transfer(q query, send func([]byte) error) error {
	reply := new(mdns.Msg).SetReply(q.message)
	reply.Compress = true
	if q.signed == nil || q.message.Question[0].Qtype == mdns.TypeAXFR && !q.stream {
		reply.Rcode = mdns.RcodeRefused
		s.stats.rejected.Add(1)
		s.stats.count(reply.Rcode, true)
		if !q.stream && s.limit.decide(q.from, "", erroneous) != answered {
			return s.drop()
		}
		packed, err := s.pack(q, reply)
		if err != nil {
			return err
		}
		return send(packed)
	}
	reply.Authoritative = true
	s.stats.count(mdns.RcodeSuccess, false)
	out := &outgoing{server: s, query: q, send: send, reply: reply, previous: q.signed.MAC}
	if q.message.Question[0].Qtype == mdns.TypeIXFR {
		client, ok := clientSerial(q.message)
		if !ok {
			reply.Rcode = mdns.RcodeFormatError
			return out.flush()
		}
		current, versions, known := s.zone.since(client)
		if len(versions) == 0 && known || !q.stream {
			// The client is up to date, or has to ask over TCP (RFC 1995 §2).
			out.add(s.zone.soa(current))
			return out.flush()
		}
		if known {
			s.stats.incremental.Add(1)
			return out.changes(s.zone, current, versions)
		}
	}
	s.stats.whole.Add(1)
	serial, records := s.zone.all()
	out.add(s.zone.soa(serial))
	out.add(records...)
	out.add(s.zone.soa(serial))
	return out.flush()
}

// clientSerial returns the serial that a client has.
func clientSerial(m *mdns.Msg) (uint32, bool) {
	if len(m.Ns) != 1 {
		return 0, false
	}
	soa, ok := m.Ns[0].(*mdns.SOA)
	if !ok {
		return 0, false
	}
	return soa.Serial, true
}

// outgoing sends a transfer in as many messages as it takes. After an error it sends nothing.
type outgoing struct {
	server   *Server
	query    query
	send     func([]byte) error
	reply    *mdns.Msg
	size     int
	previous string // the latest signature
	later    bool   // a message was sent
	err      error
}

// changes adds the versions between two serials (RFC 1995 §4).
func (o *outgoing) changes(z *Zone, current uint32, versions []version) error {
	o.add(z.soa(current))
	for _, v := range versions {
		o.add(z.soa(v.from))
		o.add(v.removed...)
		o.add(z.soa(v.to))
		o.add(v.added...)
	}
	o.add(z.soa(current))
	return o.flush()
}

func (o *outgoing) add(records ...mdns.RR) {
	for _, rr := range records {
		if o.err != nil {
			return
		}
		o.reply.Answer = append(o.reply.Answer, rr)
		if o.size += mdns.Len(rr); o.size > messageBytes {
			_ = o.flush() // o.err has it
		}
	}
}

// flush sends the records that were added. The question is in the first message only.
func (o *outgoing) flush() error {
	if o.err != nil || o.later && len(o.reply.Answer) == 0 {
		return o.err
	}
	packed, mac, err := o.server.sign(o.reply, o.query, o.previous, o.later)
	if err == nil {
		err = o.send(packed)
	}
	o.previous, o.later, o.err, o.size = mac, true, err, 0
	o.reply.Question, o.reply.Answer, o.reply.Extra = nil, nil, nil
	return err
}

// Secondary is a server that transfers the zone. It may do so from any address: its key counts.
type Secondary struct {
	Address string // host:port to which NOTIFY is sent
	Key     Key
}

// ParseSecondary parses address[:port]=key; see ParseKey.
func ParseSecondary(text string) (Secondary, error) {
	address, key, _ := strings.Cut(text, "=")
	hostPort, err := withPort(address)
	if err != nil {
		return Secondary{}, err
	}
	k, err := ParseKey(key)
	return Secondary{hostPort, k}, err
}

// The waits between NOTIFY messages to a secondary that does not answer. After the last it finds
// out by itself, within the refresh of the SOA record.
var notifyWaits = []time.Duration{time.Second, 5 * time.Second, 15 * time.Second, time.Minute, 5 * time.Minute}
