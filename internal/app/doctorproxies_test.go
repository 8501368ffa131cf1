package app_test

import (
	"testing"

	"github.com/dmarcd/dmarcd/internal/app"
	"github.com/dmarcd/dmarcd/internal/config"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

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
