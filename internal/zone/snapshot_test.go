package zone_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/zone"
)

// emptyZone is a zone that has only its name servers.
func emptyZone(t testing.TB) *zone.Zone {
	t.Helper()
	return musttest.Get(zone.New(apex, 0, servers()))(t)
}

// everyType has records of all types, and every octet.
func everyType() []zone.Change {
	octets := make([]byte, 600)
	for i := range octets {
		octets[i] = byte(i)
	}
	return []zone.Change{
		{Name: "octets." + apex, Records: []zone.Record{{Type: dns.TXT, Data: string(octets)}}},
		{Name: "digits." + apex, Records: []zone.Record{{Type: dns.TXT, Data: `\065 "quoted" ; comment ( \`}}},
		{Name: "empty." + apex, Records: []zone.Record{{Type: dns.TXT}, {Type: dns.TXT, Data: "second"}}},
		{Name: "_mta-sts.label." + apex, Records: []zone.Record{{Type: dns.CNAME, Data: "www.example.com"}}},
		{Name: "host." + apex, Records: []zone.Record{{Type: dns.A, Data: "192.0.2.1"}, {Type: dns.AAAA, Data: "2001:db8::1"}, {Type: zone.CAA, Data: `0 issue "ca.example; accounturi=https://ca.example/1"`}}},
	}
}

func TestSnapshot(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "zone")
	z := newZone(t)
	musttest.Do(t, z.Load(everyType()))
	musttest.Do(t, z.Save(path))
	if info := musttest.Get(os.Stat(path))(t); info.Mode().Perm() != 0o600 {
		t.Errorf("got the mode %v, want 0600", info.Mode())
	}
	restored := emptyZone(t)
	musttest.Do(t, restored.Restore(path))
	if restored.Serial() != first || !restored.Same(z) || !z.Same(restored) || restored.Size() != z.Size() {
		t.Errorf("got the serial %d and the names %v\nwant %d and %v", restored.Serial(), maps.Collect(restored.Names()), first, maps.Collect(z.Names()))
	}
	for name, records := range z.Names() {
		for _, change := range everyType() {
			if change.Name == name && name != "host."+apex && !slices.Equal(records, change.Records) {
				t.Errorf("%s: got %v want %v", name, records, change.Records)
			}
		}
		if strings.HasPrefix(name, "ns") {
			t.Errorf("got the name server %s among the names", name)
		}
	}
	if !restored.Has("HOST."+apex+".") || restored.Has("missing."+apex) || restored.Has("label."+apex) {
		t.Error("got the wrong names")
	}
	musttest.Do(t, restored.Apply(first+1, []zone.Change{{Name: "host." + apex}}))
	if restored.Same(z) || z.Same(restored) {
		t.Error("got the same without a name")
	}

	whole := musttest.Get(os.ReadFile(path))(t)
	empty := filepath.Join(t.TempDir(), "empty")
	musttest.Do(t, emptyZone(t).Save(empty))
	other := musttest.Get(zone.New("other.example.net", 1, []zone.Nameserver{{Name: "ns.example.org"}}))(t)
	musttest.Do(t, other.Save(filepath.Join(t.TempDir(), "other")))
	for name, content := range map[string][]byte{
		"cut off": whole[:len(whole)-1], "without its end": whole[:len(whole)/2], "empty": nil, "a changed octet": bytes.Replace(whole, []byte("192.0.2.1"), []byte("192.0.2.9"), 1),
		"another checksum": append(bytes.Clone(whole[:len(whole)-3]), "00\n"...), "lines after it": append(bytes.Clone(whole), '\n'),
	} {
		damaged := filepath.Join(t.TempDir(), "damaged")
		musttest.Do(t, os.WriteFile(damaged, content, 0o600))
		z := emptyZone(t)
		if err := z.Restore(damaged); err == nil || !z.Same(emptyZone(t)) || z.Serial() != 0 {
			t.Errorf("%s: got %v, the serial %d and %d names, want an error and nothing served", name, err, z.Serial(), z.Size())
		}
	}
	if err := other.Restore(path); err == nil || other.Serial() != 1 {
		t.Errorf("the snapshot of another zone: got %v and the serial %d", err, other.Serial())
	}
	if err := emptyZone(t).Restore(path + "-missing"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: got %v", err)
	}
	if err := emptyZone(t).Restore(t.TempDir()); err == nil {
		t.Error("a folder: got no error")
	}
}

// TestSnapshotOfManyNames restores more names than are loaded at once.
func TestSnapshotOfManyNames(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "zone")
	z := newZone(t)
	var many []zone.Change
	for i := range 2500 {
		many = append(many, zone.Change{Name: fmt.Sprintf("n%d.%s", i, apex), Records: []zone.Record{{Type: dns.TXT, Data: "v=DMARC1; p=none"}}})
	}
	musttest.Do(t, z.Load(many))
	musttest.Do(t, z.Save(path))
	restored := emptyZone(t)
	musttest.Do(t, restored.Restore(path))
	if !restored.Same(z) {
		t.Errorf("got %d names want %d", restored.Size(), z.Size())
	}
}

// TestSnapshotThatCannotBeWritten checks that the last one stays as it is.
func TestSnapshotThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, "zone")
	z := newZone(t)
	musttest.Do(t, z.Save(path))
	before := musttest.Get(os.ReadFile(path))(t)
	musttest.Do(t, z.Apply(first+1, everyType()))
	if err := z.Save(filepath.Join(folder, "missing", "zone")); err == nil {
		t.Error("a missing folder: got no error")
	}
	musttest.Do(t, os.Mkdir(filepath.Join(folder, "taken"), 0o700))
	if err := z.Save(filepath.Join(folder, "taken")); err == nil {
		t.Error("a folder with its name: got no error")
	}
	if after := musttest.Get(os.ReadFile(path))(t); !bytes.Equal(before, after) {
		t.Error("got another file")
	}
	if left := musttest.Get(os.ReadDir(folder))(t); len(left) != 2 {
		t.Errorf("got %v, want no temporary file", left)
	}
}

func TestBecome(t *testing.T) {
	t.Parallel()
	z := newZone(t)
	musttest.Do(t, z.Apply(first+1, nil))
	fresh := emptyZone(t)
	musttest.Do(t, fresh.Load(everyType()))
	z.Become(fresh, first+5)
	if z.Serial() != first+5 || z.Has("text."+apex) || !z.Has("host."+apex) {
		t.Errorf("got the serial %d and the names %v", z.Serial(), maps.Collect(z.Names()))
	}
	musttest.Do(t, z.Apply(first+6, nil))
}

// FuzzRestore reads files as snapshots: what is served is what a second snapshot has, and nothing of
// a file that is not whole.
func FuzzRestore(f *testing.F) {
	path := filepath.Join(f.TempDir(), "zone")
	z := newZone(f)
	musttest.Do(f, z.Load(everyType()))
	musttest.Do(f, z.Save(path))
	whole := musttest.Get(os.ReadFile(path))(f)
	f.Add(whole[:len(whole)-74])
	f.Add([]byte("dns.example.net. 300 IN SOA ns. mail. 7 1 1 1 1\n$GENERATE 1-9 a$ TXT x\n"))
	f.Add([]byte("dns.example.net. 300 IN SOA ns. mail. 7 1 1 1 1\na.dns.example.net. TXT \"\\100\\\"\"\na.dns.example.net. A 192.0.2.1\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		z := emptyZone(t)
		if err := z.RestoreBody(body); err != nil {
			return
		}
		again := emptyZone(t)
		if err := again.RestoreBody(z.SnapshotBody()); err != nil || !again.Same(z) || again.Serial() != z.Serial() {
			t.Errorf("got %v and %v, %v\nwant %v", again.Serial(), maps.Collect(again.Names()), err, maps.Collect(z.Names()))
		}
	})
}
