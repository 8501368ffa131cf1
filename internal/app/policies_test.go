package app_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	mdns "github.com/miekg/dns"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/app"
	"github.com/dmarcd/dmarcd/internal/certtest"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/resolver/resolvertest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
	eventually "github.com/dmarcd/dmarcd/test/daemon"
)

const (
	policyHost    = "mta-sts.example.com"
	testingPolicy = "version: STSv1\nmode: testing\nmx: mail.example.com\nmax_age: 604800"
	otherPolicy   = "version: STSv1\nmode: testing\nmx: *.example.com\nmax_age: 604800"
)

// policyWorld is a certificate authority behind a proxy, a DNS, and a daemon with policy hosts.
type policyWorld struct {
	*testing.T

	db     storetest.DB
	dns    *resolvertest.Server
	roots  *x509.CertPool
	output eventually.Output
	folder string
	listen string
	url    string // of the proxy's directory

	mu     sync.Mutex
	broken http.HandlerFunc // answers new orders instead of the authority, if it is not nil
	orders []time.Time
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l := musttest.Get((&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
	defer func() { musttest.Do(t, l.Close()) }()
	return l.Addr().String()
}

// newPolicyWorld starts pebble, whose certificates are valid for that long.
func newPolicyWorld(t *testing.T, db storetest.DB, life time.Duration) *policyWorld {
	t.Helper()
	w := &policyWorld{T: t, db: db, dns: resolvertest.Start(t, ""), roots: x509.NewCertPool(), folder: t.TempDir(), listen: freeAddress(t)}
	server := certtest.New(t, nil, x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
	w.roots.AddCert(server.Leaf)
	key := musttest.Get(x509.MarshalPKCS8PrivateKey(server.PrivateKey))(t)
	musttest.Do(t, os.WriteFile(filepath.Join(w.folder, "server.crt"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate[0]}), 0o600))
	musttest.Do(t, os.WriteFile(filepath.Join(w.folder, "server.key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), 0o600))
	_, port, _ := net.SplitHostPort(w.listen)
	tlsPort := musttest.Get(strconv.Atoi(port))(t)
	authority, management := freeAddress(t), freeAddress(t)
	content := musttest.Get(json.Marshal(map[string]any{"pebble": map[string]any{
		"listenAddress": authority, "managementListenAddress": management,
		"certificate": filepath.Join(w.folder, "server.crt"), "privateKey": filepath.Join(w.folder, "server.key"),
		"httpPort": 1, "tlsPort": tlsPort, "certificateValidityPeriod": int(life.Seconds()),
	}}))(t)
	musttest.Do(t, os.WriteFile(filepath.Join(w.folder, "pebble.json"), content, 0o600))
	process := exec.CommandContext(t.Context(), "pebble", "-config", filepath.Join(w.folder, "pebble.json"), "-dnsserver", w.dns.Addr())
	process.Env = append(os.Environ(), "PEBBLE_VA_NOSLEEP=1", "PEBBLE_WFE_NONCEREJECT=0")
	process.Stdout, process.Stderr = &w.output, &w.output
	if err := process.Start(); err != nil {
		t.Fatalf("start pebble (run scripts/need-servers.sh): %v", err)
	}
	t.Cleanup(func() {
		_ = process.Process.Kill()
		_ = process.Wait()
	})
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: w.roots, MinVersion: tls.VersionTLS12}}}
	eventually.Eventually(t, time.Minute, "pebble answers", func() bool {
		response, err := client.Do(musttest.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+management+"/roots/0", nil))(t))
		if err != nil {
			return false
		}
		defer func() { _ = response.Body.Close() }()
		return w.roots.AppendCertsFromPEM(musttest.Get(io.ReadAll(response.Body))(t))
	})
	forward := &httputil.ReverseProxy{Transport: client.Transport, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: "https", Host: authority})
		r.Out.Host = r.In.Host // the authority makes URLs of it
	}, ModifyResponse: nameAuthority}
	proxy := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		broken := w.broken
		if strings.Contains(r.URL.Path, "order-plz") {
			w.orders = append(w.orders, time.Now())
		} else {
			broken = nil
		}
		w.mu.Unlock()
		if broken != nil {
			broken(rw, r)
			return
		}
		forward.ServeHTTP(rw, r)
	}))
	t.Cleanup(proxy.Close)
	w.roots.AddCert(proxy.Certificate())
	w.url = proxy.URL + "/dir"
	return w
}

