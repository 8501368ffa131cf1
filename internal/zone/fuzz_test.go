package zone_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	mdns "github.com/miekg/dns"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/zone"
)

func FuzzRespond(f *testing.F) {
	z := newZone(f)
	s := newServer(f, z, secondary(f))
	for _, query := range []*mdns.Msg{
		new(mdns.Msg).SetQuestion("text."+apex+".", mdns.TypeTXT),
		new(mdns.Msg).SetQuestion("gone."+apex+".", mdns.TypeANY).SetEdns0(4096, true),
		new(mdns.Msg).SetIxfr(apex+".", 1, "ns.", "mail."),
		new(mdns.Msg).SetQuestion(apex+".", mdns.TypeAXFR).SetTsig("transfer.", mdns.HmacSHA256, 300, 1),
		new(mdns.Msg).SetUpdate(apex + "."),
	} {
		if packed, err := query.Pack(); err == nil {
			f.Add(packed, false)
			f.Add(packed, true)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, stream bool) {
		query := new(mdns.Msg)
		valid := query.Unpack(data) == nil && len(query.Question) == 1
		for _, packed := range s.Respond(data, client, stream) {
			reply := new(mdns.Msg)
			if err := reply.Unpack(packed); err != nil {
				t.Fatalf("got %x, which is not a message: %v", packed, err)
			}
			if !reply.Response || packed[0] != data[0] || packed[1] != data[1] || reply.RecursionAvailable {
				t.Errorf("got %v, which is not an answer to %x", reply, data)
			}
			if !stream && len(packed) > 1232 || !stream && valid && query.IsEdns0() == nil && len(packed) > 512 {
				t.Errorf("got %d bytes over UDP", len(packed))
			}
			if len(reply.Question) == 0 {
				if len(packed) > len(data) {
					t.Errorf("got an error of %d bytes to %d", len(packed), len(data))
				}
				continue
			}
			question := reply.Question[0]
			if (question.Qtype == mdns.TypeAXFR || question.Qtype == mdns.TypeIXFR) && len(reply.Answer)+len(reply.Ns) > 0 {
				t.Errorf("got a transfer without the key: %v", reply)
			}
			if !mdns.IsSubDomain(apex+".", mdns.CanonicalName(question.Name)) && (reply.Authoritative || len(reply.Answer)+len(reply.Ns) > 0) {
				t.Errorf("got %v about another zone", reply)
			}
			for _, rr := range append(reply.Answer, reply.Ns...) {
				if !mdns.IsSubDomain(apex+".", mdns.CanonicalName(rr.Header().Name)) || reply.Rcode != mdns.RcodeSuccess && reply.Rcode != mdns.RcodeNameError {
					t.Errorf("got the record %v in %v", rr, reply)
				}
			}
		}
	})
}

// FuzzTransfer signs messages with the key of a secondary: every message of the answer has a
// signature that follows the one before, and a transfer begins and ends with the SOA record.
func FuzzTransfer(f *testing.F) {
	z := newZone(f)
	musttest.Do(f, z.Apply(first+1, []zone.Change{{Name: "text." + apex, Records: []zone.Record{{Type: dns.TXT, Data: "second"}}}}))
	s := zone.NewUnbound(zone.Options{Zone: z, Secondaries: []zone.Secondary{secondary(f)}})
	for _, query := range []*mdns.Msg{
		new(mdns.Msg).SetAxfr(apex + "."), new(mdns.Msg).SetIxfr(apex+".", first, "ns.", "mail."), new(mdns.Msg).SetIxfr(apex+".", 7, "ns.", "mail."),
		new(mdns.Msg).SetQuestion("many."+apex+".", mdns.TypeTXT).SetEdns0(4096, true),
		(&mdns.Msg{MsgHdr: mdns.MsgHdr{Rcode: mdns.RcodeNotAuth}}).SetAxfr(apex + "."), // the library accepts no signature with this code
		new(mdns.Msg).SetAxfr("text." + apex + "."),
	} {
		f.Add(musttest.Get(query.Pack())(f), true)
		f.Add(musttest.Get(query.Pack())(f), false)
	}
	f.Fuzz(func(t *testing.T, data []byte, stream bool) {
		query := new(mdns.Msg)
		if query.Unpack(data) != nil || query.IsTsig() != nil || len(query.Question) != 1 {
			return
		}
		packed, mac, err := mdns.TsigGenerate(signedBy(query, "transfer.", mdns.HmacSHA256, time.Now()), secret, "", false)
		if err != nil {
			return
		}
		var records []mdns.RR
		for i, reply := range s.Respond(packed, client, stream) {
			m := new(mdns.Msg)
			if err := m.Unpack(reply); err != nil {
				t.Fatalf("got %x, which is not a message: %v", reply, err)
			}
			if signed := m.IsTsig(); signed == nil || signed.MAC == "" || m.Rcode == mdns.RcodeNotAuth {
				if len(m.Answer) > 0 {
					t.Errorf("got %v without a signature", m)
				}
				return
			}
			if err := mdns.TsigVerify(append([]byte(nil), reply...), secret, mac, i > 0); err != nil {
				t.Fatalf("message %d: got %v for its signature", i, err)
			}
			mac = m.IsTsig().MAC
			records = append(records, m.Answer...)
		}
		if kind := query.Question[0].Qtype; stream && len(records) > 0 && (kind == mdns.TypeAXFR || kind == mdns.TypeIXFR) {
			if records[0].Header().Rrtype != mdns.TypeSOA || records[len(records)-1].Header().Rrtype != mdns.TypeSOA {
				t.Errorf("got %v, want the SOA record at both ends", records)
			}
		}
	})
}

// FuzzParseSecondary parses settings: what is accepted has an address and a key that can sign.
func FuzzParseSecondary(f *testing.F) {
	f.Add("192.0.2.1=transfer:" + secret)
	f.Add("[2001:db8::1]:54=hmac-sha512:a.b:" + secret)
	f.Fuzz(func(t *testing.T, text string) {
		got, err := zone.ParseSecondary(text)
		if err != nil {
			if strings.Contains(err.Error(), secret) {
				t.Errorf("got the secret in %v", err)
			}
			return
		}
		if _, err := netip.ParseAddrPort(got.Address); err != nil || len(got.Key.Secret) < 16 || !strings.HasSuffix(got.Key.Name, ".") {
			t.Errorf("%q: got %+v", text, got)
		}
	})
}
