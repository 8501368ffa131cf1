package realdns_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	mdns "github.com/miekg/dns"

	"github.com/dmarcd/dmarcd/dns"
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
		at := authority
		if z.elsewhere.IsValid() {
			at = z.elsewhere
		}
		fmt.Fprintf(&configuration, "stub-zone:\n    name: %q\n    stub-addr: %s\n", z.name, at.configured())
	}
	writeFile(t, u.configuration, configuration.String())
	u.process = daemon.StartServer(t, folder, copyProgram(t, folder, "unbound", "unbound"), "-d", "-c", u.configuration)
	u.process.Await(t, startLimit, "validates", func() bool {
		reply, err := exchange(u.address, anchor.Hdr.Name, mdns.TypeSOA)
		return err == nil && reply.AuthenticatedData
	})
	return u
}

// copyProgram copies a program of a package into a folder and returns its path there. The
// packages of Unbound and BIND come with a profile for AppArmor that closes every folder
// but their own to the program at its usual path.
//
// Another process does the copying: a server that a parallel test starts would
// inherit a file that is open for writing here, and such a file cannot be run.
func copyProgram(t *testing.T, folder, from, name string) string {
	t.Helper()
	path := filepath.Join(folder, name)
	if output, err := exec.Command("cp", daemon.FindServer(t, from, name), path).CombinedOutput(); err != nil {
		t.Fatalf("copy %s: %v\n%s", name, err, output)
	}
	return path
}

// forget has the server drop what it remembers of a zone and those below it.
func (u *unbound) forget(t *testing.T, zone string) {
	t.Helper()
	control(t, "unbound", "unbound-control", "-c", u.configuration, "flush_zone", zone)
}

