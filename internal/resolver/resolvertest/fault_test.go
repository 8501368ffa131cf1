package resolvertest_test

import (
	"fmt"
	"net"
	"strings"
	"testing"

	mdns "github.com/miekg/dns"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/resolver/resolvertest"
)

// dial returns a UDP connection to a server.
func dial(t *testing.T, s *resolvertest.Server) *mdns.Conn {
	t.Helper()
	conn := musttest.Get(net.Dial("udp", s.Addr()))(t)
	t.Cleanup(func() { _ = conn.Close() })
	return &mdns.Conn{Conn: conn, UDPSize: mdns.MaxMsgSize}
}

// ask sends a query and returns it.
func ask(t *testing.T, conn *mdns.Conn, name string) *mdns.Msg {
	t.Helper()
	query := new(mdns.Msg).SetQuestion(name, mdns.TypeTXT)
	musttest.Do(t, conn.WriteMsg(query))
	return query
}

// repliesTo reads so many replies and returns how often each id was among them.
func repliesTo(t *testing.T, conn *mdns.Conn, replies int) map[uint16]int {
	t.Helper()
	ids := map[uint16]int{}
	for range replies {
		reply := musttest.Get(conn.ReadMsg())(t)
		ids[reply.Id]++
	}
	return ids
}

func TestFaultsOfOneQuestion(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		fault resolvertest.Fault
		first int // replies to the first question
	}{
		{name: "drop once", fault: resolvertest.DropOnce, first: 0},
		{name: "late", fault: resolvertest.Late, first: 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			server := resolvertest.Start(t, `a.example.org. TXT "x"`)
			server.SetFault("a.example.org", test.fault)
			conn := dial(t, server)

			first := ask(t, conn, "a.example.org.")
			musttest.Do(t, server.Await(t.Context(), "a.example.org", dns.TXT, 1))
			second := ask(t, conn, "a.example.org.")
			got := repliesTo(t, conn, 1+test.first)
			if got[first.Id] != test.first || got[second.Id] != 1 {
				t.Errorf("got %d replies to the first and %d to the second question want %d and 1", got[first.Id], got[second.Id], test.first)
			}
			third := ask(t, conn, "a.example.org.")
			if got := repliesTo(t, conn, 1); got[third.Id] != 1 {
				t.Errorf("got %v want one reply to the third question", got)
			}
		})
	}
}

func TestCloseWithLateReply(t *testing.T) {
	t.Parallel()
	server := resolvertest.Start(t, "")
	server.SetFault("a.example.org", resolvertest.Late)
	ask(t, dial(t, server), "a.example.org.")
	musttest.Do(t, server.Await(t.Context(), "a.example.org", dns.TXT, 1))
	server.Close() // hangs, or leaks what goleak finds, if the reply is still waited for
}

func TestOversize(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name      string
		texts     int // of 200 octets
		truncated bool
	}{
		{name: "below 4,096 bytes", texts: 18, truncated: false},
		{name: "above 4,096 bytes", texts: 20, truncated: true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var zone strings.Builder
			for i := range test.texts {
				fmt.Fprintf(&zone, "big.example.org. TXT \"%03d%s\"\n", i, strings.Repeat("x", 197))
			}
			server := resolvertest.Start(t, zone.String())
			server.SetFault("big.example.org", resolvertest.Oversize)
			conn := dial(t, server)
			ask(t, conn, "big.example.org.")
			reply := musttest.Get(conn.ReadMsg())(t)
			if whole := len(reply.Answer) == test.texts; reply.Truncated != test.truncated || whole == test.truncated {
				t.Errorf("got truncated %t with %d records want %t", reply.Truncated, len(reply.Answer), test.truncated)
			}
		})
	}
}
