package adversary_test

import (
	"encoding/binary"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/resolver/resolvertest"
)

// silentSuffix is below which no question is ever answered.
const silentSuffix = ".silent.test"

// rebindSuffix is below which an address changes with every question: it is
// first a public one and then loopback.
const rebindSuffix = ".rebind.test"

// hostileDNS answers from a zone, but for the names of the attacker.
type hostileDNS struct {
	*resolvertest.Server

	address string
	silent  atomic.Int64 // questions that got no answer
	mu      sync.Mutex
	asked   map[string]int // questions for an address of a rebinding name
}

// startDNS runs the server until the test ends.
func startDNS(t testing.TB) *hostileDNS {
	t.Helper()
	d := &hostileDNS{Server: resolvertest.Start(t, ""), asked: map[string]int{}}
	var listening sync.WaitGroup
	udp, tcp := listenBoth(t)
	d.address = udp.LocalAddr().String()
	listening.Go(func() { d.serveUDP(udp) })
	listening.Go(func() { d.serveTCP(tcp) })
	t.Cleanup(func() {
		_, _ = udp.Close(), tcp.Close() // they are only peers
		listening.Wait()
	})
	return d
}

// listenBoth listens on the same free port of UDP and TCP.
func listenBoth(t testing.TB) (net.PacketConn, net.Listener) {
	t.Helper()
	for {
		tcp := musttest.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
		if udp, err := net.ListenPacket("udp", tcp.Addr().String()); err == nil {
			return udp, tcp
		}
		_ = tcp.Close() // another socket has the port of UDP
	}
}

// setZone replaces the zone behind the names of the attacker.
func (d *hostileDNS) setZone(t testing.TB, zone string) {
	t.Helper()
	musttest.Do(t, d.Set(zone))
}

func (d *hostileDNS) serveUDP(conn net.PacketConn) {
	for {
		query := make([]byte, 4096)
		n, client, err := conn.ReadFrom(query)
		if err != nil {
			return
		}
		go func() {
			if reply := d.reply(query[:n]); reply != nil {
				_, _ = conn.WriteTo(reply, client) // it may be gone
			}
		}()
	}
}

// serveTCP forwards whole connections: the attacker has nothing to send there.
func (d *hostileDNS) serveTCP(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go forward(conn, d.Addr())
	}
}

// reply answers a query: with nothing, with an address that changes, or as the
// zone has it.
func (d *hostileDNS) reply(query []byte) []byte {
	name, kind := question(query)
	switch {
	case strings.HasSuffix(name, silentSuffix):
		d.silent.Add(1)
		return nil
	case strings.HasSuffix(name, rebindSuffix) && (kind == typeA || kind == typeAAAA):
		return d.rebind(query, name, kind)
	}
	conn, err := net.Dial("udp", d.Addr())
	if err != nil {
		return nil
	}
	defer func() { _ = conn.Close() }() // nothing is written any more
	if _, err := conn.Write(query); err != nil {
		return nil
	}
	_ = conn.SetReadDeadline(deadline(patience)) // a fresh socket has one
	answer := make([]byte, 65535)
	n, err := conn.Read(answer)
	if err != nil {
		return nil
	}
	return answer[:n]
}

// The types of questions that are answered here (RFC 1035 §3.2.2, RFC 3596).
const (
	typeA    = 1
	typeAAAA = 28
)

// question returns the name, in lower case without the last dot, and the type
// that a query asks for (RFC 1035 §4.1.2).
func question(query []byte) (name string, kind uint16) {
	var labels []string
	for at := 12; at < len(query); {
		length := int(query[at])
		at++
		if length == 0 && at+2 <= len(query) {
			return strings.ToLower(strings.Join(labels, ".")), binary.BigEndian.Uint16(query[at:])
		}
		if at+length > len(query) {
			break
		}
		labels = append(labels, string(query[at:at+length]))
		at += length
	}
	return "", 0
}

// rebind answers the first question for an address with one of the
// documentation networks and all later ones with loopback, both for no time.
func (d *hostileDNS) rebind(query []byte, name string, kind uint16) []byte {
	d.mu.Lock()
	d.asked[name]++
	first := d.asked[name] == 1
	d.mu.Unlock()
	end := 12 + len(name) + 2 + 4 // header, name with its root, type and class
	reply := append([]byte{}, query[:end]...)
	reply[2], reply[3] = 0x84, 0x00 // QR, AA; NOERROR
	copy(reply[6:12], []byte{0, 0, 0, 0, 0, 0})
	if kind == typeAAAA {
		return reply
	}
	addr := netip.MustParseAddr("127.0.0.1")
	if first {
		addr = netip.MustParseAddr("203.0.113.1")
	}
	reply[7] = 1
	reply = append(reply, 0xc0, 12, 0, typeA, 0, 1, 0, 0, 0, 0, 0, 4)
	return append(reply, addr.AsSlice()...)
}
