package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	mdns "github.com/miekg/dns"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/test/daemon"
)

const updateSecret = "YSBzZWNyZXQgb2YgdGhpcnR5LXR3byBieXRlcyAuLi4="

// ownServer is the DNS server of example.com. dmarcd reaches it through a gate.
type ownServer struct {
	kind, server, key string
	address           string // for queries
	gate              *gate
}

// target is the body of a request for it.
func (o *ownServer) target() string {
	return fmt.Sprintf(`{"kind": %q, "server": %q, "key": %q}`, o.kind, o.server, o.key)
}

func (o *ownServer) text() string { return textOver("tcp", o.address, "_dmarc.example.com") }

func textOver(network, server, name string) string {
	client := mdns.Client{Net: network, Timeout: answerLimit}
	reply, _, err := client.Exchange(new(mdns.Msg).SetQuestion(name+".", mdns.TypeTXT), server)
	if err != nil {
		return err.Error()
	}
	for _, rr := range reply.Answer {
		if txt, ok := rr.(*mdns.TXT); ok {
			return strings.Join(txt.Txt, "")
		}
	}
	return mdns.RcodeToString[reply.Rcode]
}

// gate counts exchanges with a server. At one of them it calls a function once, before the server has
// the query or before dmarcd has the answer, and ends the exchange.
type gate struct {
	mu       sync.Mutex
	count    int
	at       int // 0 for never
	answered bool
	act      func()
}

func (g *gate) arm(at int, answered bool, act func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.count, g.at, g.answered, g.act = 0, at, answered, act
}

// passes reports whether an exchange goes on.
func (g *gate) passes(answered bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !answered {
		g.count++
	}
	if g.count != g.at || g.answered != answered {
		return true
	}
	g.act()
	g.at = 0
	return false
}

// framed reads one DNS message with its length.
func framed(from io.Reader) ([]byte, error) {
	length := make([]byte, 2)
	if _, err := io.ReadFull(from, length); err != nil {
		return nil, err
	}
	message := make([]byte, int(length[0])<<8|int(length[1]))
	_, err := io.ReadFull(from, message)
	return append(length, message...), err
}

// dnsGate starts a gate to a DNS server, where each connection is an exchange, and returns its address.
func dnsGate(t *testing.T, g *gate, server string) string {
	t.Helper()
	listener := musttest.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	var all sync.WaitGroup
	pass := func(client net.Conn) {
		defer client.Close() //nolint:errcheck // it was written
		query, err := framed(client)
		if err != nil || !g.passes(false) {
			return
		}
		conn, err := net.Dial("tcp", server)
		if err != nil {
			return
		}
		defer conn.Close() //nolint:errcheck // it was read
		_, _ = conn.Write(query)
		if reply, err := framed(conn); err == nil && g.passes(true) {
			_, _ = client.Write(reply)
		}
	}
	all.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() { pass(client) })
		}
	})
	t.Cleanup(func() { _ = listener.Close(); all.Wait() })
	return listener.Addr().String()
}

// httpGate starts a gate to a server of HTTP, and returns its URL.
func httpGate(t *testing.T, g *gate, server string) string {
	t.Helper()
	gated := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // the server answers to less
		if !g.passes(false) {
			panic(http.ErrAbortHandler)
		}
		request, err := http.NewRequest(r.Method, "http://"+server+r.URL.RequestURI(), strings.NewReader(string(body)))
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		request.Header = r.Header.Clone()
		response, err := http.DefaultTransport.RoundTrip(request)
		if err != nil || !g.passes(true) {
			panic(http.ErrAbortHandler)
		}
		defer response.Body.Close() //nolint:errcheck // read-only
		w.WriteHeader(response.StatusCode)
		_, _ = io.Copy(w, response.Body)
	}))
	t.Cleanup(gated.Close)
	return gated.URL
}

const ownKnot = `
server:
    rundir: %[1]s
    listen: %[2]s
    tcp-workers: 2
    background-workers: 1
database:
    storage: %[1]s
log:
  - target: stderr
    any: info
key:
  - id: ours
    algorithm: hmac-sha256
    secret: %[3]s
acl:
  - id: updates
    key: ours
    action: update
    update-type: TXT
zone:
  - domain: example.com
    storage: %[1]s
    file: example.com.zone
    acl: updates
    zonefile-sync: -1
    journal-content: all
`

