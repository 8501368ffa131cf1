package zone_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	mdns "github.com/miekg/dns"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/zone"
)

// patience is the longest wait of a test: the machine may be busy.
const patience = time.Minute

var secret = base64.StdEncoding.EncodeToString([]byte("0123456789abcdef0123456789abcdef"))

// secondary is one that does not listen, with the key transfer.
func secondary(t testing.TB) zone.Secondary {
	t.Helper()
	return musttest.Get(zone.ParseSecondary("127.0.0.1:9=transfer:" + secret))(t)
}

// listen runs a server on loopback until the test ends.
func listen(t *testing.T, z *zone.Zone, secondaries ...zone.Secondary) *zone.Server {
	t.Helper()
	s := musttest.Get(zone.Listen(t.Context(), zone.Options{
		Zone: z, Listen: "127.0.0.1:0", Secondaries: secondaries, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}))(t)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s
}

// transferred asks for a transfer and returns its records, and the error of the client.
func transferred(s *zone.Server, query *mdns.Msg, secrets map[string]string) (records []mdns.RR, err error) {
	transfer := mdns.Transfer{TsigSecret: secrets, DialTimeout: patience, ReadTimeout: patience}
	envelopes, err := transfer.In(query, s.Addr())
	if err != nil {
		return nil, err
	}
	for envelope := range envelopes {
		if envelope.Error != nil {
			err = envelope.Error
			continue
		}
		records = append(records, envelope.RR...)
	}
	return records, err
}

func signedBy(query *mdns.Msg, key, algorithm string, at time.Time) *mdns.Msg {
	query.SetTsig(key, algorithm, 300, at.Unix())
	return query
}

func TestTransfer(t *testing.T) {
	t.Parallel()
	z := newZone(t)
	var many []zone.Change
	for i := range 3000 {
		many = append(many, zone.Change{Name: fmt.Sprintf("n%d.%s", i, apex), Records: []zone.Record{{Type: dns.TXT, Data: "v=DMARC1; p=none"}}})
	}
	musttest.Do(t, z.Load(many))
	s := listen(t, z, secondary(t))
	axfr := func() *mdns.Msg { return new(mdns.Msg).SetAxfr(apex + ".") }
	wrong := base64.StdEncoding.EncodeToString(make([]byte, 32))

	records, err := transferred(s, signedBy(axfr(), "transfer.", mdns.HmacSHA256, time.Now()), map[string]string{"transfer.": secret})
	if err != nil || len(records) != 3000+14+4+2 {
		t.Errorf("with the key: got %d records and %v, want %d", len(records), err, 3000+14+4+2)
	}
	if n := len(records); n > 2 && (records[0].Header().Rrtype != mdns.TypeSOA || records[n-1].Header().Rrtype != mdns.TypeSOA) {
		t.Errorf("got %v first and %v last, want the SOA record", records[0], records[n-1])
	}
	for _, test := range []struct {
		name    string
		query   *mdns.Msg
		secrets map[string]string
		rcode   int
		tsig    uint16
	}{
		{"unsigned", axfr(), nil, mdns.RcodeRefused, 0},
		{"unknown key", signedBy(axfr(), "other.", mdns.HmacSHA256, time.Now()), map[string]string{"other.": secret}, mdns.RcodeNotAuth, mdns.RcodeBadKey},
		{"wrong secret", signedBy(axfr(), "transfer.", mdns.HmacSHA256, time.Now()), map[string]string{"transfer.": wrong}, mdns.RcodeNotAuth, mdns.RcodeBadSig},
		{"another algorithm", signedBy(axfr(), "transfer.", mdns.HmacSHA1, time.Now()), map[string]string{"transfer.": secret}, mdns.RcodeNotAuth, mdns.RcodeBadKey},
		{"an old signature", signedBy(axfr(), "transfer.", mdns.HmacSHA256, time.Now().Add(-time.Hour)), map[string]string{"transfer.": secret}, mdns.RcodeNotAuth, mdns.RcodeBadTime},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if records, err := transferred(s, test.query.Copy(), test.secrets); err == nil || len(records) > 0 {
				t.Errorf("got %d records and the error %v, want none and an error", len(records), err)
			}
			packed, err := test.query.Pack()
			if len(test.secrets) > 0 {
				packed, _, err = mdns.TsigGenerate(test.query, test.secrets[test.query.IsTsig().Hdr.Name], "", false)
			}
			musttest.Do(t, err)
			replies := s.Respond(packed, client, true)
			reply := new(mdns.Msg)
			musttest.Do(t, reply.Unpack(replies[0]))
			tsig := reply.IsTsig()
			if len(replies) != 1 || reply.Rcode != test.rcode || len(reply.Answer) != 0 || (tsig != nil) != (test.tsig != 0) || tsig != nil && tsig.Error != test.tsig {
				t.Errorf("got %v, want %s and the TSIG error %d", reply, mdns.RcodeToString[test.rcode], test.tsig)
			}
		})
	}
	t.Run("over UDP", func(t *testing.T) {
		t.Parallel()
		c := mdns.Client{TsigSecret: map[string]string{"transfer.": secret}, Timeout: patience}
		reply, _, err := c.Exchange(signedBy(axfr(), "transfer.", mdns.HmacSHA256, time.Now()), s.Addr())
		if err != nil || reply.Rcode != mdns.RcodeRefused {
			t.Errorf("AXFR: got %v, %v want REFUSED", reply, err)
		}
		reply, _, err = c.Exchange(signedBy(new(mdns.Msg).SetIxfr(apex+".", 1, "ns.", "mail."), "transfer.", mdns.HmacSHA256, time.Now()), s.Addr())
		if err != nil || len(reply.Answer) != 1 || reply.Answer[0].Header().Rrtype != mdns.TypeSOA {
			t.Errorf("IXFR: got %v, %v want only the SOA record", reply, err)
		}
	})
	t.Run("a signed query has a signed answer", func(t *testing.T) {
		t.Parallel()
		c := mdns.Client{TsigSecret: map[string]string{"transfer.": secret}, Timeout: patience}
		reply, _, err := c.Exchange(signedBy(new(mdns.Msg).SetQuestion(apex+".", mdns.TypeSOA), "transfer.", mdns.HmacSHA256, time.Now()), s.Addr())
		if err != nil || reply.IsTsig() == nil || len(reply.Answer) != 1 {
			t.Errorf("got %v, %v", reply, err)
		}
	})
}

