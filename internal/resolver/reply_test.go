package resolver_test

import (
	"encoding/binary"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/resolver"
	"github.com/dmarcd/dmarcd/internal/resolver/resolvertest"
)

// chain returns a zone in which n0 leads to the records over so many aliases.
func chain(aliases int) string {
	var zone strings.Builder
	for i := range aliases {
		fmt.Fprintf(&zone, "n%d.example.org. CNAME n%d.example.org.\n", i, i+1)
	}
	fmt.Fprintf(&zone, "n%d.example.org. TXT \"end\"\n", aliases)
	return zone.String()
}

func TestAliasLimits(t *testing.T) {
	t.Parallel()
	const circle = `
		n0.example.org. CNAME n1.example.org.
		n1.example.org. CNAME n2.example.org.
		n2.example.org. CNAME n1.example.org.`
	tests := []struct {
		name   string
		zone   string
		want   dns.Outcome
		reason string
	}{
		{name: "one", zone: chain(1), want: dns.Data},
		{name: "eight", zone: chain(8), want: dns.Data},
		{name: "nine", zone: chain(9), reason: "n0.example.org has more than 8 aliases in a row"},
		{name: "circle", zone: circle, reason: "the aliases of n0.example.org lead in a circle"},
		{name: "alias of itself", zone: "n0.example.org. CNAME n0.example.org.", reason: "the aliases of n0.example.org lead in a circle"},
	}
	for _, test := range tests {
		for _, whole := range []bool{true, false} {
			name := test.name + " in one reply"
			if !whole {
				name = test.name + " in a reply each"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				server := resolvertest.Start(t, test.zone)
				if !whole {
					server.SetFault("*", resolvertest.OneAlias)
				}
				got := newResolver(t, resolver.Config{}, server).Resolve(t.Context(), text("n0.example.org"))
				if got.Outcome != test.want || got.Reason != test.reason {
					t.Errorf("got %s, reason %q want %s, %q", got.Outcome, got.Reason, test.want, test.reason)
				}
			})
		}
	}
}

func TestChainWithoutTarget(t *testing.T) {
	t.Parallel()
	server := resolvertest.Start(t, `
		a.example.org. 50 CNAME b.example.net.
		b.example.net. 40 CNAME c.example.net.
		c.example.net. 30 TXT "x"
		lost.example.org. 5 CNAME nowhere.example.net.
	`)
	server.SetFault("a.example.org", resolvertest.OneAlias)
	server.SetFault("lost.example.org", resolvertest.OneAlias)
	r := newResolver(t, resolver.Config{}, server)

	got := r.Resolve(t.Context(), text("a.example.org"))
	if want := []string{"b.example.net", "c.example.net"}; got.Outcome != dns.Data || !slices.Equal(got.Aliases, want) || got.TTL != 30*time.Second {
		t.Errorf("got %s over %q for %s want data over %q for 30s", got.Outcome, got.Aliases, got.TTL, want)
	}
	if got := server.Asked("b.example.net", dns.TXT); got != 1 {
		t.Errorf("got %d questions for the target want 1", got)
	}

	got = r.Resolve(t.Context(), text("lost.example.org"))
	if want := []string{"nowhere.example.net"}; got.Outcome != dns.NoSuchName || !slices.Equal(got.Aliases, want) || got.TTL != 5*time.Second {
		t.Errorf("got %s over %q for %s want no such name over %q for 5s", got.Outcome, got.Aliases, got.TTL, want)
	}
}

func TestChainIsAuthenticOnlyAsAWhole(t *testing.T) {
	t.Parallel()
	server := resolvertest.Start(t, `
		a.example.org. CNAME b.example.net.
		b.example.net. TXT "x"
	`)
	server.SetAuthentic(true)
	server.SetFault("a.example.org", resolvertest.OneAlias) // this fault does not set the AD bit
	got := newResolver(t, resolver.Config{}, server).Resolve(t.Context(), text("a.example.org"))
	if got.Outcome != dns.Data || got.Authentic {
		t.Errorf("got %s, authentic %t want data, not authentic", got.Outcome, got.Authentic)
	}
}

