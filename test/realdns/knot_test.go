package realdns_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	mdns "github.com/miekg/dns"

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
