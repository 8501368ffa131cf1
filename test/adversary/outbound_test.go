package adversary_test

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dmarcd/dmarcd/internal/musttest"
)

// forbidden are ways to write, or to reach, a host that an outsider must not
// have the daemon connect to.
func forbidden() []string {
	return []string{
		// loopback
		"127.0.0.1", "127.0.0.2", "127.255.255.254", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "::1", "0:0:0:0:0:0:0:1", "localhost",
		// this host
		"0.0.0.0", "0.1.2.3", "::",
		// private, shared and link-local
		"10.0.0.1", "10.255.255.254", "172.16.0.1", "172.31.255.254", "192.168.0.1", "192.168.255.254", "100.64.0.1", "100.127.255.254",
		"169.254.169.254", "169.254.0.1", "fe80::1", "fc00::1", "fd12:3456:789a::1", "fec0::1",
		// IPv4 inside IPv6
		"::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::127.0.0.1", "::10.0.0.1", "::ffff:0:127.0.0.1", "::ffff:0:10.0.0.1",
		"64:ff9b::127.0.0.1", "64:ff9b::10.0.0.1", "64:ff9b:1::10.0.0.1", "2002:7f00:1::1", "2002:a00:1::1", "2001::f5ff:fffe",
		// multicast, broadcast, reserved
		"224.0.0.1", "239.255.255.255", "255.255.255.255", "240.0.0.1", "ff02::1", "ff0e::1",
		// special uses
		"192.0.0.1", "198.18.0.1", "100::1",
	}
}

// quickly is how long a connection may take to be refused. One that is tried
// would take until its timeout.
const quickly = patience

// canary listens where nothing must connect.
type canary struct {
	port int
	hits atomic.Int64
}

// startCanary listens on every address of this host.
func startCanary(t testing.TB) *canary {
	t.Helper()
	listener := musttest.Get(net.Listen("tcp", ":0"))(t)
	t.Cleanup(func() { _ = listener.Close() })
	c := &canary{port: listener.Addr().(*net.TCPAddr).Port} // a TCP listener has one
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			c.hits.Add(1)
			go func() {
				defer func() { _ = conn.Close() }()                 // the count is what matters
				_, _ = fmt.Fprint(conn, "* OK IMAP4rev1 ready\r\n") // let the client believe in it
				_ = conn.SetReadDeadline(deadline(answerLimit))     // it fails with the read
				_, _ = io.Copy(io.Discard, conn)                    // until the client leaves
			}()
		}
	}()
	return c
}

// TestMailboxesInside has a team read mailboxes on hosts inside the network of
// the daemon, by address and by name.
func TestMailboxesInside(t *testing.T) {
	onSQLite(t, func(t *testing.T, a *arena) {
		bait := startCanary(t)
		zone, hosts := "", map[string]string{"rebinding": "mx" + rebindSuffix}
		for i, form := range forbidden() {
			hosts[form] = form
			name := fmt.Sprintf("inside%d.evil.test", i)
			if addr := net.ParseIP(form); addr != nil {
				kind := "AAAA"
				if !strings.Contains(form, ":") {
					kind = "A"
				}
				zone += fmt.Sprintf("%s. %s %s\n", name, kind, form)
				hosts["a name for "+form] = name
			}
		}
		// One good address among bad ones does not help.
		zone += "mixed.evil.test. A 127.0.0.1\nmixed.evil.test. A 10.0.0.1\nalias.evil.test. CNAME mixed.evil.test.\n"
		hosts["two addresses"], hosts["an alias"] = "mixed.evil.test", "alias.evil.test"
		a.dns.setZone(t, zone)
		a.in.Run(t, "", "team", "quota", "mallory", "mailboxes=1000") // where there are quotas
		a.watch("mailboxes inside", func() {
			wanted := map[string]string{} // by host
			for name, host := range hosts {
				r := read(t, a.in, "mallory", host, bait.port)
				if r.Status == 0 {
					wanted[host] = name
				} else if r.Stderr == "" {
					t.Errorf("%s: refused without a reason", name)
				}
			}
			shown := map[string]string{}
			eventually(t, quickly, "every mailbox shows why it is not read", func() bool {
				var all []listedMailbox
				a.in.List(t, &all, "mailbox", "list", "--team", "mallory")
				for _, m := range all {
					if m.Error != nil {
						shown[m.Host] = *m.Error
					}
				}
				return len(shown) >= len(wanted)
			})
			for host, problem := range shown {
				if strings.Contains(problem, "timeout") || strings.Contains(problem, "refused") || strings.Contains(problem, "unreachable") {
					t.Errorf("%s: got %q want it never tried", wanted[host], problem)
				}
			}
		})
		if got := bait.hits.Load(); got != 0 {
			t.Errorf("got %d connections to this host want none", got)
		}
		a.d.Stop()
	}, "DMARCD_OUTBOUND_ALLOW=")
}

