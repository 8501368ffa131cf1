package realdns_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	mdns "github.com/miekg/dns"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/outbound"
	"github.com/dmarcd/dmarcd/internal/publish"
	"github.com/dmarcd/dmarcd/test/daemon"
)

// customer is the zone of a customer.
const customer = "customer.test"

const customerRecords = `@ TXT "v=spf1 -all"
@ TXT "token=\"a\" \\ b" "second"
_dmarc TXT "v=DMARC1; p=none"
_smtp._tls CNAME elsewhere
*.wild TXT "from the wildcard"
below NS ns.elsewhere.test.
`

const updateSecret = "YSBzZWNyZXQgb2YgdGhpcnR5LXR3byBieXRlcyAuLi4="

var onLoopback = &outbound.Dialer{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}

// serverOf is a server that takes changes of the zone of the customer.
type serverOf struct {
	address address // for queries
	target  publish.Target
	process *daemon.Server
}

func startUpdatable(t *testing.T) *serverOf {
	t.Helper()
	folder := daemon.ServerFolder(t)
	k := &knot{folder: folder, address: freeAddress(t), configuration: filepath.Join(folder, "knot.conf")}
	head, _, _ := strings.Cut(knotConfiguration, "policy:")
	writeFile(t, k.configuration, fmt.Sprintf(head+`key:
  - id: ours
    algorithm: hmac-sha256
    secret: %[3]s
  - id: others
    algorithm: hmac-sha256
    secret: %[3]s
acl:
  - id: updates
    key: ours
    action: update
    update-type: TXT
zone:
  - domain: %[4]s
    storage: %[1]s
    file: "%%s.zone"
    acl: updates
    zonefile-sync: -1
    journal-content: all
`, folder, k.address.configured(), updateSecret, customer))
	k.write(t, zone{name: customer, records: customerRecords})
	k.process = daemon.StartServer(t, folder, daemon.FindServer(t, "knot", "knotd"), "--config", k.configuration)
	return awaitCustomer(t, &serverOf{address: k.address, process: k.process, target: dynamicTarget(k.address)})
}

func dynamicTarget(at address) publish.Target {
	return publish.Target{PublishTarget: dmarcd.PublishTarget{Kind: dmarcd.TargetRFC2136, Server: at.String(), Zone: customer}, Key: "ours:" + updateSecret}
}

func awaitCustomer(t *testing.T, s *serverOf) *serverOf {
	t.Helper()
	s.process.Await(t, startLimit, "serves "+customer, func() bool {
		reply, err := exchange(s.address, customer, mdns.TypeSOA)
		return err == nil && reply.Rcode == mdns.RcodeSuccess && reply.Authoritative
	})
	return s
}

const bindConfiguration = `
options {
	directory "%[1]s";
	listen-on port %[2]d { 127.0.0.1; };
	listen-on-v6 { none; };
	pid-file none;
	recursion no;
	dnssec-validation no;
	session-keyfile none;
	lock-file none;
};
controls { };
key "ours" { algorithm hmac-sha256; secret "%[3]s"; };
key "others" { algorithm hmac-sha256; secret "%[3]s"; };
zone "%[4]s" { type primary; file "%[4]s.zone"; %[5]s };
`

func startBIND(t *testing.T, policy string) *serverOf {
	t.Helper()
	folder := daemon.ServerFolder(t)
	// BIND listens on addresses that an interface has.
	at := address{netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(daemon.FreePort()))}
	(&knot{folder: folder}).write(t, zone{name: customer, records: customerRecords})
	configuration := filepath.Join(folder, "named.conf")
	writeFile(t, configuration, fmt.Sprintf(bindConfiguration, folder, at.Port(), updateSecret, customer, policy))
	process := daemon.StartServer(t, folder, copyProgram(t, folder, "bind9", "named"), "-g", "-n", "1", "-c", configuration)
	return awaitCustomer(t, &serverOf{address: at, process: process, target: dynamicTarget(at)})
}

