package adversary_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
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
