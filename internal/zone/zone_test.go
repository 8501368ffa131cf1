package zone_test

import (
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	mdns "github.com/miekg/dns"
	"go.uber.org/goleak"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/zone"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	apex  = "dns.example.net"
	first = 1000 // the serial at the start
)

// client is the address of the client of tests without a network.
var client = netip.MustParseAddr("192.0.2.7")

// servers are name servers outside and inside of the zone.
func servers() []zone.Nameserver {
	return []zone.Nameserver{
		{Name: "ns1.example.org"},
		{Name: "a.ns." + apex, Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")}},
	}
}

// newZone returns a zone with records of all kinds.
func newZone(t testing.TB) *zone.Zone {
	t.Helper()
	z := musttest.Get(zone.New(apex, first, servers()))(t)
	at := func(label string, records ...zone.Record) zone.Change {
		return zone.Change{Name: label + "." + apex, Records: records}
	}
	text := func(data string) zone.Record { return zone.Record{Type: dns.TXT, Data: data} }
	musttest.Do(t, z.Load([]zone.Change{
		at("text", text("v=DMARC1; p=none")),
		at("Odd", text(`back\slash "quoted" \065`+"\x00\xff")),
		at("long", text(strings.Repeat("0123456789", 60))),
		at("huge", text(strings.Repeat("0123456789", 130))),
		at("many", text("one"), text("two"), zone.Record{Type: dns.A, Data: "192.0.2.80"}, zone.Record{Type: dns.AAAA, Data: "2001:db8::80"},
			zone.Record{Type: zone.CAA, Data: `0 issue "ca.example"`}),
		at("alias", zone.Record{Type: dns.CNAME, Data: "text." + apex}),
		at("far", zone.Record{Type: dns.CNAME, Data: "www.example.com"}),
		at("gone", zone.Record{Type: dns.CNAME, Data: "missing." + apex}),
		at("circle", zone.Record{Type: dns.CNAME, Data: "circle." + apex}),
		at("deep.below.ent", text("deep")),
	}))
	return z
}

func newServer(t testing.TB, z *zone.Zone, secondaries ...zone.Secondary) *zone.Server {
	t.Helper()
	return zone.NewUnbound(zone.Options{Zone: z, Secondaries: secondaries, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
}

// ask sends a message to a server without a network, and returns the only answer, nil for none.
func ask(t testing.TB, s *zone.Server, query *mdns.Msg, stream bool) *mdns.Msg {
	t.Helper()
	replies := s.Respond(musttest.Get(query.Pack())(t), client, stream)
	if len(replies) == 0 {
		return nil
	}
	reply := new(mdns.Msg)
	musttest.Do(t, reply.Unpack(replies[0]))
	return reply
}

// lines returns records in presentation format, without TTL and class.
func lines(records []mdns.RR) []string {
	var all []string
	for _, rr := range records {
		if rr.Header().Rrtype != mdns.TypeOPT && rr.Header().Rrtype != mdns.TypeTSIG {
			all = append(all, rr.Header().Name+" "+mdns.TypeToString[rr.Header().Rrtype]+strings.TrimPrefix(rr.String(), rr.Header().String()[:len(rr.Header().String())-1]))
		}
	}
	return all
}

func compact(records []mdns.RR) string {
	var all []string
	for _, line := range lines(records) {
		all = append(all, strings.ReplaceAll(strings.ReplaceAll(line, "."+apex+".", "."), "\t", " "))
	}
	return strings.Join(all, " | ")
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	s := newServer(t, newZone(t))
	const soa = "dns.example.net. SOA ns1.example.org. hostmaster. 1000 900 300 2419200 60"
	for _, test := range []struct {
		name, ask string
		of        uint16
		rcode     int
		want      string // answers
		authority string
		extra     string
	}{
		{name: "text", ask: "text", of: mdns.TypeTXT, want: `text. TXT "v=DMARC1; p=none"`},
		{name: "in upper case", ask: "TEXT", of: mdns.TypeTXT, want: `text. TXT "v=DMARC1; p=none"`},
		{name: "octets that a zone file escapes", ask: "odd", of: mdns.TypeTXT, want: `odd. TXT "back\\slash \"quoted\" \\065\000\255"`},
		{name: "text in strings", ask: "long", of: mdns.TypeTXT, want: `long. TXT "` + strings.Repeat("0123456789", 60)[:255] + `" "` +
			strings.Repeat("0123456789", 60)[255:510] + `" "` + strings.Repeat("0123456789", 60)[510:] + `"`},
		{name: "several records", ask: "many", of: mdns.TypeTXT, want: `many. TXT "one" | many. TXT "two"`},
		{name: "A", ask: "many", of: mdns.TypeA, want: "many. A 192.0.2.80"},
		{name: "AAAA", ask: "many", of: mdns.TypeAAAA, want: "many. AAAA 2001:db8::80"},
		{name: "CAA", ask: "many", of: mdns.TypeCAA, want: `many. CAA 0 issue "ca.example"`},
		{name: "no such type", ask: "text", of: mdns.TypeMX, authority: soa},
		{name: "no such name", ask: "missing", of: mdns.TypeTXT, rcode: mdns.RcodeNameError, authority: soa},
		{name: "below a name", ask: "x.text", of: mdns.TypeTXT, rcode: mdns.RcodeNameError, authority: soa},
		{name: "empty non-terminal", ask: "ent", of: mdns.TypeTXT, authority: soa},
		{name: "empty non-terminal below another", ask: "below.ent", of: mdns.TypeANY, authority: soa},
		{name: "empty non-terminal above a name server", ask: "ns", of: mdns.TypeA, authority: soa},
		{name: "beside an empty non-terminal", ask: "other.ent", of: mdns.TypeTXT, rcode: mdns.RcodeNameError, authority: soa},

		{name: "alias", ask: "alias", of: mdns.TypeTXT, want: `alias. CNAME text. | text. TXT "v=DMARC1; p=none"`},
		{name: "alias itself", ask: "alias", of: mdns.TypeCNAME, want: "alias. CNAME text."},
		{name: "alias of another type", ask: "alias", of: mdns.TypeA, want: "alias. CNAME text.", authority: soa},
		{name: "alias of a name elsewhere", ask: "far", of: mdns.TypeTXT, want: "far. CNAME www.example.com."},
		{name: "alias of a missing name", ask: "gone", of: mdns.TypeTXT, rcode: mdns.RcodeNameError, want: "gone. CNAME missing.", authority: soa},

		{name: "ANY", ask: "many", of: mdns.TypeANY, want: `many. TXT "one" | many. TXT "two"`},
		{name: "ANY of an alias", ask: "alias", of: mdns.TypeANY, want: "alias. CNAME text."},
		{name: "ANY of the zone", ask: "", of: mdns.TypeANY, want: soa},
		{name: "ANY of a missing name", ask: "missing", of: mdns.TypeANY, rcode: mdns.RcodeNameError, authority: soa},

		{name: "SOA", ask: "", of: mdns.TypeSOA, want: soa},
		{name: "NS", ask: "", of: mdns.TypeNS, want: "dns.example.net. NS ns1.example.org. | dns.example.net. NS a.ns.", extra: "a.ns. A 192.0.2.1 | a.ns. AAAA 2001:db8::1"},
		{name: "name server", ask: "a.ns", of: mdns.TypeAAAA, want: "a.ns. AAAA 2001:db8::1"},
		{name: "no data at the apex", ask: "", of: mdns.TypeTXT, authority: soa},
		{name: "DS of the zone is with its parent", ask: "", of: mdns.TypeDS, authority: soa},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			query := new(mdns.Msg).SetQuestion(strings.TrimPrefix(test.ask+"."+apex+".", "."), test.of)
			for _, stream := range []bool{false, true} {
				reply := ask(t, s, query, stream)
				if test.name == "text in strings" && !stream {
					if !reply.Truncated || len(reply.Answer) != 0 {
						t.Errorf("over UDP without EDNS: got truncated %t and %d records, want true and none", reply.Truncated, len(reply.Answer))
					}
					continue
				}
				if reply.Rcode != test.rcode || !reply.Authoritative || reply.RecursionAvailable || reply.Truncated || reply.Id != query.Id {
					t.Errorf("stream %t: got %v", stream, reply)
				}
				if got := compact(reply.Answer); got != test.want {
					t.Errorf("answer: got %s want %s", got, test.want)
				}
				if got := compact(reply.Ns); got != test.authority {
					t.Errorf("authority: got %s want %s", got, test.authority)
				}
				if got := compact(reply.Extra); got != test.extra {
					t.Errorf("additional: got %s want %s", got, test.extra)
				}
				for _, rr := range slices.Concat(reply.Answer, reply.Extra) {
					if rr.Header().Ttl != zone.TTL {
						t.Errorf("got a TTL of %d want %d", rr.Header().Ttl, zone.TTL)
					}
				}
				for _, rr := range reply.Ns {
					if rr.Header().Ttl != 60 {
						t.Errorf("negative answer: got a TTL of %d want 60 (RFC 2308)", rr.Header().Ttl)
					}
				}
			}
		})
	}
}

// TestAliasCircle checks that an alias of itself has an end.
func TestAliasCircle(t *testing.T) {
	t.Parallel()
	reply := ask(t, newServer(t, newZone(t)), new(mdns.Msg).SetQuestion("circle."+apex+".", mdns.TypeTXT), true)
	if len(reply.Answer) != 8 {
		t.Errorf("got %d records, want the circle 8 times", len(reply.Answer))
	}
}

func TestSizes(t *testing.T) {
	t.Parallel()
	s := newServer(t, newZone(t))
	for _, test := range []struct {
		name, ask string
		offered   uint16 // 0: without EDNS
		truncated bool
	}{
		{name: "long without EDNS", ask: "long", truncated: true},
		{name: "long with little", ask: "long", offered: 100, truncated: true},
		{name: "long with EDNS", ask: "long", offered: 1232},
		{name: "huge with a large buffer", ask: "huge", offered: 65535, truncated: true},
		{name: "text with a tiny buffer", ask: "text", offered: 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			query := new(mdns.Msg).SetQuestion(test.ask+"."+apex+".", mdns.TypeTXT)
			if test.offered > 0 {
				query.SetEdns0(test.offered, true)
			}
			replies := s.Respond(musttest.Get(query.Pack())(t), client, false)
			limit := 512
			if test.offered > 512 {
				limit = 1232
			}
			if len(replies[0]) > limit {
				t.Errorf("got %d bytes, want at most %d", len(replies[0]), limit)
			}
			reply := ask(t, s, query, false)
			if reply.Truncated != test.truncated || (len(reply.Answer) == 0) != test.truncated {
				t.Errorf("got truncated %t with %d records, want %t", reply.Truncated, len(reply.Answer), test.truncated)
			}
			options := reply.IsEdns0()
			if (options != nil) != (test.offered > 0) || options != nil && (options.UDPSize() != 1232 || !options.Do()) {
				t.Errorf("got the options %v", options)
			}
			if reply = ask(t, s, query, true); reply.Truncated || len(reply.Answer) != 1 {
				t.Errorf("over TCP: got truncated %t with %d records, want one whole", reply.Truncated, len(reply.Answer))
			}
		})
	}
}

