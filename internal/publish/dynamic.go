package publish

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	mdns "github.com/miekg/dns"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/zone"
)

// fudge is the number of seconds by which clocks may differ.
const fudge = 300

// dynamic is a server that takes dynamic updates. Everything goes over TCP, so that no answer is
// truncated or comes from someone else, and every message is signed.
type dynamic struct {
	dial    func(ctx context.Context, network, address string) (net.Conn, error)
	address string
	zone    string // with a trailing dot
	key     zone.Key
	secret  string // of the key, in base64
}

func newDynamic(dial func(ctx context.Context, network, address string) (net.Conn, error), t Target) (*dynamic, error) {
	key, err := zone.ParseKey(strings.TrimSpace(t.Key))
	if err != nil {
		return nil, &dmarcd.InvalidError{Field: "key", Message: "A TSIG key is [algorithm:]name:secret, as kdig -y has it: hmac-sha256, hmac-sha384 or hmac-sha512, and a secret of at least 16 bytes in base64."}
	}
	return &dynamic{dial: dial, address: t.Server, zone: mdns.Fqdn(t.Zone), key: key, secret: base64.StdEncoding.EncodeToString(key.Secret)}, nil
}

func (d *dynamic) probe(ctx context.Context, name string) error {
	reply, err := d.exchange(ctx, new(mdns.Msg).SetQuestion(d.zone, mdns.TypeSOA))
	if err != nil {
		return err
	}
	isZone := len(reply.Answer) > 0 && reply.Answer[0].Header().Rrtype == mdns.TypeSOA && strings.EqualFold(reply.Answer[0].Header().Name, d.zone)
	if reply.Rcode == mdns.RcodeServerFailure {
		return answered(reply.Rcode)
	}
	if !reply.Authoritative || !isZone {
		return &Error{Stage: StageZone, Message: "The server has no zone " + strings.TrimSuffix(d.zone, ".") + "."}
	}
	// Removing a record that cannot be there changes nothing, and is refused where a change is.
	var random [8]byte
	_, _ = rand.Read(random[:]) // never fails
	update := new(mdns.Msg).SetUpdate(d.zone)
	update.Remove([]mdns.RR{d.record(name, newValue("dmarcd-"+hex.EncodeToString(random[:])), 0)})
	return d.update(ctx, name, update)
}

func (d *dynamic) read(ctx context.Context, name string) (found set, err error) {
	reply, err := d.exchange(ctx, new(mdns.Msg).SetQuestion(mdns.Fqdn(name), mdns.TypeTXT))
	if err != nil {
		return set{}, err
	}
	switch {
	case reply.Rcode == mdns.RcodeNameError || reply.Rcode == mdns.RcodeSuccess && reply.Authoritative:
	case reply.Rcode == mdns.RcodeRefused || reply.Rcode == mdns.RcodeSuccess:
		return set{}, &Error{Stage: StageZone, Message: "The server does not answer for " + name + " itself. If the name is delegated, use the server and zone that it is delegated to."}
	default:
		return set{}, answered(reply.Rcode)
	}
	for _, rr := range reply.Answer {
		if !strings.EqualFold(rr.Header().Name, mdns.Fqdn(name)) {
			continue
		}
		switch rr := rr.(type) {
		case *mdns.CNAME:
			return set{}, alias(name)
		case *mdns.TXT:
			data, err := textData(rr)
			if err != nil {
				return set{}, err
			}
			found.ttl = rr.Hdr.Ttl
			found.values = append(found.values, value{data: data})
		}
	}
	if len(found.values) > maxValues {
		return set{}, tooMany(name)
	}
	return found, nil
}

func (d *dynamic) replace(ctx context.Context, name string, before, after set, absent bool) error {
	update := new(mdns.Msg).SetUpdate(d.zone)
	update.RRsetNotUsed([]mdns.RR{&mdns.CNAME{Hdr: mdns.RR_Header{Name: mdns.Fqdn(name), Rrtype: mdns.TypeCNAME}}})
	all := make([]mdns.RR, len(before.values))
	wanted := make(map[string]bool)
	for _, v := range after.values {
		wanted[v.data] = true
	}
	var removed, added []mdns.RR
	for i, v := range before.values {
		all[i] = d.record(name, v, 0)
		if !wanted[v.data] {
			removed = append(removed, d.record(name, v, 0))
		}
		delete(wanted, v.data)
	}
	for data := range wanted {
		added = append(added, d.record(name, value{data: data}, after.ttl))
	}
	if absent {
		update.RRsetNotUsed([]mdns.RR{d.record(name, newValue(""), 0)})
		removed = nil
	} else {
		update.Used(all)
	}
	update.Remove(removed)
	update.Insert(added)
	return d.update(ctx, name, update)
}

// record returns a TXT record with the data of a value.
func (d *dynamic) record(name string, v value, ttl uint32) mdns.RR {
	header := mdns.RR_Header{Name: mdns.Fqdn(name), Rrtype: mdns.TypeTXT, Class: mdns.ClassINET, Ttl: ttl, Rdlength: uint16(len(v.data))} //nolint:gosec // it comes from a message
	rr, _, err := mdns.UnpackRRWithHeader(header, []byte(v.data), 0)
	if err != nil {
		return &mdns.TXT{Hdr: header, Txt: []string{""}} // cannot be: newValue and textData made it
	}
	return rr
}

