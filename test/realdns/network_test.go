// Package realdns holds the tests of what asks the DNS against name servers that
// others wrote: Knot DNS as the authority, which signs its zones, and Unbound as
// the recursive server in front of it, which validates them. Our own fake server
// answers as we understand the RFCs; these two answer as the world does.
//
// Every test starts both for itself, on loopback, as an unprivileged user, in a
// folder that goes away with them. No packet leaves the machine. The programs
// come from Debian's packages: scripts/need-servers.sh installs them. With
// -short nothing is started and nothing is tested.
package realdns_test

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	mdns "github.com/miekg/dns"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/resolver"
	"github.com/dmarcd/dmarcd/test/daemon"
)

// needsServers is why a test does nothing with -short.
const needsServers = "-short: name servers are not started"

// parent is the zone above all others, whose key the recursive server trusts.
const parent = "test"

// network is an authority and a recursive server in front of it.
type network struct {
	knot    *knot
	unbound *unbound
}

// startNetwork starts servers for some zones below the parent.
func startNetwork(t *testing.T, zones ...zone) *network {
	t.Helper()
	all := append([]zone{{name: parent, signing: signed}}, zones...)
	n := &network{knot: startKnot(t, all...)}
	n.delegate(t, zones)
	n.unbound = startUnbound(t, n.knot.address, n.knot.delegationSigner(t, parent), all...)
	return n
}

// delegate has the parent delegate zones, and vouch for the keys of those that
// are signed.
func (n *network) delegate(t *testing.T, zones []zone) {
	t.Helper()
	top := zone{name: parent}
	for _, z := range zones {
		label := strings.TrimSuffix(z.name, "."+parent)
		top.records += fmt.Sprintf("%[1]s NS ns.%[1]s\nns.%[1]s A 127.0.0.1\n", label)
		if z.signing == unsigned {
			continue
		}
		signer := n.knot.delegationSigner(t, z.name)
		switch z.vouched {
		case properly:
		case wrongly:
			signer.Digest = strings.Repeat("00", len(signer.Digest)/2)
		case never:
			continue
		}
		top.records += signer.String() + "\n"
	}
	n.knot.change(t, top)
}

// change puts other records into zones, and returns when a question to either
// server is answered from them.
func (n *network) change(t *testing.T, zones []zone) {
	t.Helper()
	for _, z := range zones {
		n.knot.change(t, z)
	}
	n.delegate(t, zones)
	n.unbound.forget(t, parent)
}

// newResolver returns a resolver that asks one server, and closes it when the
// test ends. It is patient: the machine may be busy with other tests.
func newResolver(t *testing.T, server address) *resolver.Resolver {
	t.Helper()
	r := resolver.New(resolver.Config{Servers: []string{server.String()}, Timeout: 9 * time.Second})
	t.Cleanup(r.Close)
	return r
}

// exchange asks a server without any code of ours in between.
func exchange(server address, name string, recordType uint16) (*mdns.Msg, error) {
	query := new(mdns.Msg).SetQuestion(mdns.Fqdn(name), recordType)
	query.AuthenticatedData = true
	client := mdns.Client{Timeout: 10 * time.Second}
	reply, _, err := client.Exchange(query, server.String())
	return reply, err
}

// address is where a server listens, over UDP and TCP.
type address struct{ netip.AddrPort }

// configured returns the address as both servers write it.
func (a address) configured() string { return fmt.Sprintf("%s@%d", a.Addr(), a.Port()) }

// freeAddress returns a loopback address with a port on which nothing listens.
// There are so many addresses (RFC 1122 §3.2.1.3) that no other test picks the
// same one before it is used.
func freeAddress(t *testing.T) address {
	t.Helper()
	for range 100 {
		a := address{netip.AddrPortFrom(
			netip.AddrFrom4([4]byte{127, byte(rand.IntN(256)), byte(rand.IntN(256)), byte(1 + rand.IntN(254))}),
			uint16(20000+rand.IntN(10000)), // below the ports that the system hands out by itself
		)}
		stream, err := net.Listen("tcp", a.String())
		if err != nil {
			continue
		}
		packets, err := net.ListenPacket("udp", a.String())
		_ = stream.Close() // nothing was accepted
		if err != nil {
			continue
		}
		_ = packets.Close() // nothing was received
		return a
	}
	t.Fatal("no loopback address is free; all of 127.0.0.0/8 has to be on this machine, as it is on Linux")
	return address{}
}

// startLimit is generous: the machine may be busy with other tests.
const startLimit = 2 * time.Minute

// writeFile writes a file that the servers can read.
func writeFile(t *testing.T, path, text string) {
	t.Helper()
	musttest.Do(t, os.WriteFile(path, []byte(text), 0o644))
}

// control runs a program that tells a server what to do, and returns when that
// is done.
func control(t *testing.T, from, program string, arguments ...string) {
	t.Helper()
	if output, err := exec.Command(daemon.FindServer(t, from, program), arguments...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", program, strings.Join(arguments, " "), err, output)
	}
}