// TestTextIsExact sends any octets through a zone, a server and the resolver.
func TestTextIsExact(t *testing.T) {
	t.Parallel()
	server := resolvertest.Start(t, "")
	r := newResolver(t, resolver.Config{}, server).Fresh()
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 0, 60), 1, 4).Draw(t, "strings")
		zone := "a.example.org. TXT"
		for _, octets := range want {
			zone += ` "`
			for _, octet := range octets {
				zone += fmt.Sprintf(`\%03d`, octet)
			}
			zone += `"`
		}
		musttest.Do(t, server.Set(zone))
		got := r.Resolve(t.Context(), text("a.example.org"))
		if len(got.Records) != 1 || len(got.Records[0].Text) != len(want) {
			t.Fatalf("got %d records (%s) want one of %d strings", len(got.Records), got.Reason, len(want))
		}
		for i, octets := range want {
			if got.Records[0].Text[i] != string(octets) {
				t.Errorf("string %d: got %q want %q", i, got.Records[0].Text[i], octets)
			}
		}
	})
}

// FuzzReply lets a server send any octets after the id of the query. Whatever
// they are, the answer must be one that package dns allows.
func FuzzReply(f *testing.F) {
	const question = "\x01a\x00\x00\x10\x00\x01"
	f.Add([]byte("\x81\x80\x00\x01\x00\x01\x00\x00\x00\x00" + question + "\xc0\x0c\x00\x10\x00\x01\x00\x00\x00\x3c\x00\x04\x03x\\y"))
	f.Add([]byte("\x81\x80\x00\x01\x00\x01\x00\x00\x00\x00" + question + "\xc0\x0c\x00\x05\x00\x01\x00\x00\x00\x3c\x00\x02\xc0\x0c"))
	f.Add([]byte("\x81\x80\x00\x01\x00\x01\x00\x00\x00\x00" + question + "\xc0\x0c\x00\x10\x00\x01\x00\x00\x00\x3c\x00\x00"))
	f.Add([]byte("\x81\x83\x00\x01\x00\x00\x00\x00\x00\x00" + question))
	f.Add([]byte("\x83\x80\x00\x01\x00\x00\x00\x00\x00\x00" + question))
	f.Add([]byte("\x81\x81\x00\x00\x00\x00\x00\x00\x00\x00"))
	f.Add([]byte{})

	server := newEcho(f)
	r := resolver.New(resolver.Config{Servers: []string{server.conn.LocalAddr().String()}, Timeout: 5 * time.Millisecond, Attempts: 1})
	f.Cleanup(r.Close)
	f.Fuzz(func(t *testing.T, afterID []byte) {
		server.replies <- afterID
		got := r.Fresh().Resolve(t.Context(), text("a"))
		select { // the packet of the query may not have been read in time
		case <-server.replies:
		default:
		}
		if (got.Outcome == dns.Data) != (len(got.Records) > 0) {
			t.Errorf("got %s with %d records", got.Outcome, len(got.Records))
		}
		if (got.Outcome == dns.Inconclusive) != (got.Reason != "") {
			t.Errorf("got %s with reason %q", got.Outcome, got.Reason)
		}
		if got.TTL < 0 || got.TTL > 24*time.Hour || len(got.Aliases) > 8 {
			t.Errorf("got TTL %s and %d aliases", got.TTL, len(got.Aliases))
		}
		for _, record := range got.Records {
			if record.Type != dns.TXT || record.Name != strings.ToLower(record.Name) || len(record.Text) == 0 {
				t.Errorf("got record %+v", record)
			}
		}
	})
}

// echo replies to every query with its id and what comes from the channel.
type echo struct {
	conn    net.PacketConn
	replies chan []byte
}

func newEcho(t testing.TB) echo {
	t.Helper()
	conn := musttest.Get(net.ListenPacket("udp", "127.0.0.1:0"))(t)
	e := echo{conn: conn, replies: make(chan []byte, 1)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		e.serve()
	}()
	t.Cleanup(func() {
		_ = conn.Close() // ends serve
		<-ended
	})
	return e
}

func (e echo) serve() {
	query := make([]byte, 512)
	for {
		n, from, err := e.conn.ReadFrom(query)
		if err != nil {
			return
		}
		if n < 2 {
			continue
		}
		select {
		case afterID := <-e.replies:
			reply := binary.BigEndian.AppendUint16(nil, binary.BigEndian.Uint16(query))
			_, _ = e.conn.WriteTo(append(reply, afterID...), from) // the client may be gone
		default:
		}
	}
}
