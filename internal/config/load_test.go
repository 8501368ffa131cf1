package config_test

import (
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

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
		Database:    filepath.Join("data", "dmarcd.db"),
		Data:        "./data",
		Listen:      "127.0.0.1:8080",
		BaseURL:     "http://127.0.0.1:8080/api",
		TLS:         config.TLSOff,
		DomainProof: config.ProofOff,
		ZoneListen:  ":53",
		RateLimit:   50,
		Log:         config.Log{Level: slog.LevelInfo},
		Resolver:    config.Resolver{Timeout: 900 * time.Millisecond},
		MX:          config.MX{Probe: config.ProbeOn},
		Schedule:    config.Schedule{Interval: time.Hour, Rate: 50},
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
		OIDC:   config.OIDC{GroupsClaim: "groups"},
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

func TestSecretsAreMasked(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, flag, value, want string }{
		{"token", "token", goodToken, "***"},
		{"no token", "token", "", ""},
		{"SQLite file", "database", "/srv/a.db", "/srv/a.db"},
		{"no password", "database", "postgres://u@h:5432/d?sslmode=require", "postgres://u@h:5432/d?sslmode=require"},
		{"no user", "database", "postgres://h/d", "postgres://h/d"},
		{"password", "database", "postgres://u:secret@h:5432/d?sslmode=require", "postgres://u:***@h:5432/d?sslmode=require"},
		{"other scheme word", "database", "postgresql://u:secret@h/d", "postgresql://u:***@h/d"},
		{"empty password", "database", "postgres://u:@h/d", "postgres://u:***@h/d"},
		{"encoded password", "database", "postgres://u:s%40e%2Fc@h/d", "postgres://u:***@h/d"},
		{"encoded user", "database", "postgres://u%40x:secret@h/d", "postgres://u%40x:***@h/d"},
		{"several hosts", "database", "postgres://u:secret@h1:1,h2:2/d", "postgres://u:***@h1:1,h2:2/d"},
		{"password as a parameter", "database", "postgres://u@h/d?password=secret&sslmode=require", "postgres://u@h/d?password=***&sslmode=require"},
		{"password of the key", "database", "postgres://u@h/d?sslpassword=secret", "postgres://u@h/d?sslpassword=***"},
		{"encoded name of the parameter", "database", "postgres://u@h/d?pass%77ord=secret", "postgres://u@h/d?pass%77ord=***"},
		{"password with a bare at sign", "database", "postgres://u:se@cret@h/d", "postgres://***"},
		{"password with a bare slash", "database", "postgres://u:1/secret@h/d", "postgres://***"},
		{"password with a bare question mark", "database", "postgres://u:1?secret@h/d", "postgres://***"},
		{"password with a bare number sign", "database", "postgres://u:1#secret@h/d", "postgres://***"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := load(t, config.Input{Flags: map[string]string{tt.flag: tt.value}})
			if got := valueOf(t, e, tt.flag).Text; got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// everyText has a value other than the default for every setting, everyValue the configuration
// with these values.
var (
	everyText = [][2]string{
		{"database", "postgres://dmarcd:secret@db.example.com:5432/dmarcd"},
		{"data", "/var/lib/dmarcd"},
		{"listen", "[::1]:9090"},
		{"base_url", "https://dmarc.example.com/v1/"},
		{"tls", "files"},
		{"tls_certificate", "web.crt"},
		{"tls_key", "web.key"},
		{"acme.directory", "https://ca.example.com/directory"},
		{"acme.email", "dmarc@example.com"},
		{"trusted_proxies", "127.0.0.1, 10.1.2.3/24,,2001:DB8::/64"},
		{"dns", "192.0.2.53:53, [2001:db8::53]:5353,,unbound:53"},
		{"smtp_listen", ":2525"},
		{"report_domain", "Reports.Example.COM."},
		{"domain_proof", "on"},
		{"token", goodToken},
		{"rate_limit", "12.5"},
		{"log.level", "warn"},
		{"http.cors_origins", "https://app.example.com,http://localhost:3000"},
		{"resolver.timeout", "750ms"},
		{"outbound.allow", "10.0.0.0/8"},
		{"schedule.interval", "15m"},
		{"schedule.rate", "2.5"},
		{"limit.upload", "1048576"},
		{"limit.mail", "2097152"},
		{"limit.expanded", "4194304"},
		{"limit.ratio", "50"},
		{"limit.members", "10"},
		{"limit.nesting", "3"},
		{"limit.records", "5000"},
		{"limit.free_disk", "1024"},
		{"intake.forged", "refuse"},
		{"intake.folder", "/srv/drop"},
		{"intake.folder_team", "Mail operations"},
		{"smtp.certificate", "/etc/dmarcd/mx.pem"},
		{"smtp.key", "/etc/dmarcd/mx.key"},
		{"smtp.rate", "0.5"},
		{"retention.originals", "720h"},
		{"retention.records", "8760h"},
		{"retention.failure", "24h"},
		{"retention.audit", "8760h"},
		{"secret.file", "/etc/dmarcd/seal.key"},
		{"secret.key", "dmarcd-key-1:x"},
		{"secret.command", "vault kv get dmarcd"},
		{"senders.catalogue", "/etc/dmarcd/senders.toml"},
		{"oidc.issuer", "https://login.example.com/tenant"},
		{"oidc.client_id", "dmarcd"},
		{"oidc.client_secret", "open sesame"},
		{"oidc.domains", "example.com,example.org=viewer:acme"},
		{"oidc.groups", "staff=viewer:acme"},
		{"oidc.groups_claim", "roles"},
		{"mail.relay", "smtps://user:secret@mail.example.com:465"},
		{"mail.from", "dmarcd <dmarc@example.com>"},
		{"mail.dkim_key", "/etc/dmarcd/dkim.pem"},
		{"mail.dkim_selector", "s1"},
		{"mx.probe", "off"},
		{"zone", "dns.example.net"},
		{"zone_listen", "192.0.2.53:53"},
		{"zone_nameservers", "ns1.dns.example.net=192.0.2.53,ns2.example.org,ns1.dns.example.net=2001:db8::53"},
		{"zone_addresses", "192.0.2.80,2001:db8::80"},
		{"zone_secondaries", "192.0.2.54=transfer:c2VjcmV0,[2001:db8::54]:5353=hmac-sha512:transfer:c2VjcmV0"},
	}
	everyValue = config.Config{
		Database: "postgres://dmarcd:secret@db.example.com:5432/dmarcd",
		Data:     "/var/lib/dmarcd",
		Listen:   "[::1]:9090",
		BaseURL:  "https://dmarc.example.com/v1",
		TLS:      config.TLSFiles, TLSCertificate: "web.crt", TLSKey: "web.key",
		ACME: config.ACME{Directory: "https://ca.example.com/directory", Email: "dmarc@example.com"},
		TrustedProxies: []netip.Prefix{
			netip.MustParsePrefix("127.0.0.1/32"), netip.MustParsePrefix("10.1.2.0/24"), netip.MustParsePrefix("2001:db8::/64"),
		},
		DNS:          []string{"192.0.2.53:53", "[2001:db8::53]:5353", "unbound:53"},
		SMTPListen:   ":2525",
		ReportDomain: "reports.example.com",
		DomainProof:  config.ProofOn,
		Zone:         "dns.example.net", ZoneListen: "192.0.2.53:53",
		ZoneNameservers: []string{"ns1.dns.example.net=192.0.2.53", "ns2.example.org", "ns1.dns.example.net=2001:db8::53"},
		ZoneAddresses:   []string{"192.0.2.80", "2001:db8::80"},
		ZoneSecondaries: []string{"192.0.2.54=transfer:c2VjcmV0", "[2001:db8::54]:5353=hmac-sha512:transfer:c2VjcmV0"},
		Token:           goodToken,
		RateLimit:       12.5,
		Log:             config.Log{Level: slog.LevelWarn},
		HTTP:            config.HTTP{CORSOrigins: []string{"https://app.example.com", "http://localhost:3000"}},
		Resolver:        config.Resolver{Timeout: 750 * time.Millisecond},
		Outbound:        config.Outbound{Allow: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}},
		Schedule:        config.Schedule{Interval: 15 * time.Minute, Rate: 2.5},
		Mail: config.Mail{
			Relay: "smtps://user:secret@mail.example.com:465", From: "dmarcd <dmarc@example.com>", DKIMKey: "/etc/dmarcd/dkim.pem", DKIMSelector: "s1",
		},
		Limit: config.Limit{
			Upload: 1 << 20, Mail: 2 << 20, Expanded: 4 << 20, Ratio: 50,
			Members: 10, Nesting: 3, Records: 5000, FreeDisk: 1024,
		},
		Intake: config.Intake{
			Forged: config.ForgedReject, Folder: "/srv/drop", FolderTeam: "Mail operations",
		},
		SMTP: config.SMTP{
			Certificate: "/etc/dmarcd/mx.pem", Key: "/etc/dmarcd/mx.key", Rate: 0.5,
		},
		MX:        config.MX{Probe: config.ProbeOff},
		Retention: config.Retention{Originals: 720 * time.Hour, Records: 8760 * time.Hour, Failure: 24 * time.Hour, Audit: 8760 * time.Hour},
		Secret:    config.Secret{File: "/etc/dmarcd/seal.key", Key: "dmarcd-key-1:x", Command: "vault kv get dmarcd"},
		Senders:   config.Senders{Catalogue: "/etc/dmarcd/senders.toml"},
		OIDC: config.OIDC{
			Issuer: "https://login.example.com/tenant", ClientID: "dmarcd", ClientSecret: "open sesame",
			Domains: []string{"example.com", "example.org=viewer:acme"}, Groups: []string{"staff=viewer:acme"}, GroupsClaim: "roles",
		},
	}
)

// lines formats each key and text of everyText as a line.
func lines(format string) string {
	var b strings.Builder
	for _, text := range everyText {
		fmt.Fprintf(&b, format+"\n", text[0], text[1])
	}
	return b.String()
}

func TestEverySettingFromEveryLayer(t *testing.T) {
	t.Parallel()
	var environ []string
	flags := map[string]string{"json": "true"} // a flag of a command, not a setting
	for _, text := range everyText {
		environ = append(environ, "DMARCD_"+strings.ToUpper(strings.ReplaceAll(text[0], ".", "_"))+"= "+text[1]+"\n")
		flags[strings.NewReplacer(".", "-", "_", "-").Replace(text[0])] = text[1]
	}
	tomlFile := writeFile(t, "dmarcd.toml", lines("%s = %q"))
	yamlFile := writeFile(t, "dmarcd.yaml", lines("%s: %q"))
	ymlFile := writeFile(t, "dmarcd.yml", lines("%s: %q"))
	tests := []struct {
		name   string
		in     config.Input
		origin func(config.Setting) string
	}{
		{"TOML", config.Input{File: tomlFile}, func(config.Setting) string { return "file " + tomlFile }},
		{"YAML", config.Input{File: yamlFile}, func(config.Setting) string { return "file " + yamlFile }},
		{"YAML by its other extension", config.Input{File: ymlFile}, func(config.Setting) string { return "file " + ymlFile }},
		{"environment", config.Input{Environ: environ}, func(s config.Setting) string { return "environment " + s.Env() }},
		{"flags", config.Input{Flags: flags}, func(s config.Setting) string { return "flag --" + s.Flag() }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := load(t, tt.in)
			if diff := cmp.Diff(everyValue, got.Config, cmpopts.EquateComparable(netip.Prefix{})); diff != "" {
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

// TestFormsOfFiles writes settings with lists, numbers and sections, as the formats of files have
// them.
func TestFormsOfFiles(t *testing.T) {
	t.Parallel()
	want := load(t, config.Input{Flags: map[string]string{
		"trusted-proxies": "127.0.0.1,10.1.2.0/24", "dns": "192.0.2.53:53,unbound:53", "rate-limit": "12.5", "log-level": "warn",
		"http-cors-origins": "https://app.example.com,http://localhost:3000", "resolver-timeout": "750ms", "schedule-rate": "2.5",
	}}).Config
	for name, content := range map[string]string{
		"a.toml": `
trusted_proxies = ["127.0.0.1", "10.1.2.3/24"]
dns = ["192.0.2.53:53", "unbound:53"]
rate_limit = 12.5

[log]
level = "warn"

[http]
cors_origins = ["https://app.example.com", "http://localhost:3000"]

[resolver]
timeout = "750ms"

[schedule]
rate = 2.5
`,
		"a.yaml": `
trusted_proxies: "::ffff:127.0.0.1, 10.1.2.0/24"
dns:
  - 192.0.2.53:53
  - unbound:53
rate_limit: 12.5
log: {level: warn}
http:
  cors_origins: https://app.example.com, http://localhost:3000
resolver.timeout: 750ms
schedule:
  rate: 2.5
`,
	} {
		got := load(t, config.Input{File: writeFile(t, name, content)}).Config
		if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Prefix{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
