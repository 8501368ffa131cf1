package config_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/internal/config"
)

// TestBadValues sets one invalid value by a flag and expects an error of one line.
func TestBadValues(t *testing.T) {
	t.Parallel()
	const (
		wantDatabase = "must be the path of an SQLite file, or postgres://user:password@host:port/database"
		wantListen   = "must be host:port, such as 127.0.0.1:8080 or :8080"
		wantBaseURL  = "must be an http or https URL without user, query and fragment, such as https://dmarc.example.com/api; " +
			"its path must not start with /app, /healthz, /readyz, /metrics, /tlsrpt"
		wantProxies = "must be a comma-separated list of addresses and networks, such as 127.0.0.1,10.1.2.0/24,2001:db8::/64"
		wantDNS     = "must be a comma-separated list of host:port, such as 192.0.2.53:53,[2001:db8::53]:53"
		wantSMTP    = "must be host:port, such as :2525, or empty for no SMTP listener"
		wantDomain  = "must be a domain name, such as reports.example.com"
		wantToken   = `must be "dmd_" and 40 letters and digits, as "dmarcd token create" prints it`
		wantRate    = "must be a number from 0 (off) to 1000000"
		wantOrigins = "must be a comma-separated list of origins, such as https://app.example.com, or *"
		wantTimeout = "must be a duration from 1ms to 24h"
	)
	tests := []struct {
		name, flag, value string
		want              string // the whole line
	}{
		{
			"database of another kind", "database", "mysql://root@db/x",
			`database = "mysql://root@db/x" (flag --database): ` + wantDatabase,
		},
		{
			"database by keywords shows no password", "database", "host=db password=secret",
			`database = "***" (flag --database): ` + wantDatabase,
		},
		{
			"database by keywords without password", "database", "host=db user=x",
			`database = "host=db user=x" (flag --database): ` + wantDatabase,
		},
		{
			"database without host", "database", "postgres:///dmarcd",
			`database = "postgres:///dmarcd" (flag --database): ` + wantDatabase,
		},
		{
			"database with a bad port shows no password", "database", "postgres://u:secret@db:port/x",
			`database = "postgres://***" (flag --database): ` + wantDatabase,
		},
		{"database in memory", "database", ":memory:", `database = ":memory:" (flag --database): ` + wantDatabase},
		{"database by file URI", "database", "file:x.db", `database = "file:x.db" (flag --database): ` + wantDatabase},
		{"database with options", "database", "x.db?mode=ro", `database = "x.db?mode=ro" (flag --database): ` + wantDatabase},

		{
			"standby that is a file", "database-read", "x.db",
			`database_read = "x.db" (flag --database-read): must be postgres://user:password@host:port/database`,
		},
		{
			"standby of a file shows no password", "database-read", "postgres://u:secret@db2/x",
			`database_read = "postgres://u:***@db2/x" (flag --database-read): must be set together with a postgres:// URL in database (DMARCD_DATABASE)`,
		},

		{
			"bucket without a secret", "blobs", "https://key@s3.example.com/bucket",
			`blobs = "https://key@s3.example.com/bucket" (flag --blobs): must be https://KEY:SECRET@HOST/BUCKET, with /PREFIX and ?region=REGION where needed`,
		},
		{
			"bucket by its name shows no secret", "blobs", "s3://key:secret@bucket",
			`blobs = "s3://key:***@bucket" (flag --blobs): must be https://KEY:SECRET@HOST/BUCKET, with /PREFIX and ?region=REGION where needed`,
		},
		{"data with a zero byte", "data", "a\x00b", `data = "a\x00b" (flag --data): must be the path of a folder`},

		{"listen without port", "listen", "localhost", `listen = "localhost" (flag --listen): ` + wantListen},
		{"listen with a port too high", "listen", ":65536", `listen = ":65536" (flag --listen): ` + wantListen},
		{"listen with a negative port", "listen", ":-1", `listen = ":-1" (flag --listen): ` + wantListen},
		{"listen with a named port", "listen", ":http", `listen = ":http" (flag --listen): ` + wantListen},
		{"listen with a URL", "listen", "http://localhost:80", `listen = "http://localhost:80" (flag --listen): ` + wantListen},
		{"listen with bare IPv6", "listen", "::1:80", `listen = "::1:80" (flag --listen): ` + wantListen},
		{"listen with a zone", "listen", "[fe80::1%eth0]:80", `listen = "[fe80::1%eth0]:80" (flag --listen): ` + wantListen},
		{"listen with a blank inside", "listen", "a b:80", `listen = "a b:80" (flag --listen): ` + wantListen},

		{"base_url without scheme", "base-url", "example.com/api", `base_url = "example.com/api" (flag --base-url): ` + wantBaseURL},
		{"base_url of another scheme", "base-url", "ftp://example.com", `base_url = "ftp://example.com" (flag --base-url): ` + wantBaseURL},
		{"base_url without host", "base-url", "http:///api", `base_url = "http:///api" (flag --base-url): ` + wantBaseURL},
		{
			"base_url with a user shows no password", "base-url", "https://u:secret@example.com/api",
			`base_url = "https://u:***@example.com/api" (flag --base-url): ` + wantBaseURL,
		},
		{"base_url with a query", "base-url", "https://example.com/api?x=1", `base_url = "https://example.com/api?x=1" (flag --base-url): ` + wantBaseURL},
		{"base_url with an empty query", "base-url", "https://example.com/api?", `base_url = "https://example.com/api?" (flag --base-url): ` + wantBaseURL},
		{"base_url with a fragment", "base-url", "https://example.com/api#", `base_url = "https://example.com/api#" (flag --base-url): ` + wantBaseURL},
		{"base_url with an empty segment", "base-url", "https://example.com/a//b", `base_url = "https://example.com/a//b" (flag --base-url): ` + wantBaseURL},
		{"base_url with dots", "base-url", "https://example.com/a/../b", `base_url = "https://example.com/a/../b" (flag --base-url): ` + wantBaseURL},
		{"base_url with an escape", "base-url", "https://example.com/a%20b", `base_url = "https://example.com/a%20b" (flag --base-url): ` + wantBaseURL},
		{"base_url over the web page", "base-url", "https://example.com/app", `base_url = "https://example.com/app" (flag --base-url): ` + wantBaseURL},
		{"base_url below the web page", "base-url", "https://example.com/app/api", `base_url = "https://example.com/app/api" (flag --base-url): ` + wantBaseURL},
		{"base_url over the metrics", "base-url", "https://example.com/metrics", `base_url = "https://example.com/metrics" (flag --base-url): ` + wantBaseURL},
		{"base_url with a bad port", "base-url", "https://example.com:99999/api", `base_url = "https://example.com:99999/api" (flag --base-url): ` + wantBaseURL},

		{"proxy by its name", "trusted-proxies", "proxy.example", `trusted_proxies = "proxy.example" (flag --trusted-proxies): ` + wantProxies},
		{"proxy with a port", "trusted-proxies", "10.0.0.1:80", `trusted_proxies = "10.0.0.1:80" (flag --trusted-proxies): ` + wantProxies},
		{"one proxy of two bad", "trusted-proxies", "10.0.0.1,*", `trusted_proxies = "10.0.0.1,*" (flag --trusted-proxies): ` + wantProxies},
		{"proxies with too many bits", "trusted-proxies", "10.0.0.0/33", `trusted_proxies = "10.0.0.0/33" (flag --trusted-proxies): ` + wantProxies},
		{"proxy with a zone", "trusted-proxies", "fe80::1%eth0", `trusted_proxies = "fe80::1%eth0" (flag --trusted-proxies): ` + wantProxies},
		{
			"proxies that would match no client", "trusted-proxies", "::ffff:10.0.0.0/104",
			`trusted_proxies = "::ffff:10.0.0.0/104" (flag --trusted-proxies): ` + wantProxies,
		},

		{"dns without port", "dns", "192.0.2.53", `dns = "192.0.2.53" (flag --dns): ` + wantDNS},
		{"dns with one of two bad", "dns", "192.0.2.53:53,x", `dns = "192.0.2.53:53,x" (flag --dns): ` + wantDNS},
		{"dns with port 0", "dns", "192.0.2.53:0", `dns = "192.0.2.53:0" (flag --dns): ` + wantDNS},
		{"dns without host", "dns", ":53", `dns = ":53" (flag --dns): ` + wantDNS},

		{"mx.probe unknown", "mx-probe", "sometimes", `mx.probe = "sometimes" (flag --mx-probe): must be one of on, off`},

		{"spool unknown", "spool", "memory", `spool = "memory" (flag --spool): must be one of files, database`},
		{
			"spool in SQLite", "spool", "database",
			`spool = "database" (flag --spool): must be files unless database (DMARCD_DATABASE) is a postgres:// URL: with SQLite, the database is on the same disk`,
		},

		{"report_domain of one label", "report-domain", "example", `report_domain = "example" (flag --report-domain): ` + wantDomain},
		{"report_domain with an underscore", "report-domain", "a_b.example", `report_domain = "a_b.example" (flag --report-domain): ` + wantDomain},
		{"report_domain with an outer hyphen", "report-domain", "-a.example", `report_domain = "-a.example" (flag --report-domain): ` + wantDomain},
		{"report_domain with an empty label", "report-domain", "a..example", `report_domain = "a..example" (flag --report-domain): ` + wantDomain},
		{"report_domain is an address", "report-domain", "192.0.2.1", `report_domain = "192.0.2.1" (flag --report-domain): ` + wantDomain},
		{"report_domain is a mail address", "report-domain", "a@example.com", `report_domain = "a@example.com" (flag --report-domain): ` + wantDomain},
		{
			"report_domain with a long label", "report-domain", strings.Repeat("a", 64) + ".example",
			`report_domain = "` + strings.Repeat("a", 64) + `.example" (flag --report-domain): ` + wantDomain,
		},
		{
			"report_domain too long is cut off", "report-domain", strings.Repeat("a.", 124) + "example",
			`report_domain = "` + strings.Repeat("a.", 100) + `..." (flag --report-domain): ` + wantDomain,
		},

		{"token too short", "token", goodToken[:43], `token = "***" (flag --token): ` + wantToken},
		{"token too long", "token", goodToken + "a", `token = "***" (flag --token): ` + wantToken},
		{"token with another beginning", "token", "dmx" + goodToken[3:], `token = "***" (flag --token): ` + wantToken},
		{"token with a sign", "token", goodToken[:43] + "-", `token = "***" (flag --token): ` + wantToken},

		{"rate_limit in words", "rate-limit", "many", `rate_limit = "many" (flag --rate-limit): ` + wantRate},
		{"rate_limit below zero", "rate-limit", "-1", `rate_limit = "-1" (flag --rate-limit): ` + wantRate},
		{"rate_limit not a number", "rate-limit", "NaN", `rate_limit = "NaN" (flag --rate-limit): ` + wantRate},
		{"rate_limit infinite", "rate-limit", "Inf", `rate_limit = "+Inf" (flag --rate-limit): ` + wantRate},
		{"rate_limit too high", "rate-limit", "1000001", `rate_limit = "1000001" (flag --rate-limit): ` + wantRate},

		{"log.level unknown", "log-level", "loud", `log.level = "loud" (flag --log-level): must be one of debug, info, warn, error`},
		{"log.level with an offset", "log-level", "info+1", `log.level = "info+1" (flag --log-level): must be one of debug, info, warn, error`},
		{"log.format unknown", "log-format", "xml", `log.format = "xml" (flag --log-format): must be one of auto, text, json`},

		{"origin with a path", "http-cors-origins", "https://a.example/x", `http.cors_origins = "https://a.example/x" (flag --http-cors-origins): ` + wantOrigins},
		{"origin with a slash", "http-cors-origins", "https://a.example/", `http.cors_origins = "https://a.example/" (flag --http-cors-origins): ` + wantOrigins},
		{"origin without scheme", "http-cors-origins", "a.example", `http.cors_origins = "a.example" (flag --http-cors-origins): ` + wantOrigins},
		{
			"second origin with a password", "http-cors-origins", "https://a.example,https://u:secret@b.example",
			`http.cors_origins = "https://a.example,https://u:***@b.example" (flag --http-cors-origins): ` + wantOrigins,
		},

		{"timeout without unit", "http-read-timeout", "30", `http.read_timeout = "30" (flag --http-read-timeout): ` + wantTimeout},
		{"timeout of zero", "http-write-timeout", "0s", `http.write_timeout = "0s" (flag --http-write-timeout): ` + wantTimeout},
		{"timeout below zero", "http-idle-timeout", "-1s", `http.idle_timeout = "-1s" (flag --http-idle-timeout): ` + wantTimeout},
		{"timeout too long", "http-idle-timeout", "25h", `http.idle_timeout = "25h" (flag --http-idle-timeout): ` + wantTimeout},
		{
			"resolver.timeout too long", "resolver-timeout", "61s",
			`resolver.timeout = "1m1s" (flag --resolver-timeout): must be a duration from 1ms to 1m`,
		},
		{
			"schedule.interval too short", "schedule-interval", "1ms",
			`schedule.interval = "1ms" (flag --schedule-interval): must be a duration from 1s to 720h`,
		},
		{
			"header bytes too few", "http-max-header-bytes", "100",
			`http.max_header_bytes = "100" (flag --http-max-header-bytes): must be a size from 4KiB to 16MiB, in bytes or with KiB, MiB or GiB`,
		},
		{
			"quota.domains below zero", "quota-domains", "-1",
			`quota.domains = "-1" (flag --quota-domains): must be a whole number from 0 (no limit) to 1125899906842624`,
		},
		{
			"quota.domains not whole", "quota-domains", "1.5",
			`quota.domains = "1.5" (flag --quota-domains): must be a whole number from 0 (no limit) to 1125899906842624`,
		},
		{
			"smtp_listen without report_domain", "smtp-listen", ":2525",
			`smtp_listen = ":2525" (flag --smtp-listen): must be set together with report_domain (DMARCD_REPORT_DOMAIN), ` +
				`the domain of the reporting addresses`,
		},
		{
			"a line break stays inside the quotes", "listen", "a\nb",
			`listen = "a\nb" (flag --listen): ` + wantListen,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := config.Load(config.Input{Flags: map[string]string{tt.flag: tt.value}})
			if err == nil {
				t.Fatalf("got no error, want %s", tt.want)
			}
			if err.Error() != tt.want {
				t.Errorf("got  %s\nwant %s", err, tt.want)
			}
		})
	}

	t.Run("smtp_listen is bad itself", func(t *testing.T) {
		t.Parallel()
		flags := map[string]string{"smtp-listen": "2525", "report-domain": "example.com"}
		_, err := config.Load(config.Input{Flags: flags})
		want := `smtp_listen = "2525" (flag --smtp-listen): ` + wantSMTP
		if err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	})
}

