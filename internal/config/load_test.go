package config_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd/internal/config"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

// goodToken has the form of a token. This package does not verify the checksum.
const goodToken = "dmd_0123456789abcdefghijABCDEFGHIJ0123456789"

// writeFile writes a configuration file to a temporary folder and returns its path.
func writeFile(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	musttest.Do(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// load calls Load and fails the test on an error.
func load(t *testing.T, in config.Input) config.Effective {
	t.Helper()
	e, err := config.Load(in)
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	return e
}

// valueOf returns the value of the setting with a flag.
func valueOf(t *testing.T, e config.Effective, flag string) config.Value {
	t.Helper()
	i := slices.IndexFunc(e.Values, func(v config.Value) bool { return v.Setting.Flag() == flag })
	if i < 0 {
		t.Fatalf("got no setting with the flag %s", flag)
	}
	return e.Values[i]
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	got := load(t, config.Input{}).Config
	want := config.Config{
		Database:  filepath.Join("data", "dmarcd.db"),
		Data:      "./data",
		Listen:    "127.0.0.1:8080",
		BaseURL:   "http://127.0.0.1:8080/api",
		RateLimit: 50,
		Log:       config.Log{Level: slog.LevelInfo},
		Resolver:  config.Resolver{Timeout: 900 * time.Millisecond},
		MX:        config.MX{Probe: config.ProbeOn},
		Schedule:  config.Schedule{Interval: time.Hour, Rate: 50},
		Limit: config.Limit{
			FreeDisk: 256 << 20, Upload: 32 << 20, Mail: 32 << 20, Expanded: 256 << 20, Ratio: 200,
			Members: 1000, Nesting: 5, Records: 1_000_000,
		},
		Intake: config.Intake{Forged: config.ForgedMark, FolderTeam: "default"},
		SMTP:   config.SMTP{Rate: 600},
		Retention: config.Retention{
			Originals: 90 * 24 * time.Hour, Records: 2 * 365 * 24 * time.Hour,
			Failure: 14 * 24 * time.Hour, Audit: 2 * 365 * 24 * time.Hour,
		},
		Secret: config.Secret{File: filepath.Join("data", "secret.key")},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
	if err := got.Validate(); err != nil {
		t.Errorf("got %v, want valid defaults", err)
	}
}

func TestPrecedence(t *testing.T) {
	t.Parallel()
	file := writeFile(t, "dmarcd.toml", `listen = "127.0.0.1:2"`)
	env := []string{"DMARCD_LISTEN=127.0.0.1:3"}
	flags := map[string]string{"listen": "127.0.0.1:4"}
	tests := []struct {
		name   string
		in     config.Input
		want   string
		origin string
	}{
		{"nothing", config.Input{}, "127.0.0.1:8080", "default"},
		{"file over default", config.Input{File: file}, "127.0.0.1:2", "file " + file},
		{"environment over file", config.Input{File: file, Environ: env}, "127.0.0.1:3", "environment DMARCD_LISTEN"},
		{"flag over environment", config.Input{File: file, Environ: env, Flags: flags}, "127.0.0.1:4", "flag --listen"},
		{"flag over file", config.Input{File: file, Flags: flags}, "127.0.0.1:4", "flag --listen"},
		{
			"empty environment means the default",
			config.Input{File: file, Environ: []string{"DMARCD_LISTEN="}},
			"127.0.0.1:8080", "environment DMARCD_LISTEN",
		},
		{
			"empty flag means the default",
			config.Input{Environ: env, Flags: map[string]string{"listen": ""}},
			"127.0.0.1:8080", "flag --listen",
		},
		{
			"the first of two variables with the same name applies",
			config.Input{Environ: []string{"DMARCD_LISTEN=:5", "DMARCD_LISTEN=:6"}},
			":5", "environment DMARCD_LISTEN",
		},
		{
			"an invalid value that is overridden is ignored",
			config.Input{Environ: []string{"DMARCD_LISTEN=nonsense"}, Flags: flags},
			"127.0.0.1:4", "flag --listen",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := load(t, tt.in)
			if got.Config.Listen != tt.want {
				t.Errorf("got listen %q, want %q", got.Config.Listen, tt.want)
			}
			if v := valueOf(t, got, "listen"); v.Text != tt.want || v.Origin != tt.origin {
				t.Errorf("got %q from %q, want %q from %q", v.Text, v.Origin, tt.want, tt.origin)
			}
		})
	}
}

func TestRateLimitZeroIsOff(t *testing.T) {
	t.Parallel()
	got := load(t, config.Input{Environ: []string{"DMARCD_RATE_LIMIT=0"}}).Config.RateLimit
	if got != 0 {
		t.Errorf("got %v, want 0", got)
	}
}

func TestValuesAreWrittenAsTheyAreRead(t *testing.T) {
	t.Parallel()
	texts := map[string]string{
		"schedule-interval": "1h0m30s",
		"resolver-timeout":  "750ms",
		"rate-limit":        "0.5",
		"log-level":         "error",
		"dns":               "192.0.2.1:53,192.0.2.2:53",
		"limit-members":     "7",
	}
	e := load(t, config.Input{Flags: texts})
	for flag, want := range texts {
		if got := valueOf(t, e, flag).Text; got != want {
			t.Errorf("%s: got %q, want %q", flag, got, want)
		}
	}
}
