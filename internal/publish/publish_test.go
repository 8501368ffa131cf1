package publish_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	mdns "github.com/miekg/dns"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/outbound"
	"github.com/dmarcd/dmarcd/internal/publish"
)

const (
	secret = "YSBzZWNyZXQgb2YgdGhpcnR5LXR3byBieXRlcyAuLi4="
	owner  = "_dmarc.example.com"
)

var onLoopback = &outbound.Dialer{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}

func change(text, base string) publish.Change {
	return publish.Change{Domain: "example.com", Name: owner, Text: text, Base: base, Ours: func(v string) bool { return strings.HasPrefix(v, "v=DMARC1") }}
}

func wantStage(t *testing.T, err error, want publish.Stage, uncertain bool) {
	t.Helper()
	known := &publish.Error{}
	if !errors.As(err, &known) || known.Stage != want || known.Uncertain != uncertain || known.Message == "" {
		t.Errorf("got %#v, want the stage %s, uncertain %t", err, want, uncertain)
	}
}

// fake is a name server for one TXT record, over TCP. The functions replace what it does.
type fake struct {
	mu      sync.Mutex
	records []mdns.RR
	updates int
	secret  string
	// raw returns the bytes to send instead of an answer, nil for the answer.
	raw func(reply []byte) []byte
	// onUpdate changes the answer to an update. It is not applied if it returns false.
	onUpdate func(reply *mdns.Msg) bool
	onQuery  func(reply *mdns.Msg)
	unsigned bool
}

func start(t *testing.T, f *fake) publish.Target {
	t.Helper()
	if f.secret == "" {
		f.secret = secret
	}
	listener := musttest.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() { f.serve(conn) })
		}
	})
	t.Cleanup(func() { _ = listener.Close(); all.Wait() })
	return publish.Target{
		PublishTarget: dmarcd.PublishTarget{Kind: dmarcd.TargetRFC2136, Server: listener.Addr().String(), Zone: "example.com"},
		Key:           "hmac-sha256:key:" + secret,
	}
}

func (f *fake) serve(conn net.Conn) {
	defer conn.Close() //nolint:errcheck // a test sees what was sent
	var length [2]byte
	if _, err := io.ReadFull(conn, length[:]); err != nil {
		return
	}
	packed := make([]byte, binary.BigEndian.Uint16(length[:]))
	if _, err := io.ReadFull(conn, packed); err != nil {
		return
	}
	query, reply := new(mdns.Msg), new(mdns.Msg)
	if query.Unpack(packed) != nil || query.IsTsig() == nil || query.IsEdns0() != nil {
		return
	}
	mac := query.IsTsig().MAC
	reply.SetReply(query)
	reply.Authoritative = true
	f.mu.Lock()
	if query.Opcode == mdns.OpcodeUpdate {
		f.updates++
		if f.onUpdate == nil || f.onUpdate(reply) {
			f.apply(query.Ns)
		}
	} else {
		if query.Question[0].Qtype == mdns.TypeSOA {
			reply.Answer = []mdns.RR{&mdns.SOA{Hdr: mdns.RR_Header{Name: "example.com.", Rrtype: mdns.TypeSOA, Class: mdns.ClassINET}, Ns: ".", Mbox: "."}}
		} else {
			reply.Answer = slices.Clone(f.records)
		}
		if f.onQuery != nil {
			f.onQuery(reply)
		}
	}
	f.mu.Unlock()
	var raw []byte
	if f.unsigned {
		raw, _ = reply.Pack()
	} else {
		reply.SetTsig("key.", mdns.HmacSHA256, 300, time.Now().Unix())
		raw, _, _ = mdns.TsigGenerate(reply, f.secret, mac, false)
	}
	sent := append(binary.BigEndian.AppendUint16(nil, uint16(len(raw))), raw...)
	if f.raw != nil {
		sent = f.raw(sent)
	}
	_, _ = conn.Write(sent)
}

func (f *fake) apply(changes []mdns.RR) {
	for _, rr := range changes {
		txt, ok := rr.(*mdns.TXT)
		if !ok {
			continue
		}
		if txt.Hdr.Class == mdns.ClassNONE {
			f.records = slices.DeleteFunc(f.records, func(have mdns.RR) bool {
				other, ok := have.(*mdns.TXT)
				return ok && slices.Equal(other.Txt, txt.Txt)
			})
		} else {
			f.records = append(f.records, txt)
		}
	}
}