func TestOtherQueries(t *testing.T) {
	t.Parallel()
	s := newServer(t, newZone(t))
	of := func(name string, kind uint16) *mdns.Msg { return new(mdns.Msg).SetQuestion(name, kind) }
	changed := func(m *mdns.Msg, change func(*mdns.Msg)) *mdns.Msg {
		change(m)
		return m
	}
	soa := func() *mdns.Msg { return of(apex+".", mdns.TypeSOA) }
	for _, test := range []struct {
		name  string
		query *mdns.Msg
		want  int
	}{
		{"another zone", of("example.com.", mdns.TypeTXT), mdns.RcodeRefused},
		{"the parent", of("example.net.", mdns.TypeSOA), mdns.RcodeRefused},
		{"a name that only ends like the zone", of("xdns.example.net.", mdns.TypeSOA), mdns.RcodeRefused},
		{"the root", of(".", mdns.TypeNS), mdns.RcodeRefused},
		{"another class", changed(of("version.bind.", mdns.TypeTXT), func(m *mdns.Msg) { m.Question[0].Qclass = mdns.ClassCHAOS }), mdns.RcodeRefused},
		{"any class", changed(soa(), func(m *mdns.Msg) { m.Question[0].Qclass = mdns.ClassANY }), mdns.RcodeRefused},
		{"a type for mailboxes", of(apex+".", mdns.TypeMAILB), mdns.RcodeNotImplemented},
		{"the type OPT", of(apex+".", mdns.TypeOPT), mdns.RcodeFormatError},
		{"a transfer of another zone", of("example.com.", mdns.TypeAXFR), mdns.RcodeRefused},
		{"a transfer of a name", of("text."+apex+".", mdns.TypeAXFR), mdns.RcodeNotAuth},
		{"an unsigned transfer", of(apex+".", mdns.TypeAXFR), mdns.RcodeRefused},
		{"an unsigned incremental transfer", new(mdns.Msg).SetIxfr(apex+".", 1, "ns.", "mail."), mdns.RcodeRefused},
		{"NOTIFY", new(mdns.Msg).SetNotify(apex + "."), mdns.RcodeNotImplemented},
		{"an update", new(mdns.Msg).SetUpdate(apex + "."), mdns.RcodeNotImplemented},
		{"no question", changed(soa(), func(m *mdns.Msg) { m.Question = nil }), mdns.RcodeFormatError},
		{"two questions", changed(soa(), func(m *mdns.Msg) { m.Question = append(m.Question, m.Question[0]) }), mdns.RcodeFormatError},
		{"an answer", changed(soa(), func(m *mdns.Msg) { m.Answer = []mdns.RR{rr(t, "a. 1 IN A 192.0.2.1")} }), mdns.RcodeFormatError},
		{"two options", changed(soa(), func(m *mdns.Msg) { m.SetEdns0(1232, false).SetEdns0(1232, false) }), mdns.RcodeFormatError},
		{"a later version of EDNS", changed(soa(), func(m *mdns.Msg) { m.SetEdns0(1232, false).IsEdns0().SetVersion(1) }), mdns.RcodeBadVers},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			for _, stream := range []bool{false, true} {
				reply := ask(t, s, test.query, stream)
				if reply == nil || reply.Rcode != test.want || reply.Authoritative || !reply.Response || len(reply.Answer)+len(reply.Ns) != 0 {
					t.Errorf("stream %t: got %v want %s", stream, reply, mdns.RcodeToString[test.want])
				}
			}
		})
	}
	t.Run("a response gets no answer", func(t *testing.T) {
		t.Parallel()
		if reply := ask(t, s, changed(soa(), func(m *mdns.Msg) { m.Response = true }), false); reply != nil {
			t.Errorf("got %v want silence", reply)
		}
	})
	t.Run("bytes after the header are cut off", func(t *testing.T) {
		t.Parallel()
		packed := musttest.Get(soa().Pack())(t)
		for length := range packed {
			replies := s.Respond(packed[:length], client, true)
			if length < 12 && len(replies) != 0 || length >= 12 && (len(replies) != 1 || replies[0][3]&0xf != mdns.RcodeFormatError) {
				t.Errorf("%d bytes: got %x", length, replies)
			}
		}
	})
}

