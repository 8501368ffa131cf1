package config_test

import (
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dmarcd/dmarcd/internal/config"
)

// everyText has a value other than the default for every setting, everyValue the configuration
// with these values.
var (
	everyText = [][2]string{
		{"database", "postgres://dmarcd:secret@db.example.com:5432/dmarcd"},
		{"data", "/var/lib/dmarcd"},
		{"listen", "[::1]:9090"},
		{"base_url", "https://dmarc.example.com/v1/"},
		{"trusted_proxies", "127.0.0.1, 10.1.2.3/24,,2001:DB8::/64"},
		{"dns", "192.0.2.53:53, [2001:db8::53]:5353,,unbound:53"},
		{"smtp_listen", ":2525"},
		{"report_domain", "Reports.Example.COM."},
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
		{"senders.catalogue", "/etc/dmarcd/senders.toml"},
		{"oidc.issuer", "https://login.example.com/tenant"},
		{"oidc.client_id", "dmarcd"},
		{"oidc.client_secret", "open sesame"},
		{"oidc.domains", "example.com,example.org"},
		{"mail.relay", "smtps://user:secret@mail.example.com:465"},
		{"mail.from", "dmarcd <dmarc@example.com>"},
		{"mail.dkim_key", "/etc/dmarcd/dkim.pem"},
		{"mail.dkim_selector", "s1"},
		{"mx.probe", "off"},
	}
	everyValue = config.Config{
		Database: "postgres://dmarcd:secret@db.example.com:5432/dmarcd",
		Data:     "/var/lib/dmarcd",
		Listen:   "[::1]:9090",
		BaseURL:  "https://dmarc.example.com/v1",
		TrustedProxies: []netip.Prefix{
			netip.MustParsePrefix("127.0.0.1/32"), netip.MustParsePrefix("10.1.2.0/24"), netip.MustParsePrefix("2001:db8::/64"),
		},
		DNS:          []string{"192.0.2.53:53", "[2001:db8::53]:5353", "unbound:53"},
		SMTPListen:   ":2525",
		ReportDomain: "reports.example.com",
		Token:        goodToken,
		RateLimit:    12.5,
		Log:          config.Log{Level: slog.LevelWarn},
		HTTP:         config.HTTP{CORSOrigins: []string{"https://app.example.com", "http://localhost:3000"}},
		Resolver:     config.Resolver{Timeout: 750 * time.Millisecond},
		Outbound:     config.Outbound{Allow: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}},
		Schedule:     config.Schedule{Interval: 15 * time.Minute, Rate: 2.5},
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
		Secret:    config.Secret{File: "/etc/dmarcd/seal.key"},
		Senders:   config.Senders{Catalogue: "/etc/dmarcd/senders.toml"},
		OIDC: config.OIDC{
			Issuer: "https://login.example.com/tenant", ClientID: "dmarcd", ClientSecret: "open sesame",
			Domains: []string{"example.com", "example.org"},
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
