package main

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/senders"
)

func write(t *testing.T, folder, name, text string) string {
	t.Helper()
	path := filepath.Join(folder, name)
	musttest.Do(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestRun(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	v4 := write(t, folder, "v4.csv", "192.0.2.0,192.0.2.255,64496,\"One, Inc.\"\n198.51.100.0,198.51.100.127,64497,Two\n")
	v6 := write(t, folder, "v6.csv", "2001:db8::,2001:db8::ffff,64498,Three\n")
	out := write(t, folder, "networks.mmdb", "what was there before")
	if err := run(out, "2026-06-17", []string{v4, v6}); err != nil {
		t.Fatalf("got %v, want a database", err)
	}
	atlas, err := senders.OpenAtlas(senders.Files{Networks: out})
	if err != nil {
		t.Fatalf("got %v, want a database that can be read", err)
	}
	for addr, want := range map[string]senders.Network{
		"192.0.2.77":     {Number: 64496, Name: "One, Inc."},
		"198.51.100.127": {Number: 64497, Name: "Two"},
		"198.51.100.128": {},
		"2001:db8::1":    {Number: 64498, Name: "Three"},
	} {
		if got := atlas.Locate(netip.MustParseAddr(addr)).Network; got != want {
			t.Errorf("%s: got %+v, want %+v", addr, got, want)
		}
	}
	if got := atlas.Databases()[0].Built.Format("2006-01-02"); got != "2026-06-17" {
		t.Errorf("got a database of %s, want the day given", got)
	}
	if len(atlas.Attributions()) == 0 {
		t.Error("got no attribution, want those of the data")
	}
}

func TestRunRejects(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, csv, built, want string }{
		{"an invalid address", "192.0.2.0,192.0.2.255,1,One\nx,192.0.2.9,2,Two\n", "2026-06-17", "line 2"},
		{"an invalid number", "192.0.2.0,192.0.2.255,-1,One\n", "2026-06-17", "line 1"},
		{"a short row", "192.0.2.0,192.0.2.255,1\n", "2026-06-17", "fields"},
		{"a range that ends before it begins", "192.0.2.9,192.0.2.1,1,One\n", "2026-06-17", "192.0.2.9"},
		{"an invalid day", "192.0.2.0,192.0.2.255,1,One\n", "June", "day"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			out := write(t, folder, "networks.mmdb", "before")
			err := run(out, test.built, []string{write(t, folder, "rows.csv", test.csv)})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error that names %q", err, test.want)
			}
			if content, err := os.ReadFile(out); err != nil || string(content) != "before" {
				t.Errorf("got %q, %v in the old file, want it as it was", content, err)
			}
			if left, err := filepath.Glob(filepath.Join(folder, ".networks-*")); err != nil || len(left) != 0 {
				t.Errorf("got %v left behind, want nothing", left)
			}
		})
	}
}
