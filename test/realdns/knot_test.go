package realdns_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	mdns "github.com/miekg/dns"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/test/daemon"
)

// signing is how the authority signs a zone, as lines of its configuration.
type signing string

const (
	unsigned signing = ""
	// signed zones hold signatures, and NSEC records for what they do not hold.
	signed signing = "    dnssec-signing: on\n    dnssec-policy: static\n"
	// compact zones are signed while they are asked, and deny a name by saying
	// that it exists without any data (compact denial of existence, RFC 9824).
	compact signing = "    module: mod-onlinesign/compact\n"
)

// vouching is for which key of a signed zone its parent holds a DS record.
type vouching uint8

const (
	// properly is for the key that the zone is signed with.
	properly vouching = iota
	// wrongly is for another key: the answers of the zone are forgeries to
	// everyone who validates.
	wrongly
	// never is for none: answers are not validated.
	never
)

// zone is one zone of the authority.
type zone struct {
	name    string // without a trailing dot
	signing signing
	vouched vouching
	records string // in the form of a zone file, relative to the zone
	// elsewhere is the server of the zone for Unbound, if it is not the authority.
	elsewhere address
}

// knot is the authoritative server.
type knot struct {
	folder        string
	address       address
	configuration string
	process       *daemon.Server
}

// knotConfiguration is everything but the zones. With journal-content and
// zonefile-load the server takes a rewritten zone file for what has changed, and
// counts the serial up by itself. Keys are never rolled over.
const knotConfiguration = `
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
policy:
  - id: static
    algorithm: ecdsap256sha256
    ksk-lifetime: 0
    zsk-lifetime: 0
mod-onlinesign:
  - id: compact
    policy: static
template:
  - id: default
    storage: %[1]s
    file: "%%s.zone"
    zonefile-sync: -1
    zonefile-load: difference-no-serial
    journal-content: all
zone:
`

// startKnot starts an authority of some zones, and returns when it serves them.
func startKnot(t *testing.T, zones ...zone) *knot {
	t.Helper()
	program := daemon.FindServer(t, "knot", "knotd")
	folder := daemon.ServerFolder(t)
	k := &knot{folder: folder, address: freeAddress(t), configuration: filepath.Join(folder, "knot.conf")}
	var configuration strings.Builder
	fmt.Fprintf(&configuration, knotConfiguration, folder, k.address.configured())
	for _, z := range zones {
		fmt.Fprintf(&configuration, "  - domain: %s\n%s", z.name, z.signing)
		k.write(t, z)
	}
	writeFile(t, k.configuration, configuration.String())
	k.process = daemon.StartServer(t, folder, program, "--config", k.configuration)
	for _, z := range zones {
		k.process.Await(t, startLimit, "serves "+z.name, func() bool {
			reply, err := exchange(k.address, z.name, mdns.TypeSOA)
			return err == nil && reply.Rcode == mdns.RcodeSuccess && reply.Authoritative
		})
	}
	return k
}

// write writes the file of a zone.
func (k *knot) write(t *testing.T, z zone) {
	t.Helper()
	const head = "$ORIGIN %s.\n$TTL 300\n@ SOA ns hostmaster 1 3600 600 86400 60\n@ NS ns\nns A 127.0.0.1\n%s\n"
	writeFile(t, filepath.Join(k.folder, z.name+".zone"), fmt.Sprintf(head, z.name, z.records))
}

// change puts other records into a zone, and returns when they are served.
func (k *knot) change(t *testing.T, z zone) {
	t.Helper()
	k.write(t, z)
	control(t, "knot", "knotc", "--config", k.configuration, "--blocking", "zone-reload", z.name)
}

// delegationSigner returns the DS record for the key that signs the keys of a
// zone, as its parent should hold it.
func (k *knot) delegationSigner(t *testing.T, zone string) *mdns.DS {
	t.Helper()
	reply := musttest.Get(exchange(k.address, zone, mdns.TypeDNSKEY))(t)
	for _, rr := range reply.Answer {
		if key, ok := rr.(*mdns.DNSKEY); ok && key.Flags&mdns.SEP != 0 {
			return key.ToDS(mdns.SHA256)
		}
	}
	t.Fatalf("%s has no key that signs keys, among %v", zone, reply.Answer)
	return nil
}

// TestAuthoritativeServer asks the authority itself, as an operator does who puts its
// address into the configuration instead of that of a recursive server. It answers
// for its own zones and validates nothing.
func TestAuthoritativeServer(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Log(needsServers)
		return
	}
	k := startKnot(t, append(nameZones(), zone{name: "parent.test", records: "child NS ns.elsewhere.test.\n"})...)
	checkAnswers(t, newResolver(t, k.address), []answerCase{
		{name: "text", ask: "plain.example.test", of: dns.TXT, want: data("plain text")},
		{name: "unsigned", ask: "plain.unsigned.test", of: dns.TXT, want: data("unsigned text")},
		{name: "forged to those who validate", ask: "plain.forged.test", of: dns.TXT, want: data("forged text")},
		{name: "octets that a zone file escapes", ask: "octets.example.test", of: dns.TXT, want: data("\"\\\x00ü\xff")},
		{name: "large text, over TCP", ask: "large.example.test", of: dns.TXT, want: data(strings.Join(inStrings(largeText()), "|"))},
		{name: "no such type", ask: "plain.example.test", of: dns.MX, want: noData()},
		{name: "empty non-terminal", ask: "ent.example.test", of: dns.TXT, want: noData()},
		{name: "no such name", ask: "missing.example.test", of: dns.TXT, want: noSuchName()},
		{name: "wildcard", ask: "any.wild.example.test", of: dns.TXT, want: data("from the wildcard")},
		{name: "wildcard blocked by a name", ask: "any.host.wild.example.test", of: dns.TXT, want: noSuchName()},

		{name: "aliases", ask: "toalias.example.test", of: dns.TXT, want: data("plain text").via("alias.example.test", "plain.example.test")},
		{name: "alias of a missing name", ask: "tomissing.example.test", of: dns.TXT, want: noSuchName().via("missing.example.test")},
		{name: "alias into another of its zones", ask: "tounsigned.example.test", of: dns.TXT, want: data("unsigned text").via("plain.unsigned.test")},
		{name: "alias into a zone of another server", ask: "toforeign.example.test", of: dns.TXT, reason: k.address.String() + " answered REFUSED"},
		{name: "aliases in a circle", ask: "circle1.example.test", of: dns.TXT, reason: "the aliases of circle1.example.test lead in a circle"},
		{name: "as many aliases as are followed", ask: "chain8.example.test", of: dns.TXT, want: data("the end of the chain").via(chainBelow(8)...)},
		{name: "one alias more", ask: "chain9.example.test", of: dns.TXT, reason: "chain9.example.test has more than 8 aliases in a row"},
		{name: "DNAME", ask: "x.tree.example.test", of: dns.TXT, want: data("below a DNAME").via("x.plain.tree2.example.test")},

		// Without the DO bit there is no NSEC record whose meaning could be bent:
		// the same zone says through a recursive server that the name exists.
		{name: "compact, no such name", ask: "missing.compact.test", of: dns.TXT, want: noSuchName()},
		{name: "zone of another server", ask: "www.example.org", of: dns.TXT, reason: k.address.String() + " answered REFUSED"},
		{name: "zone that it delegates", ask: "www.child.parent.test", of: dns.TXT, reason: k.address.String() + " sent a referral instead of an answer"},
	})
}
