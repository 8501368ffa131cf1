package app

import (
	"bytes"
	"context"
	"log/slog"
	"reflect"
	"testing"
	"time"

	mdns "github.com/miekg/dns"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/config"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
	"github.com/dmarcd/dmarcd/internal/zone"
)

// TestZoneWithoutDatabase takes the database away from a running server: it serves the last state.
func TestZoneWithoutDatabase(t *testing.T) {
	t.Parallel()
	s := storetest.SQLite(t).Open(t, store.Options{})
	team := s.Team(storetest.Team(t, s, "acme").ID)
	musttest.Get(team.AddDomain(t.Context(), "example.com", time.Now().Add(time.Hour)))(t)
	musttest.Get(s.OpenZone(t.Context(), "dns.example.net", ""))(t)
	v := musttest.Get(team.PublishRecord(t.Context(), "example.com", 0, dmarcd.RecordVersion{Kind: dmarcd.RecordDMARC, Content: "v=DMARC1; p=none"}, nil))(t)
	var log bytes.Buffer
	a := &App{store: s, log: slog.New(slog.NewTextHandler(&log, nil)), config: config.Config{
		Zone: "dns.example.net", ZoneListen: "127.0.0.1:0", ZoneNameservers: []string{"ns1.example.org", "ns2.example.org"},
	}}
	z := musttest.Get(a.listenForZone(t.Context()))(t)
	musttest.Do(t, s.Close())
	if err := z.poll(t.Context()); err == nil {
		t.Error("a poll without a database: got no error")
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- z.run(ctx) }()
	client := mdns.Client{Timeout: time.Minute}
	for range 2 {
		reply, _, err := client.Exchange(new(mdns.Msg).SetQuestion(v.Label+".dns.example.net.", mdns.TypeTXT), z.server.Addr())
		if err != nil || len(reply.Answer) != 1 {
			t.Errorf("got %v, %v want the record", reply, err)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("stop: got %v", err)
	}
}

// TestNamesBelow removes what was below a name and is no longer.
func TestNamesBelow(t *testing.T) {
	t.Parallel()
	z := &zoneServer{below: make(map[string][]string), zone: musttest.Get(zone.New("dns.example.net", 1, []zone.Nameserver{{Name: "ns1.example.org"}}))(t)}
	text := func(sub, data string) store.ZoneRecord { return store.ZoneRecord{Sub: sub, Type: dns.TXT, Data: data} }
	change := func(name string, records ...string) zone.Change {
		c := zone.Change{Name: name + ".dns.example.net"}
		for _, data := range records {
			c.Records = append(c.Records, zone.Record{Type: dns.TXT, Data: data})
		}
		return c
	}
	for i, step := range []struct {
		records []store.ZoneRecord
		want    []zone.Change
	}{
		{[]store.ZoneRecord{text("", "a"), text("1", "b"), text("2", "c")}, []zone.Change{change("x", "a"), change("1.x", "b"), change("2.x", "c")}},
		{[]store.ZoneRecord{text("", "a"), text("2", "d")}, []zone.Change{change("x", "a"), change("1.x"), change("2.x", "d")}},
		{nil, []zone.Change{change("x"), change("2.x")}},
		{nil, []zone.Change{change("x")}},
	} {
		if got := z.changes([]store.ZoneName{{Label: "x", Records: step.records}}); !reflect.DeepEqual(got, step.want) {
			t.Errorf("step %d: got %+v, want %+v", i, got, step.want)
		}
	}
}