func TestIncrementalTransfer(t *testing.T) {
	t.Parallel()
	z := newZone(t)
	s := listen(t, z, secondary(t))
	set := func(label, data string) zone.Change {
		return zone.Change{Name: label + "." + apex, Records: []zone.Record{{Type: dns.TXT, Data: data}}}
	}
	musttest.Do(t, z.Apply(first+1, []zone.Change{set("text", "second")}))
	musttest.Do(t, z.Apply(first+10, []zone.Change{set("fresh", "new"), {Name: "deep.below.ent." + apex}}))
	since := func(serial uint32) string {
		t.Helper()
		query := signedBy(new(mdns.Msg).SetIxfr(apex+".", serial, "ns.", "mail."), "transfer.", mdns.HmacSHA256, time.Now())
		records := musttest.Get(transferred(s, query, map[string]string{"transfer.": secret}))(t)
		var short []string
		for _, rr := range records {
			switch rr := rr.(type) {
			case *mdns.SOA:
				short = append(short, fmt.Sprint(rr.Serial))
			case *mdns.TXT:
				short = append(short, strings.TrimSuffix(rr.Hdr.Name, "."+apex+".")+"="+strings.Join(rr.Txt, ""))
			}
		}
		return strings.Join(short, " ")
	}
	for serial, want := range map[uint32]string{
		first:      "1010 1000 text=v=DMARC1; p=none 1001 text=second 1001 deep.below.ent=deep 1010 fresh=new 1010",
		first + 1:  "1010 1001 deep.below.ent=deep 1010 fresh=new 1010",
		first + 10: "1010",
		first + 11: "1010",
	} {
		if got := since(serial); got != want {
			t.Errorf("since %d: got %s want %s", serial, got, want)
		}
	}
	if got := since(first + 2); !strings.HasPrefix(got, "1010 ") || strings.Count(got, "1010") != 2 || !strings.Contains(got, "fresh=new") {
		t.Errorf("since an unknown serial: got %s want the whole zone", got)
	}
	var many []zone.Change
	for i := range 25_000 {
		many = append(many, set(fmt.Sprintf("n%d", i), "x"))
	}
	musttest.Do(t, z.Apply(first+11, many))
	if got := strings.Fields(since(first + 10)); len(got) < 25_000 || slices.Contains(got[1:len(got)-1], fmt.Sprint(first+10)) {
		t.Errorf("after a change that is too large to remember: got %d records, want the whole zone", len(got))
	}
}