func TestBadValueNamesItsOrigin(t *testing.T) {
	t.Parallel()
	file := writeFile(t, "dmarcd.yaml", "quota: {domains: -1}")
	want := `quota.domains = "-1" (%): must be a whole number from 0 (no limit) to 1125899906842624`
	tests := []struct {
		name   string
		in     config.Input
		origin string
	}{
		{"file", config.Input{File: file}, "file " + file},
		{"environment", config.Input{Environ: []string{"DMARCD_QUOTA_DOMAINS=-1"}}, "environment DMARCD_QUOTA_DOMAINS"},
		{"flag", config.Input{Flags: map[string]string{"quota-domains": "-1"}}, "flag --quota-domains"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := config.Load(tt.in)
			if want := strings.Replace(want, "%", tt.origin, 1); err == nil || err.Error() != want {
				t.Errorf("got  %v\nwant %s", err, want)
			}
		})
	}
}

func TestEveryBadValueHasItsLine(t *testing.T) {
	t.Parallel()
	_, err := config.Load(config.Input{
		Environ: []string{"DMARCD_LISTEN=x", "DMARCD_RATE_LIMIT=y"},
		Flags:   map[string]string{"log-format": "z"},
	})
	if err == nil {
		t.Fatal("got no error, want three lines")
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 3 {
		t.Fatalf("got %d lines, want 3:\n%v", len(lines), err)
	}
	for _, part := range []string{"DMARCD_LISTEN", "DMARCD_RATE_LIMIT", "--log-format"} {
		if n := strings.Count(err.Error(), part); n != 1 {
			t.Errorf("got %s in %d places, want 1:\n%v", part, n, err)
		}
	}
}

func TestValidateByHand(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(*config.Config)
		want   string
	}{
		{"no change", func(*config.Config) {}, ""},
		{"derived values may be empty", func(c *config.Config) { c.Database, c.BaseURL = "", "" }, ""},
		{
			"not a number", func(c *config.Config) { c.RateLimit = math.NaN() },
			`rate_limit = "NaN": must be a number from 0 (off) to 1000000`,
		},
		{"no data folder", func(c *config.Config) { c.Data = "" }, `data = "": must be the path of a folder`},
		{
			"two values", func(c *config.Config) { c.Listen, c.Schedule.Interval = "", -time.Second },
			`listen = "": must be host:port, such as 127.0.0.1:8080 or :8080` + "\n" +
				`schedule.interval = "-1s": must be a duration from 1s to 720h`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := load(t, config.Input{}).Config
			tt.change(&c)
			got := ""
			if err := c.Validate(); err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}