const powerDNSConfiguration = `
launch=lmdb
lmdb-filename=%[1]s/pdns.lmdb
lmdb-shards=1
local-address=%[2]s
local-port=%[3]d
socket-dir=%[1]s
daemon=no
guardian=no
cache-ttl=0
query-cache-ttl=0
negquery-cache-ttl=0
api=yes
api-key=sesame
webserver=yes
webserver-address=%[4]s
webserver-port=%[5]d
webserver-allow-from=127.0.0.0/8
`

func startPowerDNS(t *testing.T) *serverOf {
	t.Helper()
	folder := daemon.ServerFolder(t)
	at, api := freeAddress(t), freeAddress(t)
	writeFile(t, filepath.Join(folder, "pdns.conf"), fmt.Sprintf(powerDNSConfiguration, folder, at.Addr(), at.Port(), api.Addr(), api.Port()))
	s := &serverOf{address: at, target: publish.Target{
		PublishTarget: dmarcd.PublishTarget{Kind: dmarcd.TargetPowerDNS, Server: "http://" + api.String(), Zone: customer}, Key: "sesame",
	}}
	s.process = daemon.StartServer(t, folder, daemon.FindServer(t, "pdns-server", "pdns_server"), "--config-dir="+folder)
	const records = `{"name": "customer.test.", "kind": "Native", "nameservers": ["ns.customer.test."], "rrsets": [
		{"name": "customer.test.", "type": "TXT", "ttl": 600, "records": [{"content": "\"v=spf1 -all\""}, {"content": "\"token=\\\"a\\\" \\\\ b\" \"second\""}]},
		{"name": "_dmarc.customer.test.", "type": "TXT", "ttl": 600, "records": [{"content": "\"v=DMARC1; p=none\""}]},
		{"name": "*.wild.customer.test.", "type": "TXT", "ttl": 600, "records": [{"content": "\"from the wildcard\""}]},
		{"name": "_smtp._tls.customer.test.", "type": "CNAME", "ttl": 600, "records": [{"content": "elsewhere.customer.test."}]}]}`
	s.process.Await(t, startLimit, "creates the zone", func() bool {
		request := musttest.Get(http.NewRequestWithContext(t.Context(), http.MethodPost, s.target.Server+"/api/v1/servers/localhost/zones", bytes.NewBufferString(records)))(t)
		request.Header.Set("X-Api-Key", "sesame")
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return false
		}
		defer response.Body.Close()          //nolint:errcheck // read-only
		text, _ := io.ReadAll(response.Body) // for the log
		if response.StatusCode != http.StatusCreated {
			t.Log(string(text))
		}
		return response.StatusCode == http.StatusCreated
	})
	return awaitCustomer(t, s)
}

// texts returns the TXT records that the server answers with, sorted, and their TTL.
func (s *serverOf) texts(t *testing.T, name string) (texts []string, ttl uint32) {
	t.Helper()
	client := mdns.Client{Net: "tcp", Timeout: startLimit}
	reply, _, err := client.Exchange(new(mdns.Msg).SetQuestion(mdns.Fqdn(name), mdns.TypeTXT), s.address.String())
	musttest.Do(t, err)
	for _, rr := range reply.Answer {
		if txt, ok := rr.(*mdns.TXT); ok {
			texts, ttl = append(texts, strings.Join(txt.Txt, "|")), txt.Hdr.Ttl
		}
	}
	slices.Sort(texts)
	return texts, ttl
}

func dmarcChange(text, base string) publish.Change {
	return publish.Change{Domain: customer, Name: "_dmarc." + customer, Text: text, Base: base, Ours: beginsWith("v=DMARC1")}
}

func beginsWith(prefix string) func(string) bool {
	return func(text string) bool { return strings.HasPrefix(text, prefix) }
}

// stage returns the stage of an error, "" for none.
func stage(err error) publish.Stage {
	known := &publish.Error{}
	if errors.As(err, &known) {
		return known.Stage
	}
	if err != nil {
		return publish.Stage(err.Error())
	}
	return ""
}

