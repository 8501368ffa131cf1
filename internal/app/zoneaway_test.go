package app

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	mdns "github.com/miekg/dns"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/config"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// zoneFixture is a data folder with the zone of one team.
type zoneFixture struct {
	*testing.T

	data  string
	log   bytes.Buffer
	store *store.Store
	team  *store.Team
}

func newZoneFixture(t *testing.T) *zoneFixture {
	t.Helper()
	f := &zoneFixture{T: t, data: t.TempDir(), store: storetest.SQLite(t).Open(t, store.Options{})}
	f.team = f.store.Team(storetest.Team(t, f.store, "acme").ID)
	for _, domain := range []string{"one.example", "two.example"} {
		musttest.Get(f.team.AddDomain(t.Context(), domain, time.Now().Add(time.Hour)))(t)
	}
	musttest.Get(f.store.OpenZone(t.Context(), "dns.example.net", ""))(t)
	return f
}

// publish publishes a version of the DMARC record of a domain, and returns its name.
func (f *zoneFixture) publish(domain string, base int64, content string) string {
	f.Helper()
	v := musttest.Get(f.team.PublishRecord(f.Context(), domain, base, dmarcd.RecordVersion{Kind: dmarcd.RecordDMARC, Content: content}, nil))(f)
	return v.Label + ".dns.example.net"
}

// listen listens for the zone, and answers from the snapshot if there is one.
func (f *zoneFixture) listen(settings ...func(*config.Config)) *zoneServer {
	f.Helper()
	a := &App{log: slog.New(slog.NewTextHandler(&f.log, nil)), config: config.Config{
		Data: f.data, Zone: "dns.example.net", ZoneListen: "127.0.0.1:0", ZoneNameservers: []string{"ns1.example.org", "ns2.example.org"},
	}}
	for _, set := range settings {
		set(&a.config)
	}
	z := musttest.Get(a.listenForZone(f.Context()))(f)
	f.Cleanup(func() { musttest.Do(f, z.close()) })
	return z
}

// serve listens, opens the zone of a database and serves it until the returned function is called.
func (f *zoneFixture) serve(s *store.Store) (z *zoneServer, stop func()) {
	f.Helper()
	z = f.listen()
	musttest.Do(f, z.open(f.Context(), s))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- z.run(ctx) }()
	return z, func() {
		f.Helper()
		cancel()
		if err := <-ended; err != nil {
			f.Errorf("stop: got %v", err)
		}
	}
}

// wants fails unless a name has a text, or a response code.
func (f *zoneFixture) wants(z *zoneServer, name, want string) {
	f.Helper()
	client := mdns.Client{Timeout: time.Minute}
	reply, _, err := client.Exchange(new(mdns.Msg).SetQuestion(name+".", mdns.TypeTXT), z.server.Addr())
	musttest.Do(f, err)
	got := mdns.RcodeToString[reply.Rcode]
	for _, rr := range reply.Answer {
		got = strings.Join(rr.(*mdns.TXT).Txt, "")
	}
	if got != want {
		f.Errorf("%s: got %s want %s", name, got, want)
	}
}

// TestZoneWithoutDatabase takes the database away from a running server, which serves the last state, and
// starts one without a database, which serves the snapshot.
func TestZoneWithoutDatabase(t *testing.T) {
	t.Parallel()
	f := newZoneFixture(t)
	name := f.publish("one.example", 0, "v=DMARC1; p=none")
	if f.listen().restored {
		t.Error("got a snapshot before there is one")
	}
	z, stop := f.serve(f.store)
	musttest.Do(t, f.store.Close())
	if err := z.poll(t.Context()); err == nil {
		t.Error("a poll without a database: got no error")
	}
	f.wants(z, name, "v=DMARC1; p=none")
	serial := z.zone.Serial()
	stop()

	again := f.listen()
	if !again.restored || again.zone.Serial() != serial {
		t.Fatalf("got a snapshot %t and the serial %d, want %d", again.restored, again.zone.Serial(), serial)
	}
	again.start(t.Context())
	f.wants(again, name, "v=DMARC1; p=none")
	if other := f.listen(func(c *config.Config) { c.Zone = "other.example.net" }); other.restored {
		t.Error("another zone: got the names of the snapshot")
	}
	content := musttest.Get(os.ReadFile(again.snapshot))(t)
	musttest.Do(t, os.WriteFile(again.snapshot, content[1:], 0o600))
	if f.listen().restored || !strings.Contains(f.log.String(), "snapshot of the zone not used") {
		t.Errorf("a damaged snapshot: got its names, or no warning in the log:\n%s", f.log.String())
	}
}

