package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	mdns "github.com/miekg/dns"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/test/daemon"
)

// restored matches the address of the DNS listener of a server without a database.
var restored = regexp.MustCompile(`"msg":"answering DNS queries from the snapshot","address":"([^"]+)"`)

// dnsAddress waits until a server answers DNS queries, and returns where.
func (s *server) dnsAddress(message *regexp.Regexp) string {
	s.in.t.Helper()
	daemon.Eventually(s.in.t, daemon.StartLimit, "the daemon answers DNS queries", func() bool { return message.MatchString(s.Log()) })
	return message.FindStringSubmatch(s.Log())[1]
}

// textAt returns the text of a name, or why there is none.
func textAt(server, name string) string {
	reply, err := mdns.Exchange(new(mdns.Msg).SetQuestion(name+".", mdns.TypeTXT), server)
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

// publish publishes a DMARC record by the API. The status is 0 if there was no answer.
func (s *server) publish(token, domain string, base int64, record string) (target string, status int) {
	body := musttest.Get(json.Marshal(map[string]any{"base": base, "record": record}))(s.in.t)
	a, err := s.try(changing(http.MethodPut, "/domains/"+domain+"/records/dmarc", token, string(body)))
	if err != nil {
		return "", 0
	}
	var published struct{ Target string }
	_ = json.Unmarshal(a.body, &published) // an error has none
	return published.Target, a.status
}

// TestZoneWithoutDatabase restarts a server while PostgreSQL is away: it answers DNS queries from its
// snapshot, stops when it is told to, and continues when the database is back.
func TestZoneWithoutDatabase(t *testing.T) {
	t.Parallel()
	onPostgres(t, exampleZone, func(t *testing.T, in *installation) {
		in.mayLogErrors = true
		p, through := startProxy(t, in.db.DSN)
		settings := append([]string{"DMARCD_DATABASE=" + through}, zoneSettings...)
		s := in.serve(settings...)
		address := s.dnsAddress(answering)
		s.add("example.com")
		token := in.newToken("default", "--scope", "publish")
		const first, second = "v=DMARC1; p=none", "v=DMARC1; p=reject"
		target, status := s.publish(token, "example.com", 0, first)
		if status != http.StatusOK {
			t.Fatalf("got status %d want 200", status)
		}
		serves := func(address, want string) {
			t.Helper()
			daemon.Eventually(t, daemon.StartLimit, "the zone serves "+want, func() bool { return textAt(address, target) == want })
		}
		serves(address, first)
		type state struct {
			Serial   int64
			Orphaned int
			Snapshot struct {
				File   string
				Serial *int64
				Names  int
			}
		}
		var shown state
		daemon.Eventually(t, daemon.StartLimit, "the snapshot has the change", func() bool {
			r := in.run(command{args: []string{"zone", "--json"}, settings: zoneSettings})
			shown = state{}
			return r.Status == 0 && json.Unmarshal([]byte(r.Stdout), &shown) == nil && shown.Snapshot.Serial != nil && *shown.Snapshot.Serial == shown.Serial
		})
		if shown.Orphaned != 0 || shown.Snapshot.File != filepath.Join(in.data, "zone.snapshot") || shown.Snapshot.Names != 2 {
			t.Errorf("got %+v, want the name and that of a name server", shown)
		}
		s.Kill()
		p.cut()
		alone := in.start(settings...)
		serves(alone.dnsAddress(restored), first)
		alone.Stop() // without an error
		alone = in.start(settings...)
		address = alone.dnsAddress(restored)
		serves(address, first)
		p.restore()
		alone.await()
		daemon.Eventually(t, recoveryLimit, "the server is ready", func() bool { return alone.outside("/readyz").status == http.StatusOK })
		if _, status := alone.publish(token, "example.com", 1, second); status != http.StatusOK {
			t.Errorf("after the recovery: got status %d want 200", status)
		}
		serves(address, second)
		if dropped := in.do("zone", "drop"); dropped != "0 names dropped.\n" {
			t.Errorf("got %q", dropped)
		}
	})
}

// TestZoneOfReplicas publishes at two replicas at once, while one of them is killed again and again. What
// was confirmed is served by both, and no answer is older than one before it.
func TestZoneOfReplicas(t *testing.T) {
	t.Parallel()
	const domains, versions, kills = 4, 25, 3
	names := exampleZone
	for d := range domains {
		names += fmt.Sprintf("\nd%d.example._report._dmarc.example.com. TXT \"v=DMARC1\"", d)
	}
	onPostgres(t, names, func(t *testing.T, in *installation) {
		in.mayLogErrors = true
		ports := [2]string{}
		var servers [2]*server
		var mu sync.Mutex // of servers
		begin := func(i int) {
			s := in.start("DMARCD_ZONE=dns.example.net", "DMARCD_ZONE_LISTEN="+ports[i], zoneSettings[2], fmt.Sprintf("DMARCD_DATA=%s-%d", in.data, i), "DMARCD_SECRET_FILE="+filepath.Join(in.data, "secret.key"))
			s.await()
			mu.Lock()
			defer mu.Unlock()
			servers[i] = s
		}
		for i := range ports {
			ports[i] = fmt.Sprintf("127.0.0.1:%d", daemon.FreePort())
		}
		in.serve().Stop() // for the token and the key
		begin(0)
		begin(1)
		token := in.newToken("default", "--scope", "publish")
		at := func(i int) *server {
			mu.Lock()
			defer mu.Unlock()
			return servers[i%2]
		}
		record := func(version int) string { return fmt.Sprintf("v=DMARC1; p=none; rua=mailto:v%d@example.com", version) }
		var writers, watchers sync.WaitGroup
		ended := make(chan struct{})
		targets := [domains]string{}
		confirmed := [domains]int{}
		for d := range domains {
			domain := fmt.Sprintf("d%d.example", d)
			at(1).add(domain)
			target, status := at(d).publish(token, domain, 0, record(1))
			if status != http.StatusOK {
				t.Fatalf("got status %d want 200", status)
			}
			targets[d], confirmed[d] = target, 1
			writers.Go(func() {
				for try := 0; confirmed[d] < versions && try < 100*versions; try++ {
					// A conflict means that the answer to this version was lost.
					_, status := at(try).publish(token, domain, int64(confirmed[d]), record(confirmed[d]+1))
					if status == http.StatusOK || status == http.StatusConflict {
						confirmed[d]++
					}
				}
			})
			for _, port := range ports {
				watchers.Go(func() {
					last := 0
					pace := time.NewTicker(25 * time.Millisecond) // below the limit for a network and name
					defer pace.Stop()
					for {
						select {
						case <-ended:
							return
						case <-pace.C:
						}
						text := textAt(port, target)
						version, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(text, "v=DMARC1; p=none; rua=mailto:v"), "@example.com"))
						switch {
						case strings.Contains(text, "127.0.0.1"): // the server was killed
						case err != nil && last > 0:
							t.Errorf("%s of %s: got %q after version %d", domain, port, text, last)
							return
						case version < last:
							t.Errorf("%s of %s: got version %d after %d", domain, port, version, last)
							return
						default:
							last = version
						}
					}
				})
			}
		}
		for range kills {
			at(0).Kill()
			begin(0)
		}
		writers.Wait()
		done := time.Now()
		close(ended)
		watchers.Wait()
		for d := range domains {
			for _, port := range ports {
				daemon.Eventually(t, daemon.StartLimit, "the last version is served", func() bool { return textAt(port, targets[d]) == record(versions) })
			}
		}
		t.Logf("all replicas served the last change after %v", time.Since(done))
		serials := map[uint32]bool{}
		for _, port := range ports {
			reply := musttest.Get(mdns.Exchange(new(mdns.Msg).SetQuestion("dns.example.net.", mdns.TypeSOA), port))(t)
			serials[reply.Answer[0].(*mdns.SOA).Serial] = true
		}
		if len(serials) != 1 {
			t.Errorf("got the serials %v, want the same at both replicas", serials)
		}
	})
}
