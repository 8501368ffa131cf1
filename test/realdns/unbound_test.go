package realdns_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	mdns "github.com/miekg/dns"

	"github.com/dmarcd/dmarcd/test/daemon"
)

// unbound is the recursive server that validates.
type unbound struct {
	address       address
	configuration string
	process       *daemon.Server
}

// unboundConfiguration is everything but the zones. Queries go out from loopback,
// so none can leave it, and what is below no zone of ours goes to the authority
// too, which refuses it. Without nodefault the server would itself deny
// everything below test (RFC 6761 §6.2). An authority that a busy machine makes
// slow is waited for, and not taken for dead.
const unboundConfiguration = `
server:
    directory: "%[1]s"
    chroot: ""
    username: ""
    pidfile: ""
    do-daemonize: no
    use-syslog: no
    logfile: ""
    val-log-level: 2
    interface: %[2]s
    outgoing-interface: 127.0.0.1
    do-ip6: no
    do-not-query-localhost: no
    unknown-server-time-limit: 2000
    infra-cache-min-rtt: 2000
    local-zone: "test." nodefault
    module-config: "validator iterator"
    trust-anchor: "%[3]s"
remote-control:
    control-enable: yes
    control-interface: "%[1]s/control"
    control-use-cert: no
forward-zone:
    name: "."
    forward-addr: %[4]s
`

// startUnbound starts a recursive server that finds the zones at an authority and
// trusts one key, and returns when it has validated an answer with it.
func startUnbound(t *testing.T, authority address, anchor *mdns.DS, zones ...zone) *unbound {
	t.Helper()
	folder := daemon.ServerFolder(t)
	u := &unbound{address: freeAddress(t), configuration: filepath.Join(folder, "unbound.conf")}
	var configuration strings.Builder
	key := strings.ReplaceAll(anchor.String(), "\t", " ")
	fmt.Fprintf(&configuration, unboundConfiguration, folder, u.address.configured(), key, authority.configured())
	for _, z := range zones {
		fmt.Fprintf(&configuration, "stub-zone:\n    name: %q\n    stub-addr: %s\n", z.name, authority.configured())
	}
	writeFile(t, u.configuration, configuration.String())
	u.process = daemon.StartServer(t, folder, copyProgram(t, folder, "unbound"), "-d", "-c", u.configuration)
	u.process.Await(t, startLimit, "validates", func() bool {
		reply, err := exchange(u.address, anchor.Hdr.Name, mdns.TypeSOA)
		return err == nil && reply.AuthenticatedData
	})
	return u
}

// copyProgram copies a program into a folder and returns its path there. The
// package of Unbound comes with a profile for AppArmor that closes every folder
// but its own to the program at its usual place.
//
// Another process does the copying: a server that a parallel test starts would
// inherit a file that is open for writing here, and such a file cannot be run.
func copyProgram(t *testing.T, folder, name string) string {
	t.Helper()
	path := filepath.Join(folder, name)
	if said, err := exec.Command("cp", daemon.FindServer(t, "unbound", name), path).CombinedOutput(); err != nil {
		t.Fatalf("copy %s: %v\n%s", name, err, said)
	}
	return path
}

// forget has the server drop what it remembers of a zone and those below it.
func (u *unbound) forget(t *testing.T, zone string) {
	t.Helper()
	control(t, "unbound", "unbound-control", "-c", u.configuration, "flush_zone", zone)
}