// nameAuthority adds to the directory who the authority is in CAA records, which pebble leaves out.
func nameAuthority(r *http.Response) error {
	if r.Request.URL.Path != "/dir" {
		return nil
	}
	var directory map[string]any
	if err := json.NewDecoder(r.Body).Decode(&directory); err != nil {
		return err
	}
	directory["meta"] = map[string]any{"caaIdentities": []string{"ca.test", "other-ca.test"}}
	content, err := json.Marshal(directory)
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(content)), int64(len(content))
	r.Header.Set("Content-Length", strconv.Itoa(len(content)))
	return err
}

// breakOrders has the proxy answer new orders.
func (w *policyWorld) breakOrders(with http.HandlerFunc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broken = with
}

func (w *policyWorld) ordered() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.orders)
}

// start starts a daemon that the authority connects to, or a replica at another port.
func (w *policyWorld) start(listen string) daemon {
	w.Helper()
	var options app.Options
	options.Policies.Roots, options.Policies.Retry = w.roots, time.Second
	d := startWith(w.T, w.db, options, append([]string{
		"DMARCD_LISTEN=" + listen, "DMARCD_BASE_URL=https://dmarc.test/api", "DMARCD_TLS=auto", "DMARCD_ACME_DIRECTORY=" + w.url,
		"DMARCD_SECRET_FILE=" + filepath.Join(w.folder, "secret.key"), "DMARCD_DNS=" + w.dns.Addr(), "DMARCD_ZONE_ADDRESSES=127.0.0.1",
	}, zoneSettings...)...)
	w.Cleanup(func() {
		if w.Failed() {
			w.Log(d.log, &w.output)
		}
	})
	eventually.Eventually(w.T, time.Minute, "the daemon answers DNS queries", func() bool { return strings.Contains(d.log.String(), "answering DNS queries") })
	return d
}

// point has names lead to the name of a record.
func (w *policyWorld) point(label string, names ...string) {
	w.Helper()
	zone := label + ".dns.example.net. A 127.0.0.1\n"
	for _, name := range names {
		zone += name + ". CNAME " + label + ".dns.example.net.\n"
	}
	musttest.Do(w.T, w.dns.Set(zone))
}

// fetch reads a path of a host at a listener, and returns the status and the body, or 0 and why there is
// none.
func (w *policyWorld) fetch(listen, host, path string) (int, string, *x509.Certificate) {
	w.Helper()
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: w.roots, MinVersion: tls.VersionTLS12},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, listen)
		},
	}}
	response, err := client.Do(musttest.Get(http.NewRequestWithContext(w.Context(), http.MethodGet, "https://"+host+path, nil))(w.T))
	if err != nil {
		return 0, err.Error(), nil
	}
	defer func() { _ = response.Body.Close() }()
	return response.StatusCode, string(musttest.Get(io.ReadAll(response.Body))(w.T)), response.TLS.PeerCertificates[0]
}

func (w *policyWorld) eventually(what string, condition func() bool) {
	w.Helper()
	eventually.Eventually(w.T, 2*time.Minute, what, condition)
}

// publish publishes a version of the policy of a domain.
func (w *policyWorld) publish(team *store.Team, domain string, base int64, policy string) dmarcd.RecordVersion {
	w.Helper()
	v := dmarcd.RecordVersion{Kind: dmarcd.RecordMTASTS, Content: policy}
	return musttest.Get(team.PublishRecord(w.Context(), domain, base, v, nil))(w.T)
}