// TestRestoredBackup restores a backup that is older than what was served: the serial increases, the names
// that it has answer as it says, and the others as before until they are dropped.
func TestRestoredBackup(t *testing.T) {
	t.Parallel()
	f := newZoneFixture(t)
	known := f.publish("one.example", 0, "v=DMARC1; p=none")
	backup := filepath.Join(t.TempDir(), "backup.db")
	musttest.Do(t, f.store.Backup(t.Context(), backup))
	f.publish("one.example", 1, "v=DMARC1; p=reject")
	lost := f.publish("two.example", 0, "v=DMARC1; p=none; t=y")
	z, stop := f.serve(f.store)
	f.wants(z, known, "v=DMARC1; p=reject")
	serial := z.zone.Serial()
	stop()

	restored := storetest.DB{Engine: "sqlite", DSN: backup}.Open(t, store.Options{})
	z, stop = f.serve(restored)
	if z.zone.Serial() <= serial || int64(z.zone.Serial()) != z.serial {
		t.Errorf("got the serial %d, and %d in the database, want more than %d", z.zone.Serial(), z.serial, serial)
	}
	f.wants(z, known, "v=DMARC1; p=none")
	f.wants(z, lost, "v=DMARC1; p=none; t=y")
	if !strings.Contains(f.log.String(), "names=1") {
		t.Errorf("got no warning in the log:\n%s", f.log.String())
	}
	// The replicas, and a restart without the snapshot, have it too.
	musttest.Do(t, os.Remove(z.snapshot))
	replica, stopReplica := f.serve(restored)
	f.wants(replica, lost, "v=DMARC1; p=none; t=y")
	if replica.zone.Serial() != z.zone.Serial() {
		t.Errorf("got the serial %d at a replica, want %d", replica.zone.Serial(), z.zone.Serial())
	}
	stopReplica()
	if dropped, err := restored.DropOrphans(t.Context()); err != nil || dropped != 1 {
		t.Errorf("drop: got %d, %v", dropped, err)
	}
	stop()
	musttest.Do(t, z.poll(t.Context()))
	if z.zone.Has(lost) || !z.zone.Has(known) {
		t.Error("got the wrong names after they were dropped")
	}
}

// TestBackupRestoredBesideServer replaces the database of a running server.
func TestBackupRestoredBesideServer(t *testing.T) {
	t.Parallel()
	f := newZoneFixture(t)
	backup := filepath.Join(t.TempDir(), "backup.db")
	musttest.Do(t, f.store.Backup(t.Context(), backup))
	lost := f.publish("two.example", 0, "v=DMARC1; p=none")
	z, stop := f.serve(f.store)
	defer stop()
	serial := z.zone.Serial()
	other := f.listen() // has no polls of its own
	musttest.Do(t, other.open(t.Context(), f.store))
	other.store = storetest.DB{Engine: "sqlite", DSN: backup}.Open(t, store.Options{})
	musttest.Do(t, other.poll(t.Context()))
	if other.zone.Serial() <= serial || !other.zone.Has(lost) {
		t.Errorf("got the serial %d and the name %t, want more than %d and the name", other.zone.Serial(), other.zone.Has(lost), serial)
	}
	before := other.zone.Serial()
	musttest.Do(t, other.poll(t.Context()))
	if other.zone.Serial() != before {
		t.Errorf("got the serial %d after a poll without a change, want %d", other.zone.Serial(), before)
	}
}

// TestSnapshotOnFullDisk lets snapshots fail: answers continue, and it is logged once.
func TestSnapshotOnFullDisk(t *testing.T) {
	t.Parallel()
	f := newZoneFixture(t)
	name := f.publish("one.example", 0, "v=DMARC1; p=none")
	f.data = filepath.Join(f.data, "missing")
	z, stop := f.serve(f.store)
	for range 2 {
		if err := z.zone.Save(z.snapshot); err == nil {
			t.Error("got no error")
		}
	}
	f.wants(z, name, "v=DMARC1; p=none")
	f.publish("one.example", 1, "v=DMARC1; p=reject")
	stop()
	musttest.Do(t, z.poll(t.Context()))
	if err := z.save(); err == nil || z.saveFailures.Load() == 0 {
		t.Errorf("got %v and %d failures", err, z.saveFailures.Load())
	}
	musttest.Do(t, os.Mkdir(f.data, 0o700))
	musttest.Do(t, z.save())
	if again := f.listen(); again.zone.Serial() != z.zone.Serial() || len(again.servedWithout(z.zone)) != 0 {
		t.Errorf("got the serial %d want %d", again.zone.Serial(), z.zone.Serial())
	}
}