func rr(t testing.TB, text string) mdns.RR {
	t.Helper()
	return musttest.Get(mdns.NewRR(text))(t)
}

// TestLimit checks the limits for each network and name.
func TestLimit(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	z := newZone(t)
	s := zone.NewUnbound(zone.Options{Zone: z, Now: func() time.Time { return now }})
	type counts struct{ answered, truncated, silent int }
	send := func(n int, from string, stream bool, query func(i int) []byte) (got counts) {
		for i := range n {
			replies := s.Respond(query(i), netip.MustParseAddr(from), stream)
			switch {
			case len(replies) == 0:
				got.silent++
			case replies[0][2]&2 != 0:
				got.truncated++
			default:
				got.answered++
			}
		}
		return got
	}
	named := func(name string) func(int) []byte {
		return func(int) []byte {
			return musttest.Get(new(mdns.Msg).SetQuestion(name+"."+apex+".", mdns.TypeTXT).Pack())(t)
		}
	}
	random := func(i int) []byte { return named(fmt.Sprintf("random%d", i))(i) }
	other := func(i int) []byte {
		if i%2 == 0 {
			return append([]byte{0, byte(i), 0x28, 0}, make([]byte, 8)...) // an update without content
		}
		return musttest.Get(new(mdns.Msg).SetQuestion(fmt.Sprintf("n%d.example.com.", i), mdns.TypeA).Pack())(t)
	}
	over := counts{answered: 100, truncated: 25, silent: 25}
	for _, step := range []struct {
		name, from string
		stream     bool
		query      func(int) []byte
		want       counts
	}{
		{"one name", "192.0.2.1", false, named("text"), over},
		{"the same name in upper case, another address of the network", "192.0.2.200", false, named("TEXT"), counts{truncated: 75, silent: 75}},
		{"another name", "192.0.2.1", false, named("many"), over},
		{"another network", "192.0.3.1", false, named("text"), over},
		{"over TCP", "192.0.2.1", true, named("text"), counts{answered: 150}},
		{"random names share the zone's", "192.0.2.1", false, random, over},
		{"an existing name after that", "192.0.2.1", false, named("ent"), over},
		{"errors share one, and are never truncated", "192.0.2.1", false, other, counts{answered: 100, silent: 50}},
		{"IPv6", "2001:db8:0:ff00::1", false, named("text"), over},
		{"the same /56", "2001:db8:0:ffff::1", false, named("text"), counts{truncated: 75, silent: 75}},
		{"another /56", "2001:db8:1:0::1", false, named("text"), over},
		{"IPv4 in IPv6", "::ffff:192.0.2.9", false, named("text"), counts{truncated: 75, silent: 75}},
	} {
		if got := send(150, step.from, step.stream, step.query); got != step.want {
			t.Errorf("%s: got %+v want %+v", step.name, got, step.want)
		}
	}
	now = now.Add(time.Second)
	if got := send(100, "192.0.2.1", false, named("text")); got != (counts{answered: 100}) {
		t.Errorf("a second later: got %+v want all answered", got)
	}
	// Forged addresses of more networks than the table has entries do not release one that is over
	// the limit.
	send(20, "192.0.2.1", false, named("text"))
	query := named("text")(0)
	for i := range 100_000 {
		s.Respond(query, netip.AddrFrom4([4]byte{byte(10 + i>>16), byte(i >> 8), byte(i), 1}), false)
	}
	if got := send(100, "192.0.2.1", false, named("text")); got.answered > 0 {
		t.Errorf("after a flood from other networks: got %+v want none answered", got)
	}
}