// TestPolicyHost takes over the policy of a domain, changes and withdraws it, beside a second replica
// where the database has more than one. Outsiders with CNAME records to the same name get nothing.
func TestPolicyHost(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		return
	}
	storetest.EachEmpty(t, func(t *testing.T, db storetest.DB) {
		w := newPolicyWorld(t, db, time.Hour)
		d := w.start(w.listen)
		listens := []string{w.listen}
		if db.Engine == "postgres" {
			listens = append(listens, freeAddress(t))
			w.start(listens[1])
		}
		s := db.Open(t, store.Options{})
		team := s.Team(musttest.Get(s.TeamByName(t.Context(), "default"))(t).ID)
		musttest.Get(team.AddDomain(t.Context(), "example.com", time.Now().Add(time.Hour)))(t)
		v := w.publish(team, "example.com", 0, testingPolicy)
		host := func() store.PolicyHost { return musttest.Get(s.PolicyHost(t.Context(), v.Label))(t) }
		text := func() string { return lookUp(t, zoneAddress(t, d.log), v.Label+".dns.example.net") }
		served := func(policy string) bool {
			for _, listen := range listens {
				if status, body, _ := w.fetch(listen, policyHost, "/.well-known/mta-sts.txt"); status != http.StatusOK || strings.TrimSpace(body) != policy {
					return false
				}
			}
			return true
		}

		w.eventually("the missing CNAME record is noticed", func() bool { return strings.Contains(host().Problem, "no CNAME record leads") })
		if status, why, _ := w.fetch(w.listen, policyHost, "/"); status != 0 || w.ordered() != 0 {
			t.Errorf("without a CNAME record: got status %d (%s) and %d orders", status, why, w.ordered())
		}
		w.point(v.Label, policyHost, "mta-sts.outsider.example", "*.wild.example")
		w.eventually("the id is published", func() bool { return text() == "v=STSv1; id="+host().ID })
		if !served(testingPolicy) || w.ordered() != 1 {
			t.Errorf("got %d orders, want the policy with one", w.ordered())
		}

		for _, outsider := range []string{"mta-sts.outsider.example", "mta-sts.a.wild.example", "mta-sts.www.example.com"} {
			if status, why, _ := w.fetch(w.listen, outsider, "/.well-known/mta-sts.txt"); status != 0 {
				t.Errorf("%s: got status %d (%s), want no handshake", outsider, status, why)
			}
		}
		for _, path := range []string{"/", "/app/", "/api/domains", "/healthz", "/metrics", "/.well-known/mta-sts.txt/x"} {
			if status, _, _ := w.fetch(w.listen, policyHost, path); status != http.StatusNotFound {
				t.Errorf("%s: got status %d, want 404", path, status)
			}
		}

		w.publish(team, "example.com", 1, otherPolicy)
		published := host().ID
		w.eventually("the next id is published", func() bool {
			if text() != "v=STSv1; id="+published {
				return false
			}
			if !served(otherPolicy) {
				t.Error("a replica serves the old policy under the new id")
			}
			return true
		})

		musttest.Do(t, team.StopRecord(t.Context(), "example.com", dmarcd.RecordMTASTS))
		withdrawn := host()
		w.eventually("the policy is withdrawn", func() bool { return text() == "v=STSv1; id="+withdrawn.ID })
		if withdrawn.ID == published || !served("version: STSv1\nmode: none\nmax_age: 86400") {
			t.Errorf("stopped: got the id %s, and not mode none", withdrawn.ID)
		}
		if n := w.ordered(); n != 1 {
			t.Errorf("got %d orders, want 1", n)
		}
	})
}