const ownZone = `$ORIGIN example.com.
$TTL 300
@ SOA ns hostmaster 1 3600 600 86400 300
@ NS ns
ns A 192.0.2.1
@ TXT "v=spf1 -all"
_dmarc TXT "v=DMARC1; p=none"
`

func serverFile(t *testing.T, folder, name, text string) string {
	t.Helper()
	path := filepath.Join(folder, name)
	musttest.Do(t, os.WriteFile(path, []byte(text), 0o644))
	return path
}

func startOwnKnot(t *testing.T) *ownServer {
	t.Helper()
	folder, port := daemon.ServerFolder(t), daemon.FreePort()
	serverFile(t, folder, "example.com.zone", ownZone)
	configuration := serverFile(t, folder, "knot.conf", fmt.Sprintf(ownKnot, folder, fmt.Sprintf("127.0.0.1@%d", port), updateSecret))
	o := &ownServer{kind: "rfc2136", key: "ours:" + updateSecret, address: fmt.Sprintf("127.0.0.1:%d", port), gate: &gate{}}
	process := daemon.StartServer(t, folder, daemon.FindServer(t, "knot", "knotd"), "--config", configuration)
	process.Await(t, daemon.StartLimit, "serves example.com", func() bool { return textOver("tcp", o.address, "example.com") == "v=spf1 -all" })
	o.server = dnsGate(t, o.gate, o.address)
	return o
}

const ownPowerDNS = `
launch=lmdb
lmdb-filename=%[1]s/pdns.lmdb
lmdb-shards=1
local-address=127.0.0.1
local-port=%[2]d
socket-dir=%[1]s
daemon=no
guardian=no
cache-ttl=0
query-cache-ttl=0
negquery-cache-ttl=0
api=yes
api-key=sesame
webserver=yes
webserver-address=127.0.0.1
webserver-port=%[3]d
webserver-allow-from=127.0.0.0/8
`

func startOwnPowerDNS(t *testing.T) *ownServer {
	t.Helper()
	folder, port, apiPort := daemon.ServerFolder(t), daemon.FreePort(), daemon.FreePort()
	api := fmt.Sprintf("127.0.0.1:%d", apiPort)
	serverFile(t, folder, "pdns.conf", fmt.Sprintf(ownPowerDNS, folder, port, apiPort))
	o := &ownServer{kind: "powerdns", key: "sesame", address: fmt.Sprintf("127.0.0.1:%d", port), gate: &gate{}}
	process := daemon.StartServer(t, folder, daemon.FindServer(t, "pdns-server", "pdns_server"), "--config-dir="+folder)
	const zone = `{"name": "example.com.", "kind": "Native", "nameservers": ["ns.example.com."], "rrsets": [
		{"name": "_dmarc.example.com.", "type": "TXT", "ttl": 300, "records": [{"content": "\"v=DMARC1; p=none\""}]}]}`
	process.Await(t, daemon.StartLimit, "creates example.com", func() bool {
		request := musttest.Get(http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+api+"/api/v1/servers/localhost/zones", strings.NewReader(zone)))(t)
		request.Header.Set("X-Api-Key", "sesame")
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return false
		}
		return response.Body.Close() == nil && response.StatusCode == http.StatusCreated
	})
	o.server = httpGate(t, o.gate, api)
	return o
}

// versionsOf returns the texts of the versions of the DMARC record, the first one first. Their numbers
// have no gaps.
func (s *server) versionsOf(domain string) (texts []string) {
	s.in.t.Helper()
	a := s.get("/domains/" + domain + "/records/dmarc/versions?limit=500")
	if a.status == http.StatusNotFound {
		return nil
	}
	var list struct {
		Items []struct {
			Version int
			Record  string
		}
	}
	musttest.Do(s.in.t, json.Unmarshal(a.body, &list))
	for i, v := range list.Items {
		if v.Version != len(list.Items)-i {
			s.in.t.Errorf("got the versions %s, want no gap", a.body)
		}
		texts = append([]string{v.Record}, texts...)
	}
	return texts
}