func TestApply(t *testing.T) {
	t.Parallel()
	z := newZone(t)
	s := newServer(t, z)
	text := func(name string) string {
		reply := ask(t, s, new(mdns.Msg).SetQuestion(name+"."+apex+".", mdns.TypeTXT), true)
		return mdns.RcodeToString[reply.Rcode] + " " + compact(reply.Answer)
	}
	set := func(name, data string) zone.Change {
		return zone.Change{Name: name, Records: []zone.Record{{Type: dns.TXT, Data: data}}}
	}
	if err := z.Apply(first, nil); err == nil || z.Serial() != first {
		t.Errorf("the same serial: got %v and the serial %d", err, z.Serial())
	}
	musttest.Do(t, z.Apply(first+5, []zone.Change{set("Text."+apex+".", "new"), {Name: "deep.below.ent." + apex}, set("x.y."+apex, "added")}))
	for name, want := range map[string]string{
		"text": `NOERROR text. TXT "new"`, "ent": "NXDOMAIN ", "below.ent": "NXDOMAIN ", "y": "NOERROR ", "x.y": `NOERROR x.y. TXT "added"`,
	} {
		if got := text(name); got != want {
			t.Errorf("%s: got %q want %q", name, got, want)
		}
	}
	musttest.Do(t, z.Apply(first+6, []zone.Change{set("y."+apex, "above"), {Name: "x.y." + apex}, {Name: "never." + apex}}))
	musttest.Do(t, z.Apply(first+7, []zone.Change{{Name: "y." + apex}}))
	if got := text("y"); got != "NXDOMAIN " {
		t.Errorf("a name that is empty again: got %q", got)
	}
	cname := zone.Record{Type: dns.CNAME, Data: "www.example.com"}
	for name, change := range map[string]zone.Change{
		"the apex":                   set(apex, "x"),
		"another zone":               set("www.example.com", "x"),
		"a name server":              set("a.ns."+apex, "x"),
		"not a name":                 set("a..b."+apex, "x"),
		"a name with an escape":      set(`a\046b.`+apex, "x"),
		"a name that is not ASCII":   set("\x8c."+apex, "x"),
		"too large":                  set("text."+apex, strings.Repeat("x", 17<<10)),
		"not an address":             {Name: "text." + apex, Records: []zone.Record{{Type: dns.A, Data: "2001:db8::1"}}},
		"a CNAME with others":        {Name: "text." + apex, Records: []zone.Record{cname, {Type: dns.TXT, Data: "x"}}},
		"two CNAMEs":                 {Name: "text." + apex, Records: []zone.Record{cname, cname}},
		"a target that is no name":   {Name: "text." + apex, Records: []zone.Record{{Type: dns.CNAME, Data: "a b"}}},
		"another type":               {Name: "text." + apex, Records: []zone.Record{{Type: dns.MX, Data: "10 mx.example.com."}}},
		"not the data of CAA":        {Name: "text." + apex, Records: []zone.Record{{Type: zone.CAA, Data: "issue"}}},
		"a second record after CAA":  {Name: "text." + apex, Records: []zone.Record{{Type: zone.CAA, Data: "0 issue \"a\"\nx. 300 IN TXT x"}}},
		"an instruction after a CAA": {Name: "text." + apex, Records: []zone.Record{{Type: zone.CAA, Data: "0 issue \"a\"\n$INCLUDE /etc/passwd"}}},
	} {
		serial := z.Serial() + 1
		err := z.Apply(serial, []zone.Change{change, set("beside."+apex, name)})
		if err == nil || z.Serial() != serial {
			t.Errorf("%s: got the error %v and the serial %d, want an error and %d", name, err, z.Serial(), serial)
		}
		if got := text("text"); got != `NOERROR text. TXT "new"` {
			t.Errorf("%s: got %q, want what was served before", name, got)
		}
		if got, want := text("beside"), fmt.Sprintf("NOERROR beside. TXT %q", name); got != want {
			t.Errorf("%s: got %q want the valid change, %q", name, got, want)
		}
	}
}

