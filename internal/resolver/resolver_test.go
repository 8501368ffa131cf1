package resolver_test

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/resolver"
	"github.com/dmarcd/dmarcd/internal/resolver/resolvertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patient is a timeout that no test waits for.
const patient = 9 * time.Second

// brief is a timeout for tests in which a server stays silent. They run in a bubble, on
// connections in memory: otherwise a server that is slow because the machine is busy would
// seem silent too.
const brief = 100 * time.Millisecond

// inBubble runs a test in a bubble, with a function that starts servers in memory and one that
// returns a Resolver for them.
func inBubble(t *testing.T, test func(t *testing.T, start func(zone string) *resolvertest.Server, resolve func(config resolver.Config) *resolver.Resolver)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var servers []*resolvertest.Server
		test(t, func(zone string) *resolvertest.Server {
			s := resolvertest.Memory(t, fmt.Sprintf("192.0.2.%d:53", len(servers)+1), zone)
			servers = append(servers, s)
			return s
		}, func(config resolver.Config) *resolver.Resolver {
			config.Dial = resolvertest.Dial(servers...)
			return newResolver(t, config, servers...)
		})
	})
}

// newResolver returns a Resolver for the servers that is closed when the test
// ends.
func newResolver(t testing.TB, config resolver.Config, servers ...*resolvertest.Server) *resolver.Resolver {
	t.Helper()
	for _, s := range servers {
		config.Servers = append(config.Servers, s.Addr())
	}
	if config.Timeout == 0 {
		config.Timeout = patient
	}
	r := resolver.New(config)
	t.Cleanup(r.Close)
	return r
}

// text asks for TXT records.
func text(name string) dns.Question { return dns.Question{Name: name, Type: dns.TXT} }

// set replaces the zone of a server.
func set(t *testing.T, s *resolvertest.Server, zone string) {
	t.Helper()
	musttest.Do(t, s.Set(zone))
}

