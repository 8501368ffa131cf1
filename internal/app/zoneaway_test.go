package app

import (
	"bytes"
	"context"
	"log/slog"
	"testing"
	"time"

	mdns "github.com/miekg/dns"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/config"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// TestZoneWithoutDatabase takes the database away from a running server: it serves the last state.
func TestZoneWithoutDatabase(t *testing.T) {
	t.Parallel()
	s := storetest.SQLite(t).Open(t, store.Options{})
	team := s.Team(storetest.Team(t, s, "acme").ID)
	musttest.Get(team.AddDomain(t.Context(), "example.com", time.Now().Add(time.Hour)))(t)
	musttest.Get(s.OpenZone(t.Context(), "dns.example.net", ""))(t)
	v := musttest.Get(team.PublishRecord(t.Context(), "example.com", 0, dmarcd.RecordVersion{Kind: dmarcd.RecordDMARC, Content: "v=DMARC1; p=none"}))(t)
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
