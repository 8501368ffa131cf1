package senders_test

import (
	"iter"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/senders"
	"github.com/dmarcd/dmarcd/internal/senders/mmdb"
)

var built = time.Date(2026, 6, 17, 0, 0, 0, 0, time.UTC)

func ranges() []mmdb.Range {
	return []mmdb.Range{
		{First: netip.MustParseAddr("192.0.2.0"), Last: netip.MustParseAddr("192.0.2.127"), Number: 64496, Name: "Network One", Country: "NL"},
		{First: netip.MustParseAddr("198.51.100.3"), Last: netip.MustParseAddr("198.51.100.9"), Number: 65551, Name: `Two "and", more`},
		{First: netip.MustParseAddr("2001:db8::"), Last: netip.MustParseAddr("2001:db8:ffff:ffff:ffff:ffff:ffff:ffff"), Number: 64497, Name: "Six", Country: "NZ"},
		{First: netip.MustParseAddr("203.0.113.0"), Last: netip.MustParseAddr("203.0.113.255"), Country: "??"},
	}
}

func sequence(all []mmdb.Range) iter.Seq2[mmdb.Range, error] {
	return func(yield func(mmdb.Range, error) bool) {
		for _, r := range all {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// writeDatabase makes a database of ranges in a folder of the test.
func writeDatabase(t testing.TB, kind, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	file := musttest.Get(os.Create(path))(t)
	musttest.Do(t, mmdb.Write(file, mmdb.Options{Type: kind, Description: "A test.", Built: built}, sequence(ranges())))
	musttest.Do(t, file.Close())
	return path
}

func openAtlas(t testing.TB, files senders.Files) *senders.Atlas {
	t.Helper()
	atlas, err := senders.OpenAtlas(files)
	if err != nil {
		t.Fatalf("got %v, want an atlas", err)
	}
	return atlas
}

func TestLocate(t *testing.T) {
	t.Parallel()
	path := writeDatabase(t, "Test", "both.mmdb")
	both := openAtlas(t, senders.Files{Networks: path, Countries: path})
	for _, test := range []struct {
		name  string
		atlas *senders.Atlas
		addr  string
		want  senders.Origin
	}{
		{"IPv4", both, "192.0.2.127", senders.Origin{Network: senders.Network{Number: 64496, Name: "Network One"}, Country: "NL"}},
		{"IPv4 in the clothes of IPv6", both, "::ffff:192.0.2.1", senders.Origin{Network: senders.Network{Number: 64496, Name: "Network One"}, Country: "NL"}},
		{"after the end of a range", both, "192.0.2.128", senders.Origin{}},
		{"a range that is no prefix", both, "198.51.100.9", senders.Origin{Network: senders.Network{Number: 65551, Name: `Two "and", more`}}},
		{"before it", both, "198.51.100.2", senders.Origin{}},
		{"IPv6", both, "2001:db8::25", senders.Origin{Network: senders.Network{Number: 64497, Name: "Six"}, Country: "NZ"}},
		{"IPv6 with a zone", both, "2001:db8::25%eth0", senders.Origin{Network: senders.Network{Number: 64497, Name: "Six"}, Country: "NZ"}},
		{"a country that is none", both, "203.0.113.1", senders.Origin{}},
		{"no database", &senders.Atlas{}, "192.0.2.1", senders.Origin{}},
		{"networks alone", openAtlas(t, senders.Files{Networks: path}), "192.0.2.1", senders.Origin{Network: senders.Network{Number: 64496, Name: "Network One"}}},
		{"countries alone", openAtlas(t, senders.Files{Countries: path}), "192.0.2.1", senders.Origin{Country: "NL"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := test.atlas.Locate(netip.MustParseAddr(test.addr)); got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
	if got := both.Locate(netip.Addr{}); got != (senders.Origin{}) {
		t.Errorf("got %+v for no address, want nothing", got)
	}
}

func TestDatabases(t *testing.T) {
	t.Parallel()
	ours := writeDatabase(t, senders.NetworksType, senders.NetworksFile)
	other := writeDatabase(t, "Other", senders.CountriesFile)
	want := []senders.Database{
		{Path: ours, Type: senders.NetworksType, Built: built},
		{Path: other, Type: "Other", Built: built},
	}
	files := senders.FindFiles(t.TempDir(), filepath.Dir(ours), filepath.Dir(other))
	if diff := cmp.Diff(want, openAtlas(t, files).Databases()); diff != "" {
		t.Errorf("got other databases (-want +got):\n%s", diff)
	}
	if got := openAtlas(t, senders.Files{Networks: ours, Countries: ours}).Databases(); len(got) != 1 {
		t.Errorf("got %d databases of one file, want 1", len(got))
	}
	if got := senders.FindFiles(t.TempDir()); got != (senders.Files{}) {
		t.Errorf("got %+v in an empty folder, want nothing", got)
	}
}

func TestAttributions(t *testing.T) {
	t.Parallel()
	ours := openAtlas(t, senders.Files{Networks: writeDatabase(t, senders.NetworksType, "n.mmdb")})
	if got := ours.Attributions(); len(got) == 0 || got[0].URL != "https://db-ip.com" {
		t.Errorf("got %+v, want the link that DB-IP asks for first", got)
	}
	theirs := openAtlas(t, senders.Files{Networks: writeDatabase(t, "GeoLite2-ASN", "n.mmdb")})
	if got := theirs.Attributions(); got != nil {
		t.Errorf("got %+v for a database of the operator, want nothing", got)
	}
	if got := (&senders.Atlas{}).Attributions(); got != nil {
		t.Errorf("got %+v without a database, want nothing", got)
	}
}

func TestOpenAtlasRejects(t *testing.T) {
	t.Parallel()
	broken := filepath.Join(t.TempDir(), "broken.mmdb")
	musttest.Do(t, os.WriteFile(broken, []byte("no database"), 0o600))
	good := writeDatabase(t, "Test", "good.mmdb")
	for _, test := range []struct {
		name  string
		files senders.Files
	}{
		{"networks that are not there", senders.Files{Networks: broken + ".gone"}},
		{"countries that are not there", senders.Files{Networks: good, Countries: broken + ".gone"}},
		{"a file that is no database", senders.Files{Networks: broken}},
		{"a folder", senders.Files{Networks: filepath.Dir(good)}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if _, err := senders.OpenAtlas(test.files); err == nil {
				t.Error("got an atlas, want an error")
			}
		})
	}
}