// TestMailboxForm tries hosts with the form of the page, which must not become
// a scanner: it connects nowhere inside, says the same of every port, and slows
// down who tries many.
func TestMailboxForm(t *testing.T) {
	onSQLite(t, func(t *testing.T, a *arena) {
		bait := startCanary(t)
		if got := a.mallory.post("/app/sign-in", url.Values{"email": {a.mallory.email}, "password": {password}}); got.status != http.StatusSeeOther {
			t.Fatalf("sign in: got %v want 303", got)
		}
		throttled, last := false, answer{}
		a.watch("the mailbox form", func() {
			for range 60 {
				last = a.mallory.post("/app/settings/mailboxes", url.Values{
					"server": {fmt.Sprintf("127.0.0.1:%d", bait.port)}, "security": {"none"}, "username": {"reports"},
					"password": {"guess"}, "folder": {"INBOX"}, "after": {"keep"},
				})
				if last.status == http.StatusSeeOther || last.status >= 500 {
					t.Fatalf("the form: got %v want it refused", last)
				}
				if throttled = bytes.Contains(last.body, []byte("Too many attempts")); throttled {
					break
				}
			}
		})
		if !throttled {
			t.Errorf("got 60 tries answered, the last with %d, want the later ones throttled", last.status)
		}
		if got := bait.hits.Load(); got != 0 {
			t.Errorf("got %d connections to this host want none", got)
		}
		a.d.Stop()
	}, "DMARCD_OUTBOUND_ALLOW=")
}

// TestPoliciesInside publishes MTA-STS and BIMI records that lead inside the
// network of the daemon. The same policy is read once the operator allows that network.
func TestPoliciesInside(t *testing.T) {
	onSQLite(t, func(t *testing.T, a *arena) {
		zone := ""
		publish := func(name, form string) {
			kind := "AAAA"
			if !strings.Contains(form, ":") {
				kind = "A"
			}
			zone += fmt.Sprintf("_mta-sts.%[1]s. TXT \"v=STSv1; id=1\"\nmta-sts.%[1]s. %[2]s %[3]s\n"+
				"default._bimi.%[1]s. TXT \"v=BIMI1; l=https://logo.%[1]s/l.svg; a=https://logo.%[1]s/a.pem\"\nlogo.%[1]s. %[2]s %[3]s\n"+
				"_dmarc.%[1]s. TXT \"v=DMARC1; p=reject\"\n", name, kind, form)
		}
		domains := map[string]string{}
		for i, form := range forbidden() {
			if net.ParseIP(form) != nil {
				domains[fmt.Sprintf("sts%d.evil.test", i)] = form
			}
		}
		host := startPolicyHost(t)
		domains[policyDomain] = host.address
		for name, form := range domains {
			publish(name, form)
		}
		a.dns.setZone(t, zone)
		a.watch("policies inside", func() {
			for name := range domains {
				a.mallory.add(name)
			}
			for name, form := range domains {
				if got := a.fetched(name); got == "ok" {
					t.Errorf("%s: the policy was fetched", form)
				}
			}
		})
		if got := host.hits.Load(); got != 0 {
			t.Errorf("got %d connections to %s want none", got, host.address)
		}
		a.in = a.in.With("DMARCD_OUTBOUND_ALLOW="+host.address+"/32", "SSL_CERT_FILE="+host.roots)
		a.restart()
		if got := a.mallory.send(http.MethodDelete, "/domains/"+policyDomain, "", nil); got.status != http.StatusNoContent {
			t.Fatalf("delete %s: got %v want 204", policyDomain, got)
		}
		a.mallory.add(policyDomain)
		if got := a.fetched(policyDomain); got != "ok" || host.hits.Load() == 0 {
			t.Errorf("the network is allowed: got %q after %d connections want the policy fetched", got, host.hits.Load())
		}
		a.d.Stop()
	}, "DMARCD_OUTBOUND_ALLOW=", "DMARCD_RATE_LIMIT=0")
}