func TestNew(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, apex string
		servers    []zone.Nameserver
		want       string
	}{
		{"no name", "a..b", servers(), `zone "a..b": it is not a domain name`},
		{"the root", ".", servers(), `zone ".": it is not a domain name`},
		{"no name servers", apex, nil, `zone "dns.example.net": it has no name server`},
		{"a name server without a name", apex, []zone.Nameserver{{Name: ""}}, `name server "": it is not a host name`},
		{"a name server without an address", apex, []zone.Nameserver{{Name: "ns." + apex}}, `name server "ns.dns.example.net": it is inside the zone and has no address`},
	} {
		if _, err := zone.New(test.apex, 1, test.servers); err == nil || err.Error() != test.want {
			t.Errorf("%s: got %v want %s", test.name, err, test.want)
		}
	}
	z := musttest.Get(zone.New("DNS.example.net.", 7, []zone.Nameserver{{Name: "dns.example.net", Addresses: []netip.Addr{client}}}))(t)
	reply := ask(t, newServer(t, z), new(mdns.Msg).SetQuestion(apex+".", mdns.TypeNS), false)
	if got, want := compact(reply.Answer)+" / "+compact(reply.Extra), "dns.example.net. NS dns.example.net. / dns.example.net. A 192.0.2.7"; got != want {
		t.Errorf("the zone as its own name server: got %s want %s", got, want)
	}
}