// TestPolicyHostOfTwoTeams has two teams with the same domain: the CNAME record decides.
func TestPolicyHostOfTwoTeams(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		return
	}
	w := newPolicyWorld(t, storetest.SQLite(t), time.Hour)
	w.start(w.listen)
	s := w.db.Open(t, store.Options{})
	ours := s.Team(musttest.Get(s.TeamByName(t.Context(), "default"))(t).ID)
	theirs := s.Team(musttest.Get(s.CreateTeam(t.Context(), "theirs", false))(t).ID)
	for _, team := range []*store.Team{ours, theirs} {
		musttest.Get(team.AddDomain(t.Context(), "example.com", time.Now().Add(time.Hour)))(t)
	}
	first := w.publish(ours, "example.com", 0, testingPolicy)
	second := w.publish(theirs, "example.com", 0, otherPolicy)
	if first.Label == second.Label {
		t.Fatal("two teams have the same name")
	}
	for _, tt := range []struct{ label, policy string }{{first.Label, testingPolicy}, {second.Label, otherPolicy}, {first.Label, testingPolicy}} {
		w.point(tt.label, policyHost)
		w.eventually("the policy is served where the CNAME record leads", func() bool {
			_, body, _ := w.fetch(w.listen, policyHost, "/.well-known/mta-sts.txt")
			return strings.TrimSpace(body) == tt.policy
		})
	}
	if n := w.ordered(); n != 1 {
		t.Errorf("got %d orders, want one certificate for the host", n)
	}
}

// TestPolicyCertificateIsRenewed has certificates of less than a minute.
func TestPolicyCertificateIsRenewed(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		return
	}
	w := newPolicyWorld(t, storetest.SQLite(t), 30*time.Second)
	w.start(w.listen)
	s := w.db.Open(t, store.Options{})
	team := s.Team(musttest.Get(s.TeamByName(t.Context(), "default"))(t).ID)
	musttest.Get(team.AddDomain(t.Context(), "example.com", time.Now().Add(time.Hour)))(t)
	v := w.publish(team, "example.com", 0, testingPolicy)
	w.point(v.Label, policyHost)
	var first *x509.Certificate
	w.eventually("a certificate", func() bool {
		_, _, first = w.fetch(w.listen, policyHost, "/.well-known/mta-sts.txt")
		return first != nil
	})
	w.eventually("another certificate", func() bool {
		_, _, now := w.fetch(w.listen, policyHost, "/.well-known/mta-sts.txt")
		return now != nil && now.SerialNumber.Cmp(first.SerialNumber) != 0
	})
}

// TestPolicyAuthorityFails has an authority that limits the rate, is overloaded, or does not answer.
func TestPolicyAuthorityFails(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		return
	}
	w := newPolicyWorld(t, storetest.SQLite(t), time.Hour)
	const pause = 5 * time.Second
	problem := func(status int, detail string) http.HandlerFunc {
		return func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Type", "application/problem+json")
			rw.Header().Set("Retry-After", strconv.Itoa(int(pause.Seconds())))
			rw.WriteHeader(status)
			_ = json.NewEncoder(rw).Encode(map[string]string{"type": "urn:ietf:params:acme:error:rateLimited", "detail": detail})
		}
	}
	w.breakOrders(problem(http.StatusTooManyRequests, `too many certificates already issued for "example.com"`))
	w.start(w.listen)
	s := w.db.Open(t, store.Options{})
	team := s.Team(musttest.Get(s.TeamByName(t.Context(), "default"))(t).ID)
	musttest.Get(team.AddDomain(t.Context(), "example.com", time.Now().Add(time.Hour)))(t)
	v := w.publish(team, "example.com", 0, testingPolicy)
	w.point(v.Label, policyHost)
	host := func() store.PolicyHost { return musttest.Get(s.PolicyHost(t.Context(), v.Label))(t) }
	w.eventually("the limit is noticed", func() bool { return strings.Contains(host().Problem, "too many certificates already issued") })
	w.breakOrders(problem(http.StatusServiceUnavailable, "overloaded"))
	w.eventually("a second order", func() bool { return w.ordered() == 2 })
	w.breakOrders(func(rw http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) }) // answers nothing
	w.eventually("a third order", func() bool { return w.ordered() >= 3 })
	w.mu.Lock()
	for i, at := range w.orders[1:3] {
		if waited := at.Sub(w.orders[i]); waited < pause-time.Second { // times are whole seconds
			t.Errorf("order %d: got a pause of %v, want %v", i+2, waited, pause)
		}
	}
	w.mu.Unlock()
	w.breakOrders(nil)
	w.eventually("the policy is served", func() bool { return host().Published == host().ID })
	if got := host(); got.Failures != 0 || got.Problem != "" {
		t.Errorf("got the problem %q after success", got.Problem)
	}
}