// fetched returns how the MTA-STS policy of a domain of mallory was fetched, as soon as
// a check says so.
func (a *arena) fetched(domain string) string {
	a.t.Helper()
	var check struct {
		MTASTS struct {
			Fetch string `json:"fetch"`
		} `json:"mta_sts"`
	}
	eventually(a.t, patience, domain+" is checked", func() bool {
		got := a.mallory.send(http.MethodGet, "/domains/"+domain+"/checks/latest", "", nil)
		return got.status == http.StatusOK && json.Unmarshal(got.body, &check) == nil && check.MTASTS.Fetch != ""
	})
	return check.MTASTS.Fetch
}

// TestMailboxMovesInside has a mailbox whose name first leads to an address that is allowed, and
// that is read there. Then the same name leads to this host, where nothing must connect.
func TestMailboxMovesInside(t *testing.T) {
	onSQLite(t, func(t *testing.T, a *arena) {
		var outside, inside atomic.Int64
		answer := func(hits *atomic.Int64) func(net.Conn) {
			return func(conn net.Conn) {
				hits.Add(1)
				_, _ = fmt.Fprint(conn, "* BYE try again\r\n") // the reader connects again, soon
			}
		}
		port := listen(t, answer(&inside))
		other := musttest.Get(net.Listen("tcp", fmt.Sprintf("127.0.0.2:%d", port)))(t)
		defer func() { _ = other.Close() }() // it is only a peer
		go func() {
			for {
				conn, err := other.Accept()
				if err != nil {
					return
				}
				answer(&outside)(conn)
				_ = conn.Close() // it is only a peer
			}
		}()
		a.dns.setZone(t, "box.evil.test. 0 A 127.0.0.2\n")
		if r := read(t, a.in, "mallory", "box.evil.test", port); r.Status != 0 {
			t.Fatalf("mailbox add: got status %d want 0: %s", r.Status, r.Stderr)
		}
		eventually(t, mailboxLimit, "the mailbox is read at the first address", func() bool { return outside.Load() > 0 })
		a.dns.setZone(t, "box.evil.test. 0 A 127.0.0.1\n")
		eventually(t, mailboxLimit, "the second address is refused", func() bool {
			return inside.Load() > 0 || strings.Contains(mailboxes(t, a.in, "mallory")[port], "DMARCD_OUTBOUND_ALLOW")
		})
		if got := inside.Load(); got != 0 {
			t.Errorf("got %d connections to this host want none", got)
		}
		a.d.Stop()
	}, "DMARCD_OUTBOUND_ALLOW=127.0.0.2/32")
}

// policyDomain is the domain of a policy host: httptest has a certificate for its hosts.
const policyDomain = "example.com"

// policyHost is an HTTPS host inside the network of the daemon, with an MTA-STS policy.
type policyHost struct {
	address string
	hits    atomic.Int64 // connections
	roots   string       // the file with the authority of its certificate
}

// startPolicyHost listens on port 443 of an address that only this test uses.
func startPolicyHost(t testing.TB) *policyHost {
	t.Helper()
	h := &policyHost{address: fmt.Sprintf("127.77.%d.%d", os.Getpid()/250%250, 1+os.Getpid()%250)}
	listener, err := net.Listen("tcp", h.address+":443")
	if err != nil {
		t.Fatalf("a policy is served on port 443: run the test as root, or set net.ipv4.ip_unprivileged_port_start to 443: %v", err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		_, _ = io.WriteString(w, "version: STSv1\r\nmode: enforce\r\nmx: mx."+policyDomain+"\r\nmax_age: 86400\r\n") // a client that left needs none
	}))
	_ = server.Listener.Close() // it has another one
	server.Listener = listener
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			h.hits.Add(1)
		}
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	h.roots = filepath.Join(t.TempDir(), "roots.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(h.roots, block, 0o600); err != nil {
		t.Fatal(err)
	}
	return h
}