// update sends an update. Once it was sent, a lost answer is uncertain.
func (d *dynamic) update(ctx context.Context, name string, m *mdns.Msg) error {
	reply, err := d.exchange(ctx, m)
	if lost := (*lostAnswer)(nil); errors.As(err, &lost) {
		known := &Error{Stage: StageConnection, Message: "The server did not answer the update of " + name + "."}
		_ = errors.As(lost.error, &known) // it may say more
		return &Error{Stage: known.Stage, Uncertain: true, Message: known.Message, Reason: err}
	}
	denied := &Error{Stage: StagePolicy, Message: "The server knows the key, but does not let it change the TXT records of " + name + ". Allow that in its update policy."}
	if known := (*Error)(nil); errors.As(err, &known) && (known.Stage == StageKey || known.Stage == StageZone) {
		return denied // it signed an answer to the same key before: Knot DNS refuses without a signature
	}
	if err != nil {
		return err
	}
	switch reply.Rcode {
	case mdns.RcodeSuccess:
		return nil
	case mdns.RcodeYXDomain, mdns.RcodeYXRrset, mdns.RcodeNXRrset, mdns.RcodeNameError:
		return errChanged
	case mdns.RcodeRefused, mdns.RcodeNotImplemented:
		return denied
	case mdns.RcodeNotAuth, mdns.RcodeNotZone:
		return &Error{Stage: StageZone, Message: "The server takes no updates for " + name + " in the zone " + strings.TrimSuffix(d.zone, ".") + "."}
	}
	return answered(reply.Rcode)
}

// lostAnswer is an error after a message was sent.
type lostAnswer struct{ error }

// Unwrap returns the error.
func (l *lostAnswer) Unwrap() error { return l.error }

// exchange signs and sends a message, and returns the answer after its signature was verified. An answer
// without one is an error, also where it is a refusal.
func (d *dynamic) exchange(ctx context.Context, m *mdns.Msg) (*mdns.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, exchangeTimeout)
	defer cancel()
	m.RecursionDesired = false
	m.SetTsig(d.key.Name, d.key.Algorithm, fudge, time.Now().Unix())
	packed, mac, err := mdns.TsigGenerate(m, d.secret, "", false)
	if err != nil {
		return nil, err
	}
	conn, err := d.dial(ctx, "tcp", d.address)
	if err != nil {
		return nil, err
	}
	defer conn.Close() //nolint:errcheck // everything was read
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(packed))), packed...)); err != nil { //nolint:gosec // the library limits it
		return nil, &lostAnswer{err}
	}
	raw, err := readMessage(conn)
	if err != nil {
		return nil, &lostAnswer{err}
	}
	return d.verify(m, raw, mac)
}

// readMessage reads one message of at most 64 KiB.
func readMessage(from io.Reader) ([]byte, error) {
	var length [2]byte
	if _, err := io.ReadFull(from, length[:]); err != nil {
		return nil, err
	}
	raw := make([]byte, binary.BigEndian.Uint16(length[:]))
	_, err := io.ReadFull(from, raw)
	return raw, err
}

// verify parses an answer to a message with that signature.
func (d *dynamic) verify(m *mdns.Msg, raw []byte, mac string) (*mdns.Msg, error) {
	reply := new(mdns.Msg)
	if err := reply.Unpack(raw); err != nil || !reply.Response || reply.Id != m.Id || reply.Opcode != m.Opcode || reply.Truncated {
		return nil, &lostAnswer{fmt.Errorf("an answer to another message, or none of DNS: %w", errors.Join(err, errNoAnswer))}
	}
	if len(reply.Question) > 0 && (reply.Question[0].Qtype != m.Question[0].Qtype || !strings.EqualFold(reply.Question[0].Name, m.Question[0].Name)) {
		return nil, &lostAnswer{errNoAnswer}
	}
	signed := reply.IsTsig()
	if signed == nil || signed.MAC == "" {
		return nil, unsigned(reply, signed)
	}
	err := mdns.TsigVerify(raw, d.secret, mac, false)
	switch {
	case signed.Error == mdns.RcodeBadTime || errors.Is(err, mdns.ErrTime):
		return nil, clocks()
	case err != nil || !strings.EqualFold(signed.Hdr.Name, d.key.Name) || !strings.EqualFold(signed.Algorithm, d.key.Algorithm):
		return nil, &lostAnswer{&Error{Stage: StageKey, Message: "The answer of the server is not signed with the key.", Reason: err}}
	}
	return reply, nil
}

var errNoAnswer = errors.New("no answer to the message")

func clocks() error {
	return &Error{Stage: StageKey, Message: "The clocks of the server and of this installation differ by more than five minutes."}
}

// unsigned returns the error about an answer without a signature: nothing but a failure is believed.
func unsigned(reply *mdns.Msg, t *mdns.TSIG) error {
	switch {
	case t != nil && t.Error == mdns.RcodeBadTime:
		return clocks()
	case t != nil && t.Error == mdns.RcodeBadKey:
		return &Error{Stage: StageKey, Message: "The server does not know a key of that name and algorithm, or does not accept it for the zone."}
	case t != nil && t.Error != 0 || reply.Rcode == mdns.RcodeNotAuth:
		return &Error{Stage: StageKey, Message: "The server refuses the signature. Check the secret of the key."}
	case reply.Rcode == mdns.RcodeRefused:
		return &Error{Stage: StageZone, Message: "The server refuses the query: it does not have the zone, or not for this key."}
	case reply.Rcode != mdns.RcodeSuccess && reply.Rcode != mdns.RcodeNameError:
		return answered(reply.Rcode)
	}
	return &lostAnswer{&Error{Stage: StageKey, Message: "The server answers without a signature: it does not use TSIG."}}
}

func answered(rcode int) error {
	return &Error{Stage: StageAnswer, Message: "The server answered " + mdns.RcodeToString[rcode] + "."}
}

func alias(name string) error {
	return &Error{Stage: StageAlias, Message: name + " has a CNAME record at the server, beside which no other record can be. Remove it first."}
}

func tooMany(name string) error {
	return &Error{Stage: StageAnswer, Message: name + " has too many TXT records at the server."}
}