// TestPolicyAuthorityHangs has an authority that takes orders and never answers. What is served changes
// meanwhile, and the daemon stops.
func TestPolicyAuthorityHangs(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		return
	}
	w := newPolicyWorld(t, storetest.SQLite(t), time.Hour)
	d := w.start(w.listen)
	s := w.db.Open(t, store.Options{})
	team := s.Team(musttest.Get(s.TeamByName(t.Context(), "default"))(t).ID)
	for _, domain := range []string{"example.com", "example.org"} {
		musttest.Get(team.AddDomain(t.Context(), domain, time.Now().Add(time.Hour)))(t)
	}
	v := w.publish(team, "example.com", 0, testingPolicy)
	w.point(v.Label, policyHost)
	host := func() store.PolicyHost { return musttest.Get(s.PolicyHost(t.Context(), v.Label))(t) }
	w.eventually("a policy is served", func() bool { return host().Published == host().ID })
	ended := make(chan struct{})
	t.Cleanup(func() { close(ended) })
	w.breakOrders(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-ended:
		case <-r.Context().Done():
		}
	})
	stuck := w.publish(team, "example.org", 0, testingPolicy)
	w.point(stuck.Label, "mta-sts.example.org")
	w.eventually("an order hangs", func() bool { return w.ordered() > 1 })
	w.point(v.Label, policyHost)
	w.publish(team, "example.com", 1, otherPolicy)
	w.eventually("another policy is served", func() bool {
		_, body, _ := w.fetch(w.listen, policyHost, "/.well-known/mta-sts.txt")
		return strings.TrimSpace(body) == otherPolicy && lookUp(t, zoneAddress(t, d.log), v.Label+".dns.example.net") == "v=STSv1; id="+host().ID
	})
	began := time.Now()
	if err := d.stop(); err != nil || time.Since(began) > 30*time.Second {
		t.Errorf("stop: got %v after %v", err, time.Since(began))
	}
}

// TestPolicyWildcard has 10,000 names of an outsider that lead to the name of a policy.
func TestPolicyWildcard(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		return
	}
	w := newPolicyWorld(t, storetest.SQLite(t), time.Hour)
	w.start(w.listen)
	s := w.db.Open(t, store.Options{})
	team := s.Team(musttest.Get(s.TeamByName(t.Context(), "default"))(t).ID)
	musttest.Get(team.AddDomain(t.Context(), "example.com", time.Now().Add(time.Hour)))(t)
	v := w.publish(team, "example.com", 0, testingPolicy)
	w.point(v.Label, policyHost, "*.evil.example")
	w.eventually("the policy is served", func() bool {
		h := musttest.Get(s.PolicyHost(t.Context(), v.Label))(t)
		return h.Published == h.ID
	})
	files := musttest.Get(s.CertificateFiles(t.Context()))(t)
	var outsiders sync.WaitGroup
	for worker := range 20 {
		outsiders.Go(func() {
			for n := worker; n < 10_000; n += 20 {
				name := "mta-sts.n" + strconv.Itoa(n) + ".evil.example"
				dialer := tls.Dialer{Config: &tls.Config{ServerName: name, InsecureSkipVerify: true}} // any certificate would be one too many
				connection, err := dialer.DialContext(t.Context(), "tcp", w.listen)
				if err == nil {
					_ = connection.Close()
					t.Errorf("%s: got a certificate", name)
					return
				}
			}
		})
	}
	outsiders.Wait()
	if n := w.ordered(); n != 1 {
		t.Errorf("got %d orders, want that of the policy", n)
	}
	if got := musttest.Get(s.CertificateFiles(t.Context()))(t); len(got) != len(files) {
		t.Errorf("got the files %v, want %v", got, files)
	}
	// Who connects as to the policy host, and then asks for another one.
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: w.roots, ServerName: policyHost, MinVersion: tls.VersionTLS12}}}
	request := musttest.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+w.listen+"/.well-known/mta-sts.txt", nil))(t)
	request.Host = "mta-sts.n1.evil.example"
	response, err := client.Do(request)
	musttest.Do(t, err)
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusMisdirectedRequest {
		t.Errorf("another host: got status %d, want 421", response.StatusCode)
	}
}