// TestPublishElsewhere publishes to Knot DNS, BIND and PowerDNS.
func TestPublishElsewhere(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Log(needsServers)
		return
	}
	p := publish.New(onLoopback)
	for name, start := range map[string]func(t *testing.T) *serverOf{
		"knot":     startUpdatable,
		"bind":     func(t *testing.T) *serverOf { return startBIND(t, "allow-update { key ours; };") },
		"powerdns": startPowerDNS,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			publishes := func(c publish.Change, want ...string) {
				t.Helper()
				for range 2 { // the second time it is there already
					musttest.Do(t, p.Publish(t.Context(), s.target, c))
				}
				if got, _ := s.texts(t, c.Name); !slices.Equal(got, want) {
					t.Errorf("%s: got %q, want %q", c.Name, got, want)
				}
				if there, err := p.Published(t.Context(), s.target, c); !there || err != nil {
					t.Errorf("%s: got published %t, %v", c.Name, there, err)
				}
			}
			musttest.Do(t, p.Try(t.Context(), s.target, "_dmarc."+customer))
			if got, _ := s.texts(t, "_dmarc."+customer); !slices.Equal(got, []string{"v=DMARC1; p=none"}) {
				t.Errorf("a try changed the record to %q", got)
			}
			publishes(dmarcChange("v=DMARC1; p=reject", "v=DMARC1; p=none"), "v=DMARC1; p=reject")
			if err := p.Publish(t.Context(), s.target, dmarcChange("v=DMARC1; p=quarantine", "v=DMARC1; p=none")); stage(err) != publish.StageOther {
				t.Errorf("another base: got %v", err)
			}
			publishes(dmarcChange("v=DMARC1; p=quarantine", ""), "v=DMARC1; p=quarantine")

			long := "v=spf1 " + strings.Repeat("ip4:192.0.2.1 ", 40) + `include:a\b.example "-all"`
			apex := publish.Change{Domain: customer, Name: customer, Text: long, Ours: beginsWith("v=spf1")}
			escaped := strings.ReplaceAll(strings.ReplaceAll(long, `\`, `\\`), `"`, `\"`)
			publishes(apex, `token=\"a\" \\ b|second`, escaped[:255]+"|"+escaped[255:510]+"|"+escaped[510:])
			publishes(publish.Change{Domain: customer, Name: customer, Text: "v=spf1 ~all", Ours: apex.Ours}, `token=\"a\" \\ b|second`, "v=spf1 ~all")
			if _, ttl := s.texts(t, customer); ttl != 300 && ttl != 600 {
				t.Errorf("got the TTL %d, want that of the records before", ttl)
			}
			publishes(publish.Change{Domain: customer, Name: "_mta-sts." + customer, Text: "v=STSv1; id=1", Ours: beginsWith("v=STSv1")}, "v=STSv1; id=1")
			publishes(publish.Change{Domain: "a.wild." + customer, Name: "_dmarc.a.wild." + customer, Text: "v=DMARC1; p=none", Ours: beginsWith("v=DMARC1")}, "v=DMARC1; p=none")

			alias := publish.Change{Domain: customer, Name: "_smtp._tls." + customer, Text: "v=TLSRPTv1; rua=mailto:a@b.example", Ours: beginsWith("v=TLSRPTv1")}
			if err := p.Publish(t.Context(), s.target, alias); stage(err) != publish.StageAlias {
				t.Errorf("beside a CNAME record: got %v", err)
			}
			musttest.Do(t, p.Try(t.Context(), s.target, alias.Name))
			s.rejects(t, p)
			s.concurrent(t, p)
		})
	}
}

