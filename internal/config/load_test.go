package config_test

import (
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dmarcd/dmarcd/internal/config"
)

// goodToken has the form of a token. This package does not verify the checksum.
const goodToken = "dmd_0123456789abcdefghijABCDEFGHIJ0123456789"

// writeFile writes a configuration file to a temporary folder and returns its path.
func writeFile(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
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
		Spool:     config.SpoolFiles,
		RateLimit: 50,
		Log:       config.Log{Level: slog.LevelInfo, Format: config.FormatAuto, SlowQuery: time.Second},
		HTTP: config.HTTP{
			ReadTimeout:    30 * time.Second,
			WriteTimeout:   2 * time.Minute,
			IdleTimeout:    2 * time.Minute,
			MaxHeaderBytes: 65536, MaxConnections: 2048, MaxPerAddress: 256,
		},
		Resolver: config.Resolver{Timeout: 900 * time.Millisecond},
		MX:       config.MX{Probe: config.ProbeOn},
		Schedule: config.Schedule{Interval: time.Hour, FullInterval: 24 * time.Hour, Rate: 50},
		Quota:    config.Quota{Domains: 10_000, Stored: 10 << 30, Unreadable: 256 << 20, Reports: 20_000, Mailboxes: 20},
		Limit: config.Limit{
			FreeDisk: 256 << 20, Upload: 32 << 20, Mail: 32 << 20, Expanded: 256 << 20, Ratio: 200, RatioFrom: 1 << 20,
			Members: 1000, Nesting: 5, Records: 1_000_000, Time: time.Minute, ReadMemory: 268435456,
		},
		Intake: config.Intake{
			Forged: config.ForgedMark, FailureAddresses: config.AddressesRedact, FailureBody: config.BodyDrop,
			FolderTeam: "default", FolderInterval: 5 * time.Second,
		},
		SMTP: config.SMTP{
			MaxConnections: 200, MaxPerAddress: 20, MaxRecipients: 100, Rate: 600, Timeout: 5 * time.Minute,
		},
		IMAP: config.IMAP{Interval: 5 * time.Minute},
		Retention: config.Retention{
			Originals: 90 * 24 * time.Hour, Records: 2 * 365 * 24 * time.Hour, Rejected: 90 * 24 * time.Hour,
			Failure: 14 * 24 * time.Hour, Audit: 2 * 365 * 24 * time.Hour, Entries: 1_000_000,
		},
		Cold:   config.Cold{After: 30 * 24 * time.Hour},
		Secret: config.Secret{File: filepath.Join("data", "secret.key")},
		OIDC:   config.OIDC{Name: "single sign-on"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
	if err := got.Validate(); err != nil {
		t.Errorf("got %v, want valid defaults", err)
	}
}

func TestEverySettingFromEveryLayer(t *testing.T) {
	t.Parallel()
	want := withIntake(config.Config{
		Database:     "postgres://dmarcd:secret@db.example.com:5432/dmarcd",
		DatabaseRead: "postgres://dmarcd:secret@db2.example.com:5432/dmarcd",
		Blobs:        "https://key:secret@s3.example.com/bucket/dmarcd?region=eu-1",
		Data:         "/var/lib/dmarcd",
		Listen:       "[::1]:9090",
		BaseURL:      "https://dmarc.example.com/v1",
		TrustedProxies: []netip.Prefix{
			netip.MustParsePrefix("127.0.0.1/32"), netip.MustParsePrefix("10.1.2.0/24"), netip.MustParsePrefix("2001:db8::/64"),
		},
		DNS:          []string{"192.0.2.53:53", "[2001:db8::53]:5353", "unbound:53"},
		SMTPListen:   ":2525",
		Spool:        config.SpoolDatabase,
		ReportDomain: "reports.example.com",
		Token:        goodToken,
		RateLimit:    12.5,
		Log:          config.Log{Level: slog.LevelWarn, Format: config.FormatJSON, SlowQuery: 250 * time.Millisecond},
		HTTP: config.HTTP{
			CORSOrigins:    []string{"https://app.example.com", "http://localhost:3000"},
			ReadTimeout:    1500 * time.Millisecond,
			WriteTimeout:   time.Hour + 30*time.Minute,
			IdleTimeout:    90 * time.Second,
			MaxHeaderBytes: 8192, MaxConnections: 300, MaxPerAddress: 30,
		},
		Resolver: config.Resolver{Timeout: 750 * time.Millisecond},
		Outbound: config.Outbound{Allow: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}},
		Schedule: config.Schedule{Interval: 15 * time.Minute, FullInterval: 12 * time.Hour, Rate: 2.5},
	})
	const toml = `
database = "postgres://dmarcd:secret@db.example.com:5432/dmarcd"
database_read = "postgres://dmarcd:secret@db2.example.com:5432/dmarcd"
blobs = "https://key:secret@s3.example.com/bucket/dmarcd?region=eu-1"
data = "/var/lib/dmarcd"
listen = "[::1]:9090"
base_url = "https://dmarc.example.com/v1/"
trusted_proxies = ["127.0.0.1", "10.1.2.3/24", "2001:db8::/64"]
dns = ["192.0.2.53:53", "[2001:db8::53]:5353", "unbound:53"]
smtp_listen = ":2525"
spool = "database"
report_domain = "Reports.Example.COM."
token = "` + goodToken + `"
rate_limit = 12.5

[log]
level = "warn"
format = "json"
slow_query = "250ms"

[http]
cors_origins = ["https://app.example.com", "http://localhost:3000"]
read_timeout = "1.5s"
write_timeout = "1h30m"
idle_timeout = "90s"
max_header_bytes = 8192
max_connections = 300
max_per_address = 30

[resolver]
timeout = "750ms"

[outbound]
allow = ["10.0.0.0/8"]

[schedule]
interval = "15m"
full_interval = "12h"
rate = 2.5
`
	const yaml = `
database: postgres://dmarcd:secret@db.example.com:5432/dmarcd
database_read: postgres://dmarcd:secret@db2.example.com:5432/dmarcd
blobs: https://key:secret@s3.example.com/bucket/dmarcd?region=eu-1
data: /var/lib/dmarcd
listen: "[::1]:9090"
base_url: https://dmarc.example.com/v1/
trusted_proxies: "::ffff:127.0.0.1, 10.1.2.0/24, 2001:db8::/64"
dns:
  - 192.0.2.53:53
  - "[2001:db8::53]:5353"
  - unbound:53
smtp_listen: ":2525"
spool: database
report_domain: Reports.Example.COM.
token: ` + goodToken + `
rate_limit: 12.5
log: {level: warn, format: json, slow_query: 250ms}
http:
  cors_origins: https://app.example.com, http://localhost:3000
  read_timeout: 1.5s
  write_timeout: 1h30m
  idle_timeout: 90s
  max_header_bytes: 8192
  max_connections: 300
  max_per_address: 30
resolver.timeout: 750ms
outbound.allow: 10.0.0.0/8
schedule:
  interval: 15m
  full_interval: 12h
  rate: 2.5
`
	environ := []string{
		"DMARCD_DATABASE=postgres://dmarcd:secret@db.example.com:5432/dmarcd",
		"DMARCD_DATABASE_READ=postgres://dmarcd:secret@db2.example.com:5432/dmarcd",
		"DMARCD_BLOBS=https://key:secret@s3.example.com/bucket/dmarcd?region=eu-1",
		"DMARCD_DATA=/var/lib/dmarcd",
		"DMARCD_LISTEN=[::1]:9090",
		"DMARCD_BASE_URL=https://dmarc.example.com/v1/",
		"DMARCD_TRUSTED_PROXIES=127.0.0.1/32, 10.1.2.0/24,,2001:db8::/64",
		"DMARCD_DNS=192.0.2.53:53, [2001:db8::53]:5353,,unbound:53",
		"DMARCD_SMTP_LISTEN=:2525",
		"DMARCD_SPOOL=database",
		"DMARCD_REPORT_DOMAIN=Reports.Example.COM.",
		"DMARCD_TOKEN= " + goodToken + "\n",
		"DMARCD_RATE_LIMIT=12.5",
		"DMARCD_LOG_LEVEL=warn",
		"DMARCD_LOG_FORMAT=json",
		"DMARCD_LOG_SLOW_QUERY=250ms",
		"DMARCD_HTTP_CORS_ORIGINS=https://app.example.com,http://localhost:3000",
		"DMARCD_HTTP_READ_TIMEOUT=1.5s",
		"DMARCD_HTTP_WRITE_TIMEOUT=1h30m",
		"DMARCD_HTTP_IDLE_TIMEOUT=90s",
		"DMARCD_HTTP_MAX_HEADER_BYTES=8192",
		"DMARCD_HTTP_MAX_CONNECTIONS=300",
		"DMARCD_HTTP_MAX_PER_ADDRESS=30",
		"DMARCD_RESOLVER_TIMEOUT=750ms",
		"DMARCD_OUTBOUND_ALLOW=10.0.0.0/8",
		"DMARCD_SCHEDULE_INTERVAL=15m",
		"DMARCD_SCHEDULE_FULL_INTERVAL=12h",
		"DMARCD_SCHEDULE_RATE=2.5",
	}
	flags := map[string]string{
		"database":               "postgres://dmarcd:secret@db.example.com:5432/dmarcd",
		"database-read":          "postgres://dmarcd:secret@db2.example.com:5432/dmarcd",
		"blobs":                  "https://key:secret@s3.example.com/bucket/dmarcd?region=eu-1",
		"data":                   "/var/lib/dmarcd",
		"listen":                 "[::1]:9090",
		"base-url":               "https://dmarc.example.com/v1",
		"trusted-proxies":        "127.0.0.1,10.1.2.0/24,2001:DB8::/64",
		"dns":                    "192.0.2.53:53,[2001:db8::53]:5353,unbound:53",
		"smtp-listen":            ":2525",
		"spool":                  "database",
		"report-domain":          "reports.example.com",
		"token":                  goodToken,
		"rate-limit":             "12.5",
		"log-level":              "warn",
		"log-format":             "json",
		"log-slow-query":         "250ms",
		"http-cors-origins":      "https://app.example.com,http://localhost:3000",
		"http-read-timeout":      "1.5s",
		"http-write-timeout":     "1h30m",
		"http-idle-timeout":      "90s",
		"http-max-header-bytes":  "8192",
		"http-max-connections":   "300",
		"http-max-per-address":   "30",
		"resolver-timeout":       "750ms",
		"outbound-allow":         "10.0.0.0/8",
		"schedule-interval":      "15m",
		"schedule-full-interval": "12h",
		"schedule-rate":          "2.5",
		"json":                   "true", // a flag of a command, not a setting
	}
	tomlFile := writeFile(t, "dmarcd.toml", intakeLines("%s = %q")+toml)
	yamlFile := writeFile(t, "dmarcd.yaml", yaml+intakeLines("%s: %s"))
	ymlFile := writeFile(t, "dmarcd.yml", yaml+intakeLines("%s: %s"))
	tests := []struct {
		name   string
		in     config.Input
		origin func(config.Setting) string
	}{
		{"TOML", config.Input{File: tomlFile}, func(config.Setting) string { return "file " + tomlFile }},
		{"YAML", config.Input{File: yamlFile}, func(config.Setting) string { return "file " + yamlFile }},
		{"YAML by its other extension", config.Input{File: ymlFile}, func(config.Setting) string { return "file " + ymlFile }},
		{"environment", config.Input{Environ: append(environ, intakeEnviron()...)}, func(s config.Setting) string { return "environment " + s.Env() }},
		{"flags", config.Input{Flags: intakeFlags(flags)}, func(s config.Setting) string { return "flag --" + s.Flag() }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := load(t, tt.in)
			if diff := cmp.Diff(want, got.Config, cmpopts.EquateComparable(netip.Prefix{})); diff != "" {
				t.Errorf("configuration (-want +got):\n%s", diff)
			}
			for _, v := range got.Values {
				if want := tt.origin(v.Setting); v.Origin != want {
					t.Errorf("%s: got origin %q, want %q", v.Setting.Key, v.Origin, want)
				}
			}
			if err := got.Config.Validate(); err != nil {
				t.Errorf("got %v, want a valid configuration", err)
			}
		})
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
		"http-write-timeout": "1h30m",
		"http-read-timeout":  "1m30s",
		"http-idle-timeout":  "24h",
		"schedule-interval":  "1h0m30s",
		"resolver-timeout":   "750ms",
		"rate-limit":         "0.5",
		"log-level":          "error",
		"dns":                "192.0.2.1:53,192.0.2.2:53",
		"quota-domains":      "7",
	}
	e := load(t, config.Input{Flags: texts})
	for flag, want := range texts {
		if got := valueOf(t, e, flag).Text; got != want {
			t.Errorf("%s: got %q, want %q", flag, got, want)
		}
	}
}