// TestNotify checks that every secondary learns of changes, also one that begins to answer later,
// while another never does.
func TestNotify(t *testing.T) {
	t.Parallel()
	silent := musttest.Get(net.ListenPacket("udp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = silent.Close() })
	conn := musttest.Get(net.ListenPacket("udp", "127.0.0.1:0"))(t)
	serials := make(chan uint32, 100)
	var ignored sync.Once
	handler := mdns.HandlerFunc(func(w mdns.ResponseWriter, m *mdns.Msg) {
		ignore := false
		ignored.Do(func() { ignore = true }) // the first message is lost
		soa, ok := m.Answer[0].(*mdns.SOA)
		if ignore || !ok || m.IsTsig() == nil || w.TsigStatus() != nil || m.Opcode != mdns.OpcodeNotify {
			return
		}
		reply := new(mdns.Msg).SetReply(m)
		reply.SetTsig(m.IsTsig().Hdr.Name, m.IsTsig().Algorithm, 300, time.Now().Unix())
		if w.WriteMsg(reply) == nil {
			serials <- soa.Serial
		}
	})
	server := &mdns.Server{PacketConn: conn, Handler: handler, TsigSecret: map[string]string{"transfer.": secret}}
	served := make(chan error)
	go func() { served <- server.ActivateAndServe() }()
	t.Cleanup(func() { _ = server.Shutdown(); <-served })

	z := newZone(t)
	parse := func(c net.PacketConn) zone.Secondary {
		return musttest.Get(zone.ParseSecondary(c.LocalAddr().String() + "=hmac-sha256:transfer:" + secret))(t)
	}
	s := listen(t, z, parse(silent), parse(conn))
	await := func(want uint32) {
		t.Helper()
		for {
			select {
			case got := <-serials:
				if got == want {
					return
				}
			case <-time.After(patience):
				t.Fatalf("got no NOTIFY for the serial %d", want)
			}
		}
	}
	await(first)
	for serial := uint32(first + 1); serial < first+4; serial++ {
		musttest.Do(t, z.Apply(serial, nil))
		s.Changed()
		await(serial)
	}
}

func TestParseSecondary(t *testing.T) {
	t.Parallel()
	got := musttest.Get(zone.ParseSecondary("[2001:db8::53]:5353=hmac-sha512:Key.Example:" + secret))(t)
	if got.Address != "[2001:db8::53]:5353" || got.Key.Name != "key.example." || got.Key.Algorithm != mdns.HmacSHA512 || len(got.Key.Secret) != 32 {
		t.Errorf("got %+v", got)
	}
	for text, want := range map[string]string{"192.0.2.1": "192.0.2.1:53", "2001:db8::1": "[2001:db8::1]:53", "[2001:db8::1]": "[2001:db8::1]:53", "192.0.2.1:54": "192.0.2.1:54"} {
		if got := musttest.Get(zone.ParseSecondary(text + "=k:" + secret))(t); got.Address != want {
			t.Errorf("%s: got the address %s want %s", text, got.Address, want)
		}
	}
	for _, text := range []string{
		"", "192.0.2.1", "192.0.2.1=", "192.0.2.1=key", "host=k:" + secret, "192.0.2.1=a:b:c:d", "192.0.2.1=hmac-md5:k:" + secret,
		"192.0.2.1=hmac-sha1:k:" + secret, "192.0.2.1=k:c2hvcnQ=", "192.0.2.1=k:!!!!", "192.0.2.1=:" + secret, "192.0.2.1=a..b:" + secret,
	} {
		if got, err := zone.ParseSecondary(text); err == nil {
			t.Errorf("%q: got %+v want an error", text, got)
		}
	}
}

// TestConnections checks the limit of a client network, and that it ends with the connections.
func TestConnections(t *testing.T) {
	t.Parallel()
	s := listen(t, newZone(t))
	exchange := func(conn net.Conn) error {
		_, _, err := (&mdns.Client{Net: "tcp", Timeout: patience}).ExchangeWithConn(new(mdns.Msg).SetQuestion("text."+apex+".", mdns.TypeTXT), &mdns.Conn{Conn: conn})
		return err
	}
	var open []net.Conn
	for range 32 {
		conn := musttest.Get(net.Dial("tcp", s.Addr()))(t)
		open = append(open, conn)
		musttest.Do(t, exchange(conn))
		musttest.Do(t, exchange(conn)) // a connection carries several
	}
	extra := musttest.Get(net.Dial("tcp", s.Addr()))(t)
	if err := exchange(extra); err == nil {
		t.Error("got an answer over a connection above the limit")
	}
	_ = extra.Close()
	for _, conn := range open {
		_ = conn.Close()
	}
	for end := time.Now().Add(patience); ; {
		conn := musttest.Get(net.Dial("tcp", s.Addr()))(t)
		err := exchange(conn)
		_ = conn.Close()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("got %v after the other connections ended", err)
		}
	}
}

// TestAddresses checks that an answer leaves from the address that was queried, if the server
// listens on all of them: a client takes no other.
func TestAddresses(t *testing.T) {
	t.Parallel()
	s := musttest.Get(zone.Listen(t.Context(), zone.Options{Zone: newZone(t), Listen: ":0", Log: slog.New(slog.NewTextHandler(io.Discard, nil))}))(t)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- s.Run(ctx) }()
	defer func() { cancel(); <-ended }()
	_, port, _ := net.SplitHostPort(s.Addr())
	for _, host := range []string{"127.0.0.1", "127.0.0.2", "127.1.2.3"} {
		reply, err := mdns.Exchange(new(mdns.Msg).SetQuestion("text."+apex+".", mdns.TypeTXT), net.JoinHostPort(host, port))
		if err != nil || len(reply.Answer) != 1 {
			t.Errorf("%s: got %v, %v", host, reply, err)
		}
	}
}