// rejects tries bad targets.
func (s *serverOf) rejects(t *testing.T, p *publish.Publisher) {
	t.Helper()
	for name, test := range map[string]struct {
		change func(*publish.Target)
		want   publish.Stage
		only   dmarcd.TargetKind
	}{
		"another zone":     {change: func(t *publish.Target) { t.Zone = "test" }, want: publish.StageZone},
		"a closed port":    {change: func(t *publish.Target) { t.Server = strings.Replace(t.Server, s.port(), "1", 1) }, want: publish.StageConnection},
		"another API key":  {change: func(t *publish.Target) { t.Key = "other" }, want: publish.StageKey, only: dmarcd.TargetPowerDNS},
		"another path":     {change: func(t *publish.Target) { t.Server += "/other" }, want: "", only: dmarcd.TargetPowerDNS},
		"another secret":   {change: func(t *publish.Target) { t.Key = "ours:" + base64.StdEncoding.EncodeToString(make([]byte, 32)) }, want: publish.StageKey, only: dmarcd.TargetRFC2136},
		"another key":      {change: func(t *publish.Target) { t.Key = "other:" + updateSecret }, want: publish.StageKey, only: dmarcd.TargetRFC2136},
		"no right":         {change: func(t *publish.Target) { t.Key = "others:" + updateSecret }, want: publish.StagePolicy, only: dmarcd.TargetRFC2136},
		"other algorithm":  {change: func(t *publish.Target) { t.Key = "hmac-sha512:ours:" + updateSecret }, want: publish.StageKey, only: dmarcd.TargetRFC2136},
		"a delegated name": {change: func(*publish.Target) {}, want: publish.StageZone, only: dmarcd.TargetRFC2136},
	} {
		if test.only != "" && test.only != s.target.Kind {
			continue
		}
		target, of := s.target, "_dmarc."+customer
		test.change(&target)
		if name == "a delegated name" {
			of = "_dmarc.below." + customer
		}
		if name == "no right" && strings.Contains(s.process.Log(), "Knot DNS") {
			test.want = publish.StageKey // it says the same about keys that it does not know
		}
		err := p.Try(t.Context(), target, of)
		if test.want != "" && stage(err) != test.want || err == nil {
			t.Errorf("%s: got %q, %v; want %s", name, stage(err), err, test.want)
		}
	}
}

func (s *serverOf) port() string {
	return s.target.Server[strings.LastIndexByte(s.target.Server, ':')+1:]
}

// concurrent has ten change the same set: dynamic updates lose none of them.
func (s *serverOf) concurrent(t *testing.T, p *publish.Publisher) {
	t.Helper()
	if s.target.Kind == dmarcd.TargetPowerDNS {
		return // it has no preconditions
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	var want []string
	for i := range 6 {
		all.Go(func() {
			text := fmt.Sprintf("token-%d", i)
			err := p.Publish(context.Background(), s.target, publish.Change{Domain: customer, Name: "many." + customer, Text: text, Ours: func(v string) bool { return v == text }})
			if err == nil {
				mu.Lock()
				defer mu.Unlock()
				want = append(want, text)
			} else if stage(err) != publish.StageAnswer {
				t.Error(err)
			}
		})
	}
	all.Wait()
	slices.Sort(want)
	if got, _ := s.texts(t, "many."+customer); !slices.Equal(got, want) || len(want) == 0 {
		t.Errorf("got %q, want what was confirmed: %q", got, want)
	}
}

// TestPublishWithUpdatePolicy has BIND grant some names only.
func TestPublishWithUpdatePolicy(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Log(needsServers)
		return
	}
	s := startBIND(t, "update-policy { grant ours name _dmarc.customer.test TXT; };")
	p := publish.New(onLoopback)
	musttest.Do(t, p.Try(t.Context(), s.target, "_dmarc."+customer))
	musttest.Do(t, p.Publish(t.Context(), s.target, dmarcChange("v=DMARC1; p=reject", "")))
	other := publish.Change{Domain: customer, Name: "_mta-sts." + customer, Text: "v=STSv1; id=1", Ours: beginsWith("v=STSv1")}
	if err := p.Publish(t.Context(), s.target, other); stage(err) != publish.StagePolicy {
		t.Errorf("got %v, want it refused", err)
	}
	if err := p.Try(t.Context(), s.target, other.Name); stage(err) != publish.StagePolicy {
		t.Errorf("a try: got %v, want it refused", err)
	}
	other.Name = "_dmarc.other.test"
	if err := p.Publish(t.Context(), s.target, other); stage(err) != publish.StageZone {
		t.Errorf("another domain: got %v, want it refused", err)
	}
}