// TestLargeZone limits the memory and the time of a zone with 100,000 domains. It is not
// parallel: others would be counted too.
func TestLargeZone(t *testing.T) { //nolint:paralleltest // it measures the heap
	const domains, each = 100_000, 4
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before, began := heap(), time.Now()
	z := musttest.Get(zone.New(apex, first, servers()))(t)
	changes := make([]zone.Change, 0, 1000)
	for i := range domains * each {
		changes = append(changes, zone.Change{
			Name:    fmt.Sprintf("%s%06d.%s", hex.EncodeToString([]byte("random")), i, apex),
			Records: []zone.Record{{Type: dns.TXT, Data: fmt.Sprintf("v=DMARC1; p=quarantine; rua=mailto:%016d@reports.example.net; t=n", i)}},
		})
		if len(changes) == cap(changes) {
			musttest.Do(t, z.Load(changes))
			changes = changes[:0]
		}
	}
	took, used := time.Since(began), heap()-before
	t.Logf("%d bytes for each of %d records, loaded in %s", used/(domains*each), domains*each, took)
	if used/(domains*each) >= 1024 {
		t.Errorf("got %d bytes for a record, want less than 1,024", used/(domains*each))
	}
	runtime.KeepAlive(z)
}

func BenchmarkRespond(b *testing.B) {
	s := newServer(b, newZone(b))
	query := musttest.Get(new(mdns.Msg).SetQuestion("text."+apex+".", mdns.TypeTXT).SetEdns0(1232, false).Pack())(b)
	i := uint32(0)
	for b.Loop() {
		i++
		s.Respond(query, netip.AddrFrom4([4]byte{127, byte(i >> 16), byte(i >> 8), byte(i)}), false)
	}
}
