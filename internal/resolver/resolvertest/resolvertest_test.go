package resolvertest_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	mdns "github.com/miekg/dns"
	"go.uber.org/goleak"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/resolver/resolvertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// exchange sends one query over a transport and returns the reply.
func exchange(t *testing.T, s *resolvertest.Server, over resolvertest.Transport, name string, typ uint16) *mdns.Msg {
	t.Helper()
	client := mdns.Client{Net: string(over)}
	query := new(mdns.Msg).SetQuestion(name, typ)
	reply, _, err := client.ExchangeContext(t.Context(), query, s.Addr())
	if err != nil {
		t.Fatalf("ask for %s: %v", name, err)
	}
	return reply
}

// lines returns records in text form with single blanks.
func lines(records []mdns.RR) []string {
	var texts []string
	for _, rr := range records {
		texts = append(texts, strings.Join(strings.Fields(rr.String()), " "))
	}
	return texts
}

func TestAnswersFromZone(t *testing.T) {
	t.Parallel()
	const rootSOA = ". 300 IN SOA ns.invalid. hostmaster.invalid. 1 3600 600 86400 60"
	const orgSOA = "example.org. 20 IN SOA ns.example.org. admin.example.org. 1 2 3 4 10"
	server := resolvertest.Start(t, `
		example.org. 20 SOA ns.example.org. admin.example.org. 1 2 3 4 10
		_dmarc.example.org. 60 IN TXT "v=DMARC1; p=none"
		*.wild.example.org. TXT "any"
		below.here.wild.example.org. TXT "hides the wildcard at here"
		one.example.net. CNAME two.example.net.
		two.example.net. CNAME Target.example.net.
		target.example.net. A 192.0.2.1
		lost.example.net. CNAME nowhere.example.net.
		bare.example.net. CNAME here.wild.example.org.
		round.example.net. CNAME about.example.net.
		about.example.net. CNAME round.example.net.
	`)
	tests := []struct {
		name      string
		ask       string
		typ       uint16
		code      int
		answer    []string
		authority []string
	}{
		{name: "record", ask: "_dmarc.example.org.", typ: mdns.TypeTXT, answer: []string{`_dmarc.example.org. 60 IN TXT "v=DMARC1; p=none"`}},
		{name: "case does not matter", ask: "_DMARC.Example.org.", typ: mdns.TypeTXT, answer: []string{`_dmarc.example.org. 60 IN TXT "v=DMARC1; p=none"`}},
		{name: "other type", ask: "_dmarc.example.org.", typ: mdns.TypeA, authority: []string{orgSOA}},
		{name: "missing name", ask: "no.example.org.", typ: mdns.TypeA, code: mdns.RcodeNameError, authority: []string{orgSOA}},
		{name: "missing name under the root alone", ask: "no.example.com.", typ: mdns.TypeA, code: mdns.RcodeNameError, authority: []string{rootSOA}},
		{name: "empty non-terminal", ask: "example.net.", typ: mdns.TypeA, authority: []string{rootSOA}},
		{name: "root", ask: ".", typ: mdns.TypeNS, authority: []string{rootSOA}},
		{name: "wildcard", ask: "a.b.wild.example.org.", typ: mdns.TypeTXT, answer: []string{`a.b.wild.example.org. 300 IN TXT "any"`}},
		{name: "wildcard without the type", ask: "a.wild.example.org.", typ: mdns.TypeA, authority: []string{orgSOA}},
		{name: "name that hides the wildcard", ask: "here.wild.example.org.", typ: mdns.TypeTXT, authority: []string{orgSOA}},
		{name: "wildcard does not reach below that name", ask: "x.here.wild.example.org.", typ: mdns.TypeTXT, code: mdns.RcodeNameError, authority: []string{orgSOA}},
		{name: "aliases", ask: "one.example.net.", typ: mdns.TypeA, answer: []string{
			"one.example.net. 300 IN CNAME two.example.net.",
			"two.example.net. 300 IN CNAME Target.example.net.",
			"target.example.net. 300 IN A 192.0.2.1",
		}},
		{name: "alias itself", ask: "one.example.net.", typ: mdns.TypeCNAME, answer: []string{"one.example.net. 300 IN CNAME two.example.net."}},
		{name: "alias of a missing name", ask: "lost.example.net.", typ: mdns.TypeA, code: mdns.RcodeNameError, answer: []string{
			"lost.example.net. 300 IN CNAME nowhere.example.net.",
		}, authority: []string{rootSOA}},
		{name: "alias of a name without the type", ask: "bare.example.net.", typ: mdns.TypeA, answer: []string{
			"bare.example.net. 300 IN CNAME here.wild.example.org.",
		}, authority: []string{orgSOA}},
	}
	for _, test := range tests {
		for _, over := range []resolvertest.Transport{resolvertest.UDP, resolvertest.TCP} {
			t.Run(test.name+" over "+string(over), func(t *testing.T) {
				t.Parallel()
				reply := exchange(t, server, over, test.ask, test.typ)
				if reply.Rcode != test.code {
					t.Errorf("got code %s want %s", mdns.RcodeToString[reply.Rcode], mdns.RcodeToString[test.code])
				}
				if diff := cmp.Diff(test.answer, lines(reply.Answer)); diff != "" {
					t.Errorf("answer section (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(test.authority, lines(reply.Ns)); diff != "" {
					t.Errorf("authority section (-want +got):\n%s", diff)
				}
			})
		}
	}
	t.Run("circle of aliases", func(t *testing.T) {
		t.Parallel()
		reply := exchange(t, server, resolvertest.TCP, "round.example.net.", mdns.TypeA)
		if len(reply.Answer) < 3 {
			t.Errorf("got %d records want the circle to be sent more than once around", len(reply.Answer))
		}
	})
}

func TestBigAnswerIsTruncatedOverUDP(t *testing.T) {
	t.Parallel()
	var zone strings.Builder
	for i := range 40 {
		fmt.Fprintf(&zone, "big.example.org. TXT \"%d %s\"\n", i, strings.Repeat("x", 200))
	}
	server := resolvertest.Start(t, zone.String())
	if reply := exchange(t, server, resolvertest.UDP, "big.example.org.", mdns.TypeTXT); !reply.Truncated || reply.Len() > mdns.MinMsgSize {
		t.Errorf("over UDP got truncated %t, %d bytes want true, at most %d", reply.Truncated, reply.Len(), mdns.MinMsgSize)
	}
	if reply := exchange(t, server, resolvertest.TCP, "big.example.org.", mdns.TypeTXT); reply.Truncated || len(reply.Answer) != 40 {
		t.Errorf("over TCP got truncated %t, %d records want false, 40", reply.Truncated, len(reply.Answer))
	}
}

func TestSet(t *testing.T) {
	t.Parallel()
	server := resolvertest.Start(t, `a.example.org. TXT "old"`)
	if err := server.Set(`a.example.org. TXT "new"`); err != nil {
		t.Fatalf("got %v want no error", err)
	}
	if err := server.Set("a.example.org. NO-SUCH-TYPE x"); err == nil {
		t.Error("got no error for a bad zone text")
	}
	want := []string{`a.example.org. 300 IN TXT "new"`}
	if diff := cmp.Diff(want, lines(exchange(t, server, resolvertest.UDP, "a.example.org.", mdns.TypeTXT).Answer)); diff != "" {
		t.Errorf("answer section (-want +got):\n%s", diff)
	}
}

func TestCounts(t *testing.T) {
	t.Parallel()
	server := resolvertest.Start(t, "")
	exchange(t, server, resolvertest.UDP, "a.example.org.", mdns.TypeTXT)
	exchange(t, server, resolvertest.UDP, "A.example.org.", mdns.TypeTXT)
	exchange(t, server, resolvertest.TCP, "a.example.org.", mdns.TypeTXT)
	exchange(t, server, resolvertest.UDP, "a.example.org.", mdns.TypeA)
	if got := server.AskedOver(resolvertest.UDP, "a.example.org", dns.TXT); got != 2 {
		t.Errorf("over UDP got %d want 2", got)
	}
	if got := server.AskedOver(resolvertest.TCP, "a.example.org", dns.TXT); got != 1 {
		t.Errorf("over TCP got %d want 1", got)
	}
	if got := server.Asked("a.example.org", dns.TXT); got != 3 {
		t.Errorf("over both got %d want 3", got)
	}
	if got := server.Total(); got != 4 {
		t.Errorf("in all got %d want 4", got)
	}
	if err := server.Await(t.Context(), "a.example.org", dns.TXT, 3); err != nil {
		t.Errorf("await what has come: got %v want no error", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := server.Await(ended, "a.example.org", dns.TXT, 4); !errors.Is(err, context.Canceled) {
		t.Errorf("await what never comes: got %v want %v", err, context.Canceled)
	}
}

func TestHold(t *testing.T) {
	t.Parallel()
	server := resolvertest.Start(t, `a.example.org. TXT "old"`)
	release := server.Hold("a.example.org")
	replies := make(chan *mdns.Msg, 1)
	go func() {
		query := new(mdns.Msg).SetQuestion("a.example.org.", mdns.TypeTXT)
		reply, _, _ := new(mdns.Client).Exchange(query, server.Addr())
		replies <- reply
	}()
	musttest.Do(t, server.Await(t.Context(), "a.example.org", dns.TXT, 1))
	musttest.Do(t, server.Set(`a.example.org. TXT "set while the question was held"`))
	release()
	release() // again does nothing
	reply := <-replies
	if reply == nil {
		t.Fatal("got no reply after the release")
	}
	want := []string{`a.example.org. 300 IN TXT "set while the question was held"`}
	if diff := cmp.Diff(want, lines(reply.Answer)); diff != "" {
		t.Errorf("answer section (-want +got):\n%s", diff)
	}
}

func TestListenRejectsBadAddress(t *testing.T) {
	t.Parallel()
	if server, err := resolvertest.Listen("no port"); err == nil {
		server.Close()
		t.Error("got no error for an address without a port")
	}
}

func TestCloseWithHeldQuestion(t *testing.T) {
	t.Parallel()
	server := musttest.Get(resolvertest.Listen("127.0.0.1:0"))(t)
	server.Hold("a.example.org")
	query := musttest.Get(new(mdns.Msg).SetQuestion("a.example.org.", mdns.TypeTXT).Pack())(t)
	conn := musttest.Get(net.Dial("udp", server.Addr()))(t)
	defer func() { _ = conn.Close() }() // nothing is read from it
	musttest.Get(conn.Write(query))(t)
	if err := server.Await(t.Context(), "a.example.org", dns.TXT, 1); err != nil {
		t.Error(err)
	}
	server.Close()
	server.Close() // again does nothing
}
