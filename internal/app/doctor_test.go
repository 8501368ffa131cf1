package app_test

import (
	"iter"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/internal/app"
	"github.com/dmarcd/dmarcd/internal/config"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/senders/mmdb"
)

// networksOf writes a database that was made at that moment, and returns its folder.
func networksOf(t *testing.T, built time.Time) string {
	t.Helper()
	file := musttest.Get(os.Create(filepath.Join(t.TempDir(), "networks.mmdb")))(t)
	defer func() {
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	}()
	var one iter.Seq2[mmdb.Range, error] = func(yield func(mmdb.Range, error) bool) {
		yield(mmdb.Range{First: netip.MustParseAddr("192.0.2.0"), Last: netip.MustParseAddr("192.0.2.255"), Number: 64496, Name: "Example"}, nil)
	}
	musttest.Do(t, mmdb.Write(file, mmdb.Options{Type: "Test", Built: built}, one))
	return filepath.Dir(file.Name())
}

func TestDoctorReportsTheAgeOfNetworks(t *testing.T) {
	t.Parallel()
	now, damaged := time.Now(), t.TempDir()
	musttest.Do(t, os.WriteFile(filepath.Join(damaged, "networks.mmdb"), []byte("damaged"), 0o600))
	for _, row := range []struct {
		name, folder string
		state        app.DiagnosisState
		message      string
	}{
		{"none", t.TempDir(), app.Advised, "no network database"},
		{"a new one", networksOf(t, now.AddDate(0, 0, -3)), app.Healthy, "3 days ago"},
		{"an old one", networksOf(t, now.AddDate(-2, 0, 0)), app.Advised, "73"},
		{"a damaged one", damaged, app.Sick, "networks.mmdb"},
	} {
		cfg := config.Config{Data: row.folder}
		cfg.Database = filepath.Join(cfg.Data, "dmarcd.db")
		for _, d := range app.Diagnose(t.Context(), cfg, nil) {
			if d.Part == "networks" && (d.State != row.state || !strings.Contains(d.What, row.message)) {
				t.Errorf("%s: got %+v, want %s that says %q", row.name, d, row.state, row.message)
			}
		}
	}
}

func TestDiagnoseProxies(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name     string
		settings []string
		want     app.DiagnosisState // "" for nothing to say
	}{
		{"nothing is set", nil, ""},
		{"no proxy", []string{"DMARCD_BASE_URL=http://dmarc.example/api"}, ""},
		{"a proxy that is not believed", []string{"DMARCD_BASE_URL=https://dmarc.example/api"}, app.Advised},
		{"a proxy that is believed", []string{"DMARCD_BASE_URL=https://dmarc.example/api", "DMARCD_TRUSTED_PROXIES=127.0.0.1"}, app.Healthy},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			environ := append([]string{"DMARCD_DATA=" + t.TempDir(), "DMARCD_DNS=127.0.0.1:1"}, row.settings...)
			effective := musttest.Get(config.Load(config.Input{Environ: environ}))(t)
			var got app.DiagnosisState
			for _, d := range app.Diagnose(t.Context(), effective.Config, environ) {
				if d.Part == "reverse proxy" {
					got = d.State
				}
			}
			if got != row.want {
				t.Errorf("got %q want %q", got, row.want)
			}
		})
	}
}