func TestResolve(t *testing.T) {
	t.Parallel()
	server := resolvertest.Start(t, `
		example.org. 500 SOA ns.example.org. admin.example.org. 1 2 3 4 90
		example.org. 600 MX 10 Mail.Example.org.
		example.org. 600 MX 20 mail2.example.org.
		example.org. 60 NS ns.example.org.
		null.example.org. MX 0 .
		mail.example.org. A 192.0.2.1
		mail.example.org. AAAA 2001:db8::1
		1.2.0.192.in-addr.arpa. PTR mail.example.org.
		_dmarc.example.org. 60 TXT "v=DMARC1; " "p=none"
		_dmarc.example.org. 60 TXT "second"
		_25._tcp.mail.example.org. TLSA 3 1 1 00FF
		moved.example.org. DNAME elsewhere.example.org.
		one.example.org. 100 CNAME Two.example.org.
		two.example.org. 50 CNAME mail.example.org.
		lost.example.org. 10 CNAME nowhere.example.org.
		empty.example.org. CNAME example.org.
	`)
	r := newResolver(t, resolver.Config{}, server)
	const ttl = 300 * time.Second
	tests := []struct {
		name string
		ask  dns.Question
		want dns.Answer
	}{
		{name: "TXT", ask: text("_dmarc.example.org"), want: dns.Answer{
			Outcome: dns.Data, TTL: time.Minute,
			Records: []dns.Record{
				{Name: "_dmarc.example.org", Type: dns.TXT, TTL: time.Minute, Text: []string{"v=DMARC1; ", "p=none"}},
				{Name: "_dmarc.example.org", Type: dns.TXT, TTL: time.Minute, Text: []string{"second"}},
			},
		}},
		{name: "MX", ask: dns.Question{Name: "example.org", Type: dns.MX}, want: dns.Answer{
			Outcome: dns.Data, TTL: 10 * time.Minute,
			Records: []dns.Record{
				{Name: "example.org", Type: dns.MX, TTL: 10 * time.Minute, Host: "mail.example.org", Preference: 10},
				{Name: "example.org", Type: dns.MX, TTL: 10 * time.Minute, Host: "mail2.example.org", Preference: 20},
			},
		}},
		{name: "null MX", ask: dns.Question{Name: "null.example.org", Type: dns.MX}, want: dns.Answer{
			Outcome: dns.Data, TTL: ttl,
			Records: []dns.Record{{Name: "null.example.org", Type: dns.MX, TTL: ttl}},
		}},
		{name: "NS", ask: dns.Question{Name: "example.org", Type: dns.NS}, want: dns.Answer{
			Outcome: dns.Data, TTL: time.Minute,
			Records: []dns.Record{{Name: "example.org", Type: dns.NS, TTL: time.Minute, Host: "ns.example.org"}},
		}},
		{name: "A", ask: dns.Question{Name: "mail.example.org", Type: dns.A}, want: dns.Answer{
			Outcome: dns.Data, TTL: ttl,
			Records: []dns.Record{{Name: "mail.example.org", Type: dns.A, TTL: ttl, Addr: netip.MustParseAddr("192.0.2.1")}},
		}},
		{name: "AAAA", ask: dns.Question{Name: "mail.example.org", Type: dns.AAAA}, want: dns.Answer{
			Outcome: dns.Data, TTL: ttl,
			Records: []dns.Record{{Name: "mail.example.org", Type: dns.AAAA, TTL: ttl, Addr: netip.MustParseAddr("2001:db8::1")}},
		}},
		{name: "PTR", ask: dns.Question{Name: "1.2.0.192.in-addr.arpa", Type: dns.PTR}, want: dns.Answer{
			Outcome: dns.Data, TTL: ttl,
			Records: []dns.Record{{Name: "1.2.0.192.in-addr.arpa", Type: dns.PTR, TTL: ttl, Host: "mail.example.org"}},
		}},
		{name: "DNAME", ask: dns.Question{Name: "moved.example.org", Type: dns.DNAME}, want: dns.Answer{
			Outcome: dns.Data, TTL: ttl,
			Records: []dns.Record{{Name: "moved.example.org", Type: dns.DNAME, TTL: ttl, Host: "elsewhere.example.org"}},
		}},
		{name: "TLSA as raw data", ask: dns.Question{Name: "_25._tcp.mail.example.org", Type: dns.TLSA}, want: dns.Answer{
			Outcome: dns.Data, TTL: ttl,
			Records: []dns.Record{{Name: "_25._tcp.mail.example.org", Type: dns.TLSA, TTL: ttl, Raw: []byte{3, 1, 1, 0x00, 0xff}}},
		}},
		{name: "CNAME itself", ask: dns.Question{Name: "one.example.org", Type: dns.CNAME}, want: dns.Answer{
			Outcome: dns.Data, TTL: 100 * time.Second,
			Records: []dns.Record{{Name: "one.example.org", Type: dns.CNAME, TTL: 100 * time.Second, Host: "two.example.org"}},
		}},
		{name: "aliases", ask: dns.Question{Name: "one.example.org", Type: dns.A}, want: dns.Answer{
			Outcome: dns.Data, TTL: 50 * time.Second, Aliases: []string{"two.example.org", "mail.example.org"},
			Records: []dns.Record{{Name: "mail.example.org", Type: dns.A, TTL: ttl, Addr: netip.MustParseAddr("192.0.2.1")}},
		}},
		{name: "alias of a missing name", ask: dns.Question{Name: "lost.example.org", Type: dns.A}, want: dns.Answer{
			Outcome: dns.NoSuchName, TTL: 10 * time.Second, Aliases: []string{"nowhere.example.org"},
		}},
		{name: "alias of a name without the type", ask: text("empty.example.org"), want: dns.Answer{
			Outcome: dns.NoData, TTL: 90 * time.Second, Aliases: []string{"example.org"},
		}},
		{name: "no data", ask: text("mail.example.org"), want: dns.Answer{Outcome: dns.NoData, TTL: 90 * time.Second}},
		{name: "empty non-terminal", ask: text("_tcp.mail.example.org"), want: dns.Answer{Outcome: dns.NoData, TTL: 90 * time.Second}},
		{name: "no such name", ask: text("no.example.org"), want: dns.Answer{Outcome: dns.NoSuchName, TTL: 90 * time.Second}},
		{name: "root", ask: dns.Question{Name: "", Type: dns.NS}, want: dns.Answer{Outcome: dns.NoData, TTL: time.Minute}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.want.Question = test.ask
			got := r.Resolve(t.Context(), test.ask)
			if diff := cmp.Diff(test.want, got, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}

func TestQuestionIsNormalized(t *testing.T) {
	t.Parallel()
	server := resolvertest.Start(t, `a.example.org. TXT "x"`)
	r := newResolver(t, resolver.Config{}, server)
	got := r.Resolve(t.Context(), text("A.Example.ORG."))
	if got.Outcome != dns.Data || got.Name != "a.example.org" {
		t.Errorf("got %s for %q want data for a.example.org", got.Outcome, got.Name)
	}
}

func TestNamesThatCannotExist(t *testing.T) {
	t.Parallel()
	server := resolvertest.Start(t, "")
	r := newResolver(t, resolver.Config{}, server)
	label := strings.Repeat("a", 63)
	longest := strings.Join([]string{label, label, label, label[:61]}, ".")
	tests := []struct {
		name  string
		ask   string
		asked int
	}{
		{name: "253 characters", ask: longest, asked: 1},
		{name: "254 characters", ask: longest + "a", asked: 0},
		{name: "label of 63", ask: label + ".example.org", asked: 1},
		{name: "label of 64", ask: label + "a.example.org", asked: 0},
		{name: "empty label", ask: "a..example.org", asked: 0},
		{name: "empty first label", ask: ".example.org", asked: 0},
		{name: "backslash at the end", ask: `example.org\`, asked: 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := r.Resolve(t.Context(), text(test.ask))
			if got.Outcome != dns.NoSuchName {
				t.Errorf("got %s (%s) want %s", got.Outcome, got.Reason, dns.NoSuchName)
			}
			if asked := server.Asked(test.ask, dns.TXT); asked != test.asked {
				t.Errorf("got %d questions want %d", asked, test.asked)
			}
		})
	}
}

func TestNameWithReservedOctets(t *testing.T) {
	t.Parallel()
	server := resolvertest.Start(t, `
		it\'s\ me\@.example.org. TXT "found"
		alias.example.org. CNAME it\'s\ me\@.example.org.
	`)
	r := newResolver(t, resolver.Config{}, server)
	for _, name := range []string{"it's me@.example.org", `it\'s\ me\@.example.org`, "alias.example.org"} {
		if got := r.Resolve(t.Context(), text(name)).Texts(); len(got) != 1 || got[0] != "found" {
			t.Errorf("%s: got %q want found", name, got)
		}
	}
}

func TestAuthentic(t *testing.T) {
	t.Parallel()
	const zone = `a.example.org. TXT "x"`
	server := resolvertest.Start(t, zone)
	r := newResolver(t, resolver.Config{}, server).Fresh()
	if got := r.Resolve(t.Context(), text("a.example.org")); got.Authentic {
		t.Error("got authentic from a server that does not validate")
	}
	server.SetAuthentic(true)
	for _, name := range []string{"a.example.org", "no.example.org"} {
		if got := r.Resolve(t.Context(), text(name)); !got.Authentic {
			t.Errorf("%s: got not authentic from a server that validates", name)
		}
	}
}

func TestObserve(t *testing.T) {
	t.Parallel()
	server := resolvertest.Start(t, `a.example.org. TXT "x"`)
	server.SetFault("bad.example.org", resolvertest.ServFail)
	var outcomes []dns.Outcome
	r := newResolver(t, resolver.Config{Observe: func(outcome dns.Outcome, took time.Duration) {
		outcomes = append(outcomes, outcome)
		if took <= 0 || took > patient {
			t.Errorf("got a question of %s want one of this test", took)
		}
	}}, server)
	for _, name := range []string{"a.example.org", "a.example.org", "no.example.org", "bad.example.org", "a..b"} {
		r.Resolve(t.Context(), text(name))
	}
	want := []dns.Outcome{dns.Data, dns.NoSuchName, dns.Inconclusive}
	if diff := cmp.Diff(want, outcomes); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
}

func TestClosedResolver(t *testing.T) {
	t.Parallel()
	server := resolvertest.Start(t, "")
	r := newResolver(t, resolver.Config{}, server)
	release := server.Hold("a.example.org")
	defer release()
	answers := make(chan dns.Answer, 1)
	go func() { answers <- r.Resolve(context.Background(), text("a.example.org")) }()
	musttest.Do(t, server.Await(t.Context(), "a.example.org", dns.TXT, 1))
	r.Close()
	if got := <-answers; got.Outcome != dns.Inconclusive || got.Reason == "" {
		t.Errorf("under way: got %s, reason %q want inconclusive with a reason", got.Outcome, got.Reason)
	}
	if got := r.Resolve(t.Context(), text("b.example.org")); got.Outcome != dns.Inconclusive || !strings.Contains(got.Reason, "closed") {
		t.Errorf("after Close: got %s, reason %q want inconclusive because it is closed", got.Outcome, got.Reason)
	}
}

func TestSystemServers(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "resolv.conf")
	musttest.Do(t, os.WriteFile(path, []byte("search example.org\nnameserver 192.0.2.53\nnameserver 2001:db8::53\n"), 0o600))
	r := resolver.New(resolver.Config{ResolvConf: path})
	defer r.Close()
	if err := r.Err(); err != nil {
		t.Errorf("got error %v want none", err)
	}
	if got, want := r.Servers(), []string{"192.0.2.53:53", "[2001:db8::53]:53"}; !slices.Equal(got, want) {
		t.Errorf("got servers %q want %q", got, want)
	}
}

func TestNoServer(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	empty := filepath.Join(folder, "empty.conf")
	musttest.Do(t, os.WriteFile(empty, []byte("search example.org\n"), 0o600))
	tests := []struct {
		name    string
		config  resolver.Config
		message string
	}{
		{name: "no file", config: resolver.Config{ResolvConf: filepath.Join(folder, "missing.conf")}, message: "set DMARCD_DNS"},
		{name: "file without servers", config: resolver.Config{ResolvConf: empty}, message: "set DMARCD_DNS"},
		{name: "no port", config: resolver.Config{Servers: []string{"192.0.2.53"}}, message: `"192.0.2.53" is not a host:port`},
		{name: "no host", config: resolver.Config{Servers: []string{":53"}}, message: `":53" is not a host:port`},
		{name: "port 0", config: resolver.Config{Servers: []string{"192.0.2.53:0"}}, message: `"192.0.2.53:0" is not a host:port`},
		{name: "port too large", config: resolver.Config{Servers: []string{"192.0.2.53:65536"}}, message: `"192.0.2.53:65536" is not a host:port`},
		{name: "one bad among good", config: resolver.Config{Servers: []string{"192.0.2.53:53", "192.0.2.54"}}, message: `"192.0.2.54" is not a host:port`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := resolver.New(test.config)
			defer r.Close()
			if err := r.Err(); err == nil || !strings.Contains(err.Error(), test.message) {
				t.Errorf("got error %v want one that says %s", err, test.message)
			}
			got := r.Resolve(t.Context(), text("example.org"))
			if got.Outcome != dns.Inconclusive || !strings.Contains(got.Reason, test.message) {
				t.Errorf("got %s, reason %q want inconclusive with a reason that says %s", got.Outcome, got.Reason, test.message)
			}
		})
	}
}
