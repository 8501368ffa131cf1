package realdns_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	mdns "github.com/miekg/dns"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/musttest"
	authority "github.com/dmarcd/dmarcd/internal/zone"
	"github.com/dmarcd/dmarcd/test/daemon"
)

// managed is the zone that our own server answers for.
const managed = "managed.test"

// transferKey is the key of the secondary, in the form of kdig.
var transferKey = "hmac-sha256:transfer:" + base64.StdEncoding.EncodeToString([]byte("a secret of thirty-two bytes ..."))

// primary is our own server.
type primary struct {
	zone    *authority.Zone
	server  *authority.Server
	address address
}

// startPrimary runs our server, which notifies a secondary at an address, until the test ends.
func startPrimary(t *testing.T, secondary address) *primary {
	t.Helper()
	z := musttest.Get(authority.New(managed, 100, []authority.Nameserver{{Name: "ns.managed.test", Addresses: []netip.Addr{netip.MustParseAddr("127.0.0.1")}}}))(t)
	musttest.Do(t, z.Load([]authority.Change{
		text("short", "v=DMARC1; p=none"),
		text("long", strings.Repeat("0123456789", 200)),
		text("octets", "\"\\\x00ü\xff"),
		text("below.ent", "deep"),
		{Name: "alias.managed.test", Records: []authority.Record{{Type: dns.CNAME, Data: "short.managed.test"}}},
	}))
	p := &primary{zone: z, address: freeAddress(t)}
	p.server = musttest.Get(authority.Listen(t.Context(), authority.Options{
		Zone: z, Listen: p.address.String(), Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Secondaries: []authority.Secondary{musttest.Get(authority.ParseSecondary(secondary.String() + "=" + transferKey))(t)},
	}))(t)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- p.server.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return p
}

func text(label, data string) authority.Change {
	return authority.Change{Name: label + "." + managed, Records: []authority.Record{{Type: dns.TXT, Data: data}}}
}

// apply changes the zone and notifies the secondary.
func (p *primary) apply(t *testing.T, changes ...authority.Change) {
	t.Helper()
	musttest.Do(t, p.zone.Apply(p.zone.Serial()+1, changes))
	p.server.Changed()
}

// kdig runs kdig against our server and returns its output.
func (p *primary) kdig(t *testing.T, arguments ...string) string {
	t.Helper()
	arguments = append([]string{"@" + p.address.Addr().String(), "-p", fmt.Sprint(p.address.Port()), "+timeout=20"}, arguments...)
	output, _ := exec.Command(daemon.FindServer(t, "knot-dnsutils", "kdig"), arguments...).CombinedOutput() // it fails where an answer is an error
	return string(output)
}

// secondaryConfiguration is of a secondary that signs the zone.
const secondaryConfiguration = `
server:
    rundir: %[1]s
    listen: %[2]s
    udp-workers: 1
    tcp-workers: 2
    background-workers: 1
database:
    storage: %[1]s
log:
  - target: stderr
    any: info
key:
  - id: transfer
    algorithm: hmac-sha256
    secret: %[3]s
remote:
  - id: primary
    address: %[4]s
    key: transfer
acl:
  - id: notified
    key: transfer
    action: notify
policy:
  - id: static
    algorithm: ecdsap256sha256
    ksk-lifetime: 0
    zsk-lifetime: 0
zone:
  - domain: managed.test
    storage: %[1]s
    master: primary
    acl: notified
    dnssec-signing: on
    dnssec-policy: static
    zonefile-sync: -1
    journal-content: all
`

// startSecondary starts Knot DNS as a secondary of our server with a key.
func startSecondary(t *testing.T, at address, p *primary, secret string) *knot {
	t.Helper()
	folder := daemon.ServerFolder(t)
	k := &knot{folder: folder, address: at, configuration: filepath.Join(folder, "knot.conf")}
	writeFile(t, k.configuration, fmt.Sprintf(secondaryConfiguration, folder, at.configured(), secret, p.address.configured()))
	k.process = daemon.StartServer(t, folder, daemon.FindServer(t, "knot", "knotd"), "--config", k.configuration)
	return k
}

// serves reports whether the secondary answers with a text.
func (k *knot) serves(label, want string) bool {
	reply, err := exchange(k.address, label+"."+managed, mdns.TypeTXT)
	if err != nil {
		return false
	}
	for _, rr := range reply.Answer {
		if txt, ok := rr.(*mdns.TXT); ok && strings.Join(txt.Txt, "") == want {
			return true
		}
	}
	return want == "" && reply.Rcode == mdns.RcodeNameError
}