func (f *fake) texts() (texts []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, rr := range f.records {
		texts = append(texts, strings.Join(rr.(*mdns.TXT).Txt, ""))
	}
	return texts
}

func txt(text string) mdns.RR {
	return &mdns.TXT{Hdr: mdns.RR_Header{Name: owner + ".", Rrtype: mdns.TypeTXT, Class: mdns.ClassINET, Ttl: 60}, Txt: []string{text}}
}

func TestPublishChangesOneValue(t *testing.T) {
	t.Parallel()
	f := &fake{records: []mdns.RR{txt("token"), txt("v=DMARC1; p=none"), txt("v=DMARC1; p=none; sp=none")}}
	target := start(t, f)
	p := publish.New(onLoopback)
	wantStage(t, p.Publish(t.Context(), target, change("v=DMARC1; p=reject", "v=DMARC1; p=none")), publish.StageOther, false)
	f.records = f.records[:2]
	musttest.Do(t, p.Publish(t.Context(), target, change("v=DMARC1; p=reject", "v=DMARC1; p=none")))
	musttest.Do(t, p.Publish(t.Context(), target, change("v=DMARC1; p=reject", "v=DMARC1; p=none")))
	if got := f.texts(); !slices.Equal(got, []string{"token", "v=DMARC1; p=reject"}) || f.updates != 1 {
		t.Errorf("got %q after %d updates, want one value replaced once", got, f.updates)
	}
	other := change("v=DMARC1; p=reject", "")
	other.Name = "_dmarc.example.org"
	wantStage(t, p.Publish(t.Context(), target, other), publish.StageZone, false)
	other.Domain = "example.org"
	wantStage(t, p.Publish(t.Context(), target, other), publish.StageZone, false)
}

// TestLostAnswer has the answer to an update lost: what is there decides.
func TestLostAnswer(t *testing.T) {
	t.Parallel()
	for _, applied := range []bool{true, false} {
		lost := false
		f := &fake{
			onUpdate: func(*mdns.Msg) bool { lost = true; return applied },
			raw: func(reply []byte) []byte {
				if lost {
					lost = false
					return nil
				}
				return reply
			},
		}
		target := start(t, f)
		err := publish.New(onLoopback).Publish(t.Context(), target, change("v=DMARC1; p=none", ""))
		if applied && err != nil {
			t.Errorf("it is there: got %v", err)
		}
		if !applied {
			wantStage(t, err, publish.StageConnection, true)
		}
	}
}

// TestSilentlyIgnored has a server accept an update and not apply it.
func TestSilentlyIgnored(t *testing.T) {
	t.Parallel()
	target := start(t, &fake{onUpdate: func(*mdns.Msg) bool { return false }})
	wantStage(t, publish.New(onLoopback).Publish(t.Context(), target, change("v=DMARC1; p=none", "")), publish.StageAnswer, true)
}

// TestChangedMeanwhile has the precondition fail once, and always.
func TestChangedMeanwhile(t *testing.T) {
	t.Parallel()
	for _, failures := range []int{1, 100} {
		left := failures
		f := &fake{}
		f.onUpdate = func(reply *mdns.Msg) bool {
			if left == 0 {
				return true
			}
			left--
			reply.Rcode = mdns.RcodeNXRrset
			f.records = append(f.records, txt(fmt.Sprint("token", left)))
			return false
		}
		target := start(t, f)
		err := publish.New(onLoopback).Publish(t.Context(), target, change("v=DMARC1; p=none", ""))
		if failures == 1 {
			musttest.Do(t, err)
			if got := f.texts(); !slices.Equal(got, []string{"token0", "v=DMARC1; p=none"}) {
				t.Errorf("got %q, want both", got)
			}
		} else {
			wantStage(t, err, publish.StageAnswer, false)
		}
	}
}