// policyResolver is the configuration of a resolver that follows CNAME records into the zone.
const policyResolver = `
server:
    directory: "%[1]s"
    chroot: ""
    username: ""
    pidfile: ""
    do-daemonize: no
    use-syslog: no
    logfile: ""
    interface: 127.0.0.1@%[2]s
    do-ip6: no
    do-not-query-localhost: no
    module-config: "iterator"
    unknown-server-time-limit: 2000
    infra-cache-min-rtt: 2000
forward-zone:
    name: "example.com"
    forward-addr: %[3]s
stub-zone:
    name: "dns.example.net"
    stub-addr: %[4]s
`

// TestPolicyCAA looks up the CAA records of a policy host as the authority does.
func TestPolicyCAA(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		return
	}
	w := newPolicyWorld(t, storetest.SQLite(t), time.Hour)
	d := w.start(w.listen)
	s := w.db.Open(t, store.Options{})
	team := s.Team(musttest.Get(s.TeamByName(t.Context(), "default"))(t).ID)
	musttest.Get(team.AddDomain(t.Context(), "example.com", time.Now().Add(time.Hour)))(t)
	v := w.publish(team, "example.com", 0, testingPolicy)
	musttest.Do(t, w.dns.Set(policyHost+". CNAME "+v.Label+".dns.example.net.\n"))
	folder, address := eventually.ServerFolder(t), freeAddress(t)
	_, port, _ := net.SplitHostPort(address)
	at := func(address string) string { return strings.Replace(address, ":", "@", 1) }
	// A copy, because the profile of the package closes other folders to the program at its usual path.
	program, configuration := filepath.Join(folder, "unbound"), filepath.Join(folder, "unbound.conf")
	if output, err := exec.CommandContext(t.Context(), "cp", eventually.FindServer(t, "unbound", "unbound"), program).CombinedOutput(); err != nil {
		t.Fatalf("copy: %v\n%s", err, output)
	}
	musttest.Do(t, os.WriteFile(configuration, fmt.Appendf(nil, policyResolver, folder, port, at(w.dns.Addr()), at(zoneAddress(t, d.log))), 0o644)) // for the user of the server
	eventually.StartServer(t, folder, program, "-d", "-c", configuration)
	client := mdns.Client{Net: "tcp", Timeout: time.Minute}
	var got []string
	w.eventually("the CAA records are there", func() bool {
		reply, _, err := client.Exchange(new(mdns.Msg).SetQuestion(policyHost+".", mdns.TypeCAA), address)
		if err != nil {
			return false
		}
		got = nil
		for _, rr := range reply.Answer {
			if caa, ok := rr.(*mdns.CAA); ok {
				got = append(got, fmt.Sprintf("%s %d %s %s", caa.Hdr.Name, caa.Flag, caa.Tag, caa.Value))
			}
		}
		return len(got) > 0
	})
	slices.Sort(got)
	name := v.Label + ".dns.example.net. 0 issue "
	if want := []string{name + "ca.test", name + "other-ca.test"}; !slices.Equal(got, want) {
		t.Errorf("got the CAA records %q, want %q", got, want)
	}
}