func TestManagedZone(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Log(needsServers)
		return
	}
	p := startPrimary(t, freeAddress(t))
	for _, test := range []struct {
		name      string
		arguments []string
		want, not string // parts of the output
	}{
		{"UDP", []string{"short.managed.test", "TXT"}, `"v=DMARC1; p=none"`, "WARNING"},
		{"truncated, then over TCP", []string{"long.managed.test", "TXT"}, "TCP", "tc;"},
		{"truncated only", []string{"long.managed.test", "TXT", "+ignore", "+edns", "+bufsize=4096"}, "Flags: qr aa tc rd", "0123456789"},
		{"alias", []string{"alias.managed.test", "TXT"}, "CNAME\tshort.managed.test.", "NXDOMAIN"},
		{"octets", []string{"octets.managed.test", "TXT"}, `"\"\\\000\195\188\255"`, "WARNING"},
		{"no such name", []string{"missing.managed.test", "TXT", "+dnssec"}, "status: NXDOMAIN", "WARNING"},
		{"empty non-terminal", []string{"ent.managed.test", "TXT"}, "status: NOERROR", "deep"},
		{"another zone", []string{"example.org", "TXT"}, "status: REFUSED", "example.org.\t"},
		{"EDNS of the future", []string{"short.managed.test", "TXT", "+edns=1"}, "BADVERS", "DMARC1"},
		{"unsigned AXFR", []string{managed, "AXFR"}, "REFUSED", "DMARC1"},
		{"AXFR with another secret", []string{managed, "AXFR", "-y", "hmac-sha256:transfer:b3RoZXIgc2VjcmV0IG9mIG1hbnkgYnl0ZXM="}, "BADSIG", "DMARC1"},
		{"AXFR with another key", []string{managed, "AXFR", "-y", strings.Replace(transferKey, "transfer", "other", 1)}, "BADKEY", "DMARC1"},
		{"AXFR", []string{managed, "AXFR", "-y", transferKey}, `"v=DMARC1; p=none"`, "WARNING"},
		{"IXFR of the current serial", []string{managed, "IXFR=100", "-y", transferKey}, "SOA", "DMARC1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := p.kdig(t, test.arguments...); !strings.Contains(got, test.want) || strings.Contains(got, test.not) {
				t.Errorf("got\n%s\nwant it with %q and without %q", got, test.want, test.not)
			}
		})
	}
}

// TestManagedZoneBehindSecondary has Knot DNS transfer and sign the zone, and Unbound validate it.
func TestManagedZoneBehindSecondary(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Log(needsServers)
		return
	}
	at := freeAddress(t)
	p := startPrimary(t, at)
	k := startSecondary(t, at, p, transferKey[strings.LastIndex(transferKey, ":")+1:])
	k.process.Await(t, startLimit, "has the zone", func() bool { return k.serves("short", "v=DMARC1; p=none") })
	p.apply(t, text("short", "v=DMARC1; p=reject"), text("added", "new"), authority.Change{Name: "below.ent." + managed})
	k.process.Await(t, startLimit, "has the change", func() bool {
		return k.serves("short", "v=DMARC1; p=reject") && k.serves("added", "new") && k.serves("below.ent", "")
	})
	log := k.process.Log()
	for _, part := range []string{"AXFR, incoming", "notify, incoming", "IXFR, incoming"} {
		if !strings.Contains(log, part) {
			t.Errorf("got no %q in the log of the secondary:\n%s", part, log)
		}
	}
	u := startUnbound(t, at, k.delegationSigner(t, managed), zone{name: managed})
	checkAnswers(t, newResolver(t, u.address), []answerCase{
		{name: "text", ask: "short." + managed, of: dns.TXT, want: data("v=DMARC1; p=reject").authentic()},
		{name: "alias", ask: "alias." + managed, of: dns.TXT, want: data("v=DMARC1; p=reject").via("short." + managed).authentic()},
		{name: "no such name", ask: "below.ent." + managed, of: dns.TXT, want: noSuchName().authentic()},
		{name: "no such type", ask: "short." + managed, of: dns.MX, want: noData().authentic()},
	})
}

// TestManagedZoneThroughResolver has Unbound ask our server directly.
func TestManagedZoneThroughResolver(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Log(needsServers)
		return
	}
	p := startPrimary(t, freeAddress(t))
	k := startKnot(t, zone{name: parent, signing: signed, records: "managed NS ns.managed\nns.managed A 127.0.0.1\n"})
	u := startUnbound(t, k.address, k.delegationSigner(t, parent), zone{name: parent}, zone{name: managed, elsewhere: p.address})
	checkAnswers(t, newResolver(t, u.address), []answerCase{
		{name: "text", ask: "short." + managed, of: dns.TXT, want: data("v=DMARC1; p=none")},
		{name: "large text, over TCP", ask: "long." + managed, of: dns.TXT, want: data(strings.Join(inStrings(strings.Repeat("0123456789", 200)), "|"))},
		{name: "octets", ask: "octets." + managed, of: dns.TXT, want: data("\"\\\x00ü\xff")},
		{name: "alias", ask: "alias." + managed, of: dns.TXT, want: data("v=DMARC1; p=none").via("short." + managed)},
		{name: "no such type", ask: "short." + managed, of: dns.MX, want: noData()},
		{name: "empty non-terminal", ask: "ent." + managed, of: dns.TXT, want: noData()},
		{name: "no such name", ask: "missing." + managed, of: dns.TXT, want: noSuchName()},
		{name: "the zone", ask: managed, of: dns.NS, want: data("ns.managed.test")},
	})
}