func TestHostileServer(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		fake *fake
		want publish.Stage
	}{
		"no signature":             {&fake{unsigned: true}, publish.StageKey},
		"another secret":           {&fake{secret: "b3RoZXIgc2VjcmV0IG9mIG1hbnkgYnl0ZXM="}, publish.StageKey},
		"unsigned refusal":         {&fake{unsigned: true, onQuery: func(m *mdns.Msg) { m.Rcode = mdns.RcodeRefused }}, publish.StageZone},
		"server failure":           {&fake{onQuery: func(m *mdns.Msg) { m.Rcode = mdns.RcodeServerFailure }}, publish.StageAnswer},
		"another zone":             {&fake{onQuery: func(m *mdns.Msg) { m.Answer[0].Header().Name = "com." }}, publish.StageZone},
		"not authoritative":        {&fake{onQuery: func(m *mdns.Msg) { m.Authoritative = false }}, publish.StageZone},
		"another id":               {&fake{onQuery: func(m *mdns.Msg) { m.Id++ }}, publish.StageConnection},
		"another question":         {&fake{onQuery: func(m *mdns.Msg) { m.Question[0].Name = "other." }}, publish.StageConnection},
		"truncated over TCP":       {&fake{onQuery: func(m *mdns.Msg) { m.Truncated = true }}, publish.StageConnection},
		"no DNS":                   {&fake{raw: func([]byte) []byte { return []byte("HTTP/1.1 400 Bad Request\r\n\r\n") }}, publish.StageConnection},
		"half an answer":           {&fake{raw: func(reply []byte) []byte { return reply[:len(reply)/2] }}, publish.StageConnection},
		"nothing":                  {&fake{raw: func([]byte) []byte { return nil }}, publish.StageConnection},
		"an empty message":         {&fake{raw: func([]byte) []byte { return []byte{0, 0} }}, publish.StageConnection},
		"a signed refusal":         {&fake{onUpdate: func(m *mdns.Msg) bool { m.Rcode = mdns.RcodeRefused; return false }}, publish.StagePolicy},
		"updates not implemented":  {&fake{onUpdate: func(m *mdns.Msg) bool { m.Rcode = mdns.RcodeNotImplemented; return false }}, publish.StagePolicy},
		"not in the zone":          {&fake{onUpdate: func(m *mdns.Msg) bool { m.Rcode = mdns.RcodeNotZone; return false }}, publish.StageZone},
		"update fails":             {&fake{onUpdate: func(m *mdns.Msg) bool { m.Rcode = mdns.RcodeServerFailure; return false }}, publish.StageAnswer},
		"more records than stored": {&fake{records: many(201)}, publish.StageAnswer},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantStage(t, publish.New(onLoopback).Try(t.Context(), start(t, row.fake), owner), row.want, row.want == publish.StageConnection && row.fake.onUpdate != nil)
		})
	}
}

func many(n int) (records []mdns.RR) {
	for i := range n {
		records = append(records, txt(fmt.Sprint(i)))
	}
	return records
}

// TestBadTime has a server answer that the time is wrong.
func TestBadTime(t *testing.T) {
	t.Parallel()
	reply := new(mdns.Msg)
	f := &fake{unsigned: true, onQuery: func(m *mdns.Msg) {
		m.Rcode = mdns.RcodeNotAuth
		m.SetTsig("key.", mdns.HmacSHA256, 300, time.Now().Unix())
		m.IsTsig().Error = mdns.RcodeBadTime
		reply = m
	}}
	err := publish.New(onLoopback).Try(t.Context(), start(t, f), owner)
	wantStage(t, err, publish.StageKey, false)
	if reply == nil || !strings.Contains(err.Error(), "clocks") {
		t.Errorf("got %v, want it to be about clocks", err)
	}
}

// TestSlowServer ends at the deadline of the caller.
func TestSlowServer(t *testing.T) {
	t.Parallel()
	listener := musttest.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = listener.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	p := publish.New(onLoopback)
	for _, kind := range []dmarcd.TargetKind{dmarcd.TargetRFC2136, dmarcd.TargetPowerDNS} {
		target := publish.Target{PublishTarget: dmarcd.PublishTarget{Kind: kind, Server: listener.Addr().String(), Zone: "example.com"}, Key: "key:" + secret}
		if kind == dmarcd.TargetPowerDNS {
			target.Server = "http://" + target.Server
		}
		wantStage(t, p.Publish(ctx, target, change("v=DMARC1; p=none", "")), publish.StageConnection, false)
	}
}

// TestOutboundPolicy connects to no address that is not allowed, and over HTTP to allowed networks only.
func TestOutboundPolicy(t *testing.T) {
	t.Parallel()
	p := publish.New(&outbound.Dialer{})
	for kind, server := range map[dmarcd.TargetKind]string{dmarcd.TargetRFC2136: "127.0.0.1:1", dmarcd.TargetPowerDNS: "http://127.0.0.1:1"} {
		err := p.Try(t.Context(), publish.Target{PublishTarget: dmarcd.PublishTarget{Kind: kind, Server: server, Zone: "example.com"}, Key: "key:" + secret}, owner)
		wantStage(t, err, publish.StageConnection, false)
		if !errors.Is(err, outbound.ErrNotAllowed) || !strings.Contains(err.Error(), "DMARCD_OUTBOUND_ALLOW") {
			t.Errorf("%s: got %v, want what to do", kind, err)
		}
	}
}