// TestKilledPublication kills the server while it publishes at the DNS server of a domain: before and
// after that has the change, and before the change was read back. What that server has decides.
func TestKilledPublication(t *testing.T) {
	each(t, exampleZone, func(t *testing.T, in *installation) {
		s := in.serve()
		s.add("example.com")
		token := in.newToken("default", "--scope", "publish")
		text := func(n int) string { return fmt.Sprintf("v=DMARC1; p=none; rua=mailto:n%d@example.com", n) }
		next := 0
		for _, row := range []struct {
			own   *ownServer
			write int // the exchange of a publication that changes the record
		}{{startOwnPowerDNS(t), 3}, {startOwnKnot(t), 2}} {
			s.send(changing(http.MethodPut, "/domains/example.com/target", token, row.own.target())).wantStatus(t, http.StatusOK)
			for _, at := range []struct {
				exchange int
				answered bool
			}{{row.write, false}, {row.write, true}, {row.write + 1, false}} {
				name := fmt.Sprintf("%s, killed at exchange %d, answered %t", row.own.kind, at.exchange, at.answered)
				before := s.versionsOf("example.com")
				base := int64(len(before))
				killed, other := text(next), text(next+1)
				next += 2
				row.own.gate.arm(at.exchange, at.answered, s.Kill)
				if _, status := s.publish(token, "example.com", base, killed); status != 0 {
					t.Fatalf("%s: got status %d, want no answer", name, status)
				}
				made := row.own.text() == killed
				if wanted := at.answered || at.exchange > row.write; made != wanted {
					t.Errorf("%s: got the server changed %t, want %t", name, made, wanted)
				}
				// The attempt is as old as if the server had been away for two minutes.
				musttest.Get(in.db.SQL(t).ExecContext(t.Context(), `UPDATE record_attempts SET created_at = created_at - 120`))(t)
				s = in.serve()
				status, want := 0, other
				if made {
					want = killed
				}
				if row.own.kind == "powerdns" || !at.answered {
					_, status = s.publish(token, "example.com", base, other)
				} else {
					// Without another publication, the job finishes it.
					daemon.Eventually(t, fullCheckLimit, "the job finishes the publication", func() bool { return int64(len(s.versionsOf("example.com"))) > base })
					status = http.StatusConflict
				}
				if wanted := map[bool]int{false: http.StatusOK, true: http.StatusConflict}[made]; status != wanted {
					t.Errorf("%s: got status %d want %d", name, status, wanted)
				}
				after := s.versionsOf("example.com")
				if len(after) != len(before)+1 || after[len(before)] != want || strings.Join(after[:len(before)], "|") != strings.Join(before, "|") {
					t.Errorf("%s: got the versions %q, want %q after %q", name, after, want, before)
				}
				if got := row.own.text(); got != want {
					t.Errorf("%s: the server has %q, want %q", name, got, want)
				}
			}
			s.send(changing(http.MethodDelete, "/domains/example.com/records/dmarc", token, "")).wantStatus(t, http.StatusNoContent)
		}
	})
}

// TestReplicasPublishAtOnce publishes at two replicas at once: one wins, and its record is at the server.
func TestReplicasPublishAtOnce(t *testing.T) {
	t.Parallel()
	onPostgres(t, exampleZone, func(t *testing.T, in *installation) {
		replicas := [2]*server{in.serve(), in.serve()}
		replicas[0].add("example.com")
		token := in.newToken("default", "--scope", "publish")
		for _, own := range []*ownServer{startOwnPowerDNS(t), startOwnKnot(t)} {
			replicas[0].send(changing(http.MethodPut, "/domains/example.com/target", token, own.target())).wantStatus(t, http.StatusOK)
			for round := range 5 {
				var all sync.WaitGroup
				var status [2]int
				texts := [2]string{}
				for i, s := range replicas {
					texts[i] = fmt.Sprintf("v=DMARC1; p=none; rua=mailto:n%d-%d@example.com", round, i)
					all.Go(func() { _, status[i] = s.publish(token, "example.com", int64(round), texts[i]) })
				}
				all.Wait()
				winner := 0
				if status[1] == http.StatusOK {
					winner = 1
				}
				if status[winner] != http.StatusOK || status[1-winner] != http.StatusConflict {
					t.Errorf("%s: got the statuses %v, want 200 and 409", own.kind, status)
				}
				versions := replicas[1-winner].versionsOf("example.com")
				if got := own.text(); len(versions) != round+1 || versions[round] != texts[winner] || got != texts[winner] {
					t.Errorf("%s: got the versions %q and %q at the server, want %q", own.kind, versions, got, texts[winner])
				}
			}
			replicas[0].send(changing(http.MethodDelete, "/domains/example.com/records/dmarc", token, "")).wantStatus(t, http.StatusNoContent)
		}
	})
}