func TestRecursiveServer(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Log(needsServers)
		return
	}
	n := startNetwork(t, nameZones()...)
	r := newResolver(t, n.unbound.address)
	checkAnswers(t, r, []answerCase{
		{name: "text", ask: "plain.example.test", of: dns.TXT, want: data("plain text").authentic()},
		{name: "name in upper case", ask: "PLAIN.Example.Test.", of: dns.TXT, want: data("plain text").authentic()},
		{name: "text in parts", ask: "parts.example.test", of: dns.TXT, want: data("in |three |parts").authentic()},
		{name: "octets that a zone file escapes", ask: "octets.example.test", of: dns.TXT, want: data("\"\\\x00ü\xff").authentic()},
		{name: "empty text", ask: "empty.example.test", of: dns.TXT, want: data("").authentic()},
		{name: "several records", ask: "several.example.test", of: dns.TXT, want: data("first", "second").authentic()},
		{name: "large text, over TCP", ask: "large.example.test", of: dns.TXT, want: data(strings.Join(inStrings(largeText()), "|")).authentic()},
		{name: "MX", ask: "example.test", of: dns.MX, want: data("10 mail.example.test", "20 mail.unsigned.test").authentic()},
		{name: "A", ask: "mail.example.test", of: dns.A, want: data("192.0.2.25").authentic()},
		{name: "AAAA", ask: "mail.example.test", of: dns.AAAA, want: data("2001:db8::25").authentic()},
		{name: "NS", ask: "example.test", of: dns.NS, want: data("ns.example.test").authentic()},
		{name: "PTR", ask: "reverse.example.test", of: dns.PTR, want: data("mail.example.test").authentic()},
		{name: "TLSA", ask: "tlsa.example.test", of: dns.TLSA, want: data("030101" + strings.Repeat("ab", 32)).authentic()},

		{name: "no such type", ask: "plain.example.test", of: dns.MX, want: noData().authentic()},
		{name: "empty non-terminal", ask: "ent.example.test", of: dns.TXT, want: noData().authentic()},
		{name: "no such name", ask: "missing.example.test", of: dns.TXT, want: noSuchName().authentic()},
		{name: "name below a missing one", ask: "a.b.missing.example.test", of: dns.TXT, want: noSuchName().authentic()},

		{name: "wildcard", ask: "any.wild.example.test", of: dns.TXT, want: data("from the wildcard").authentic()},
		{name: "wildcard, several labels", ask: "a.b.wild.example.test", of: dns.TXT, want: data("from the wildcard").authentic()},
		{name: "wildcard of another type", ask: "any.wild.example.test", of: dns.A, want: noData().authentic()},
		{name: "wildcard beside a name", ask: "host.wild.example.test", of: dns.TXT, want: noData().authentic()},
		{name: "wildcard blocked by a name", ask: "any.host.wild.example.test", of: dns.TXT, want: noSuchName().authentic()},

		{name: "aliases", ask: "toalias.example.test", of: dns.TXT, want: data("plain text").via("alias.example.test", "plain.example.test").authentic()},
		{name: "alias itself", ask: "alias.example.test", of: dns.CNAME, want: data("plain.example.test").authentic()},
		{name: "alias of another type", ask: "todata.example.test", of: dns.TXT, want: noData().via("mail.example.test").authentic()},
		{name: "alias of a missing name", ask: "tomissing.example.test", of: dns.TXT, want: noSuchName().via("missing.example.test").authentic()},
		{name: "alias into an unsigned zone", ask: "tounsigned.example.test", of: dns.TXT, want: data("unsigned text").via("plain.unsigned.test")},
		{name: "alias from an unsigned zone", ask: "tosigned.unsigned.test", of: dns.TXT, want: data("plain text").via("plain.example.test")},
		{name: "alias into a forged zone", ask: "toforged.example.test", of: dns.TXT, reason: "answered SERVFAIL"},
		{name: "alias of a name without a server", ask: "toforeign.example.test", of: dns.TXT, reason: "answered SERVFAIL"},
		{name: "aliases in a circle", ask: "circle1.example.test", of: dns.TXT, reason: "answered SERVFAIL"},
		{name: "as many aliases as are followed", ask: "chain8.example.test", of: dns.TXT, want: data("the end of the chain").via(chainBelow(8)...).authentic()},
		{name: "one alias more", ask: "chain9.example.test", of: dns.TXT, reason: "chain9.example.test has more than 8 aliases in a row"},
		{name: "DNAME", ask: "x.tree.example.test", of: dns.TXT, want: data("below a DNAME").via("x.plain.tree2.example.test").authentic()},

		{name: "unsigned, data", ask: "plain.unsigned.test", of: dns.TXT, want: data("unsigned text")},
		{name: "unsigned, no data", ask: "plain.unsigned.test", of: dns.A, want: noData()},
		{name: "unsigned, no such name", ask: "missing.unsigned.test", of: dns.TXT, want: noSuchName()},
		{name: "unsigned, the absence of a DS record is proven", ask: "unsigned.test", of: dns.DS, want: noData().authentic()},
		{name: "forged, data", ask: "plain.forged.test", of: dns.TXT, reason: n.unbound.address.String() + " answered SERVFAIL"},
		{name: "forged, no such name", ask: "missing.forged.test", of: dns.TXT, reason: n.unbound.address.String() + " answered SERVFAIL"},
		{name: "compact, data", ask: "plain.compact.test", of: dns.TXT, want: data("signed when asked").authentic()},
		{name: "compact, a missing name exists without data", ask: "missing.compact.test", of: dns.TXT, want: noData().authentic()},
		{name: "no server for it", ask: "www.example.org", of: dns.TXT, reason: n.unbound.address.String() + " answered SERVFAIL"},
	})
}

// chainBelow returns the aliases that a question for a name of aliasChain meets.
func chainBelow(length int) []string {
	var aliases []string
	for i := length - 1; i >= 0; i-- {
		aliases = append(aliases, fmt.Sprintf("chain%d.example.test", i))
	}
	return aliases
}

// TestCrowd asks many different questions at once, each of which the recursive
// server has to ask and validate.
func TestCrowd(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Log(needsServers)
		return
	}
	const questions = 200
	n := startNetwork(t, nameZones()...)
	r := newResolver(t, n.unbound.address)
	var all sync.WaitGroup
	for i := range questions {
		all.Go(func() {
			name := fmt.Sprintf("n%d.wild.example.test", i)
			got := r.Resolve(t.Context(), dns.Question{Name: name, Type: dns.TXT})
			if texts := got.Texts(); len(texts) != 1 || texts[0] != "from the wildcard" || !got.Authentic {
				t.Errorf("%s: got %s, authentic %t, %q (%s) want the text of the wildcard", name, got.Outcome, got.Authentic, texts, got.Reason)
			}
		})
	}
	all.Wait()
}