func TestBadKeys(t *testing.T) {
	t.Parallel()
	p := publish.New(onLoopback)
	for _, target := range []publish.Target{
		{PublishTarget: dmarcd.PublishTarget{Kind: dmarcd.TargetRFC2136, Server: "127.0.0.1:1"}, Key: "key"},
		{PublishTarget: dmarcd.PublishTarget{Kind: dmarcd.TargetRFC2136, Server: "127.0.0.1:1"}, Key: "key:c2hvcnQ="},
		{PublishTarget: dmarcd.PublishTarget{Kind: dmarcd.TargetPowerDNS, Server: "http://127.0.0.1:1"}, Key: " "},
		{PublishTarget: dmarcd.PublishTarget{Kind: dmarcd.TargetPowerDNS, Server: "http://127.0.0.1:1"}, Key: "a\r\nb: c"},
	} {
		var invalid *dmarcd.InvalidError
		if err := p.Try(t.Context(), target, owner); !errors.As(err, &invalid) || invalid.Field != "key" {
			t.Errorf("%q: got %v, want an error at the key", target.Key, err)
		}
	}
}

// TestHostileAPI has an API answer what that of PowerDNS does not.
func TestHostileAPI(t *testing.T) {
	t.Parallel()
	const zone = `{"name": "example.com.", "rrsets": [{"name": "_dmarc.example.com.", "type": "TXT", "ttl": 60, "records": %s}]}`
	for name, row := range map[string]struct {
		status int
		body   string
		want   publish.Stage
	}{
		"another key":       {http.StatusUnauthorized, "Unauthorized", publish.StageKey},
		"no zone":           {http.StatusNotFound, "Not Found", publish.StageZone},
		"a redirect":        {http.StatusFound, "", publish.StageAnswer},
		"server failure":    {http.StatusInternalServerError, "", publish.StageAnswer},
		"HTML":              {http.StatusOK, "<html>", publish.StageAnswer},
		"nothing":           {http.StatusOK, "", publish.StageAnswer},
		"a list":            {http.StatusOK, "[]", publish.StageAnswer},
		"no records":        {http.StatusOK, "{}", publish.StageAnswer},
		"cut":               {http.StatusOK, zone[:60], publish.StageAnswer},
		"other shapes":      {http.StatusOK, fmt.Sprintf(zone, `"a"`), publish.StageAnswer},
		"no TXT record":     {http.StatusOK, fmt.Sprintf(zone, `[{"content": "\"a\" ("}]`), publish.StageAnswer},
		"two lines":         {http.StatusOK, fmt.Sprintf(zone, `[{"content": "\"a\"\n\"b\""}]`), publish.StageAnswer},
		"too many records":  {http.StatusOK, fmt.Sprintf(zone, "["+strings.Repeat(`{"content": "\"a\""},`, 200)+`{"content": "\"a\""}]`), publish.StageAnswer},
		"a CNAME record":    {http.StatusOK, strings.Replace(fmt.Sprintf(zone, `[{"content": "a."}]`), "TXT", "CNAME", 1), publish.StageAlias},
		"a huge answer":     {http.StatusOK, strings.Repeat(" ", 33<<20), publish.StageAnswer},
		"another name only": {http.StatusOK, strings.Replace(fmt.Sprintf(zone, `[{"content": "\"v=DMARC1; p=none\""}]`), "_dmarc.", "other.", 1), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("X-Api-Key") != "sesame" || r.URL.Path != "/api/v1/servers/localhost/zones/example.com." || r.Method != http.MethodGet {
					t.Errorf("got %s %s", r.Method, r.URL)
				}
				w.Header().Set("Location", "http://127.0.0.1:1/")
				w.WriteHeader(row.status)
				_, _ = io.WriteString(w, row.body)
			}))
			t.Cleanup(server.Close)
			target := publish.Target{PublishTarget: dmarcd.PublishTarget{Kind: dmarcd.TargetPowerDNS, Server: server.URL, Zone: "example.com"}, Key: "sesame"}
			there, err := publish.New(onLoopback).Published(t.Context(), target, change("v=DMARC1; p=none", ""))
			if row.want == "" && (err != nil || there) {
				t.Errorf("got %t, %v", there, err)
			}
			if row.want != "" {
				wantStage(t, err, row.want, false)
			}
		})
	}
}
