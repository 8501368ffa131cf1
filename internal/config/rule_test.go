package config_test

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/internal/config"
)

// client are the flags of a client of an identity provider.
var client = map[string]string{"oidc-client-id": "dmarcd", "oidc-client-secret": "open sesame"}

// zoneName and zoneServers are the flags of a zone.
var (
	zoneName    = map[string]string{"zone": "dns.example.net"}
	zoneServers = map[string]string{"zone-nameservers": "ns1.example.org,ns2.example.org"}
)

// with returns flags with one more.
func with(flags map[string]string, name, value string) map[string]string {
	flags = maps.Clone(flags)
	flags[name] = value
	return flags
}

// TestBadValues sets one invalid value by a flag and expects an error of one line.
func TestBadValues(t *testing.T) {
	t.Parallel()
	const (
		wantDatabase = "must be the path of an SQLite file, or postgres://user:password@host:port/database"
		wantListen   = "must be host:port, such as 127.0.0.1:8080 or :8080"
		wantBaseURL  = "must be an http or https URL without user, query and fragment, such as https://dmarc.example.com/api; " +
			"its path must not start with /app, /healthz, /readyz, /metrics, /mcp, /tlsrpt"
		wantProxies  = "must be a comma-separated list of addresses and networks, such as 127.0.0.1,10.1.2.0/24,2001:db8::/64"
		wantDNS      = "must be a comma-separated list of host:port, such as 192.0.2.53:53,[2001:db8::53]:53"
		wantSMTP     = "must be host:port, such as :2525, or empty for no SMTP listener"
		wantDomain   = "must be a domain name, such as reports.example.com"
		wantToken    = `must be "dmd_" and 40 letters and digits, as "dmarcd token create" prints it`
		wantRate     = "must be a number from 0 (off) to 1000000"
		wantOrigins  = "must be a comma-separated list of origins, such as https://app.example.com, or *"
		wantZone     = "must be set together with zone_nameservers (DMARCD_ZONE_NAMESERVERS)"
		wantOwnZone  = "must be a domain of its own, without report_domain (DMARCD_REPORT_DOMAIN) and the host of base_url (DMARCD_BASE_URL): dmarcd would not answer for them"
		wantServers  = "must be a comma-separated list of at least two name servers, each a name or name=address"
		wantGlue     = "must be given with an address for each name inside of zone, such as ns1.dns.example.net=192.0.2.53"
		wantTransfer = "must be a comma-separated list of address[:port]=[algorithm:]name:secret, with the secret of the TSIG key in base64"
		wantAge      = "must be a duration from 1h to 876000h, or 0s (forever)"
		wantIssuer   = "must be an https URL without query and fragment, such as https://login.example.com; http is for a provider on the same machine"
		wantTLS      = "must be off unless base_url (DMARCD_BASE_URL) begins with https:// and a host name"
		wantTLSFiles = "must be set together with tls_key (DMARCD_TLS_KEY) and tls (DMARCD_TLS) files, and only with them"
		wantClient   = "must be set together with oidc.client_id and oidc.client_secret (DMARCD_OIDC_CLIENT_ID, DMARCD_OIDC_CLIENT_SECRET), as issued by the provider"
	)
	tests := []struct {
		name, flag, value string
		shown             string            // the value in the error, if it is another
		others            map[string]string // flags
		want              string
	}{
		{name: "database of another kind", flag: "database", value: "mysql://root@db/x", want: wantDatabase},
		{name: "database by keywords shows no password", flag: "database", value: "host=db password=secret", shown: "***", want: wantDatabase},
		{name: "database by keywords without password", flag: "database", value: "host=db user=x", want: wantDatabase},
		{name: "database without host", flag: "database", value: "postgres:///dmarcd", want: wantDatabase},
		{name: "database with a bad port shows no password", flag: "database", value: "postgres://u:secret@db:port/x", shown: "postgres://***", want: wantDatabase},
		{name: "database in memory", flag: "database", value: ":memory:", want: wantDatabase},
		{name: "database by file URI", flag: "database", value: "file:x.db", want: wantDatabase},
		{name: "database with options", flag: "database", value: "x.db?mode=ro", want: wantDatabase},

		{name: "data with a zero byte", flag: "data", value: "a\x00b", want: "must be the path of a folder"},

		{name: "zone that is no domain", flag: "zone", value: "dns", others: zoneServers, want: wantDomain},
		{name: "zone without name servers", flag: "zone", value: "dns.example.net", want: wantZone},
		{name: "zone with the report domain", flag: "zone", value: "dns.example.net", others: with(zoneServers, "report-domain", "in.dns.example.net"), want: wantOwnZone},
		{name: "zone that is the report domain", flag: "zone", value: "dns.example.net", others: with(zoneServers, "report-domain", "dns.example.net"), want: wantOwnZone},
		{name: "zone with the host of the page", flag: "zone", value: "dns.example.net", others: with(zoneServers, "base-url", "https://DMARC.dns.example.net/api"), want: wantOwnZone},
		{name: "listener of the zone without port", flag: "zone-listen", value: "192.0.2.53", want: "must be host:port, such as :53"},
		{name: "one name server", flag: "zone-nameservers", value: "ns1.example.org=192.0.2.1,ns1.example.org=192.0.2.2", others: zoneName, want: wantServers},
		{name: "a name server with a bad address", flag: "zone-nameservers", value: "ns1.example.org,ns2.example.org=x", others: zoneName, want: wantServers},
		{name: "a name server with a bad name", flag: "zone-nameservers", value: "ns1.example.org,n s", others: zoneName, want: wantServers},
		{name: "a name server in the zone without an address", flag: "zone-nameservers", value: "ns1.example.org,ns2.dns.example.net", others: zoneName, want: wantGlue},
		{name: "a secondary without a key", flag: "zone-secondaries", value: "192.0.2.1", shown: "***", others: with(zoneServers, "zone", "dns.example.net"), want: wantTransfer},
		{name: "a secondary by name", flag: "zone-secondaries", value: "ns.example.org=key:c2VjcmV0", shown: "***", others: with(zoneServers, "zone", "dns.example.net"), want: wantTransfer},
		{name: "addresses without a zone", flag: "zone-addresses", value: "192.0.2.1", want: "must be empty without zone (DMARCD_ZONE)"},
		{name: "addresses that are names", flag: "zone-addresses", value: "www.example.com", others: with(zoneServers, "zone", "dns.example.net"), want: "must be a comma-separated list of IP addresses"},
		{name: "secondaries without a zone", flag: "zone-secondaries", value: "192.0.2.1=key:c2VjcmV0", shown: "***", want: "must be empty without zone (DMARCD_ZONE)"},

		{name: "listen without port", flag: "listen", value: "localhost", want: wantListen},
		{name: "listen with a port too high", flag: "listen", value: ":65536", want: wantListen},
		{name: "listen with a negative port", flag: "listen", value: ":-1", want: wantListen},
		{name: "listen with a named port", flag: "listen", value: ":http", want: wantListen},
		{name: "listen with a URL", flag: "listen", value: "http://localhost:80", want: wantListen},
		{name: "listen with bare IPv6", flag: "listen", value: "::1:80", want: wantListen},
		{name: "listen with a zone", flag: "listen", value: "[fe80::1%eth0]:80", want: wantListen},
		{name: "listen with a blank inside", flag: "listen", value: "a b:80", want: wantListen},

		{name: "base_url without scheme", flag: "base-url", value: "example.com/api", want: wantBaseURL},
		{name: "base_url of another scheme", flag: "base-url", value: "ftp://example.com", want: wantBaseURL},
		{name: "base_url without host", flag: "base-url", value: "http:///api", want: wantBaseURL},
		{name: "base_url with a user shows no password", flag: "base-url", value: "https://u:secret@example.com/api", shown: "https://u:***@example.com/api", want: wantBaseURL},
		{name: "base_url with a query", flag: "base-url", value: "https://example.com/api?x=1", want: wantBaseURL},
		{name: "base_url with an empty query", flag: "base-url", value: "https://example.com/api?", want: wantBaseURL},
		{name: "base_url with a fragment", flag: "base-url", value: "https://example.com/api#", want: wantBaseURL},
		{name: "base_url with an empty segment", flag: "base-url", value: "https://example.com/a//b", want: wantBaseURL},
		{name: "base_url with dots", flag: "base-url", value: "https://example.com/a/../b", want: wantBaseURL},
		{name: "base_url with an escape", flag: "base-url", value: "https://example.com/a%20b", want: wantBaseURL},
		{name: "base_url over the web page", flag: "base-url", value: "https://example.com/app", want: wantBaseURL},
		{name: "base_url below the web page", flag: "base-url", value: "https://example.com/app/api", want: wantBaseURL},
		{name: "base_url over the assistants", flag: "base-url", value: "https://example.com/mcp", want: wantBaseURL},
		{name: "base_url over the metrics", flag: "base-url", value: "https://example.com/metrics", want: wantBaseURL},
		{name: "base_url with a bad port", flag: "base-url", value: "https://example.com:99999/api", want: wantBaseURL},

		{name: "proxy by its name", flag: "trusted-proxies", value: "proxy.example", want: wantProxies},
		{name: "proxy with a port", flag: "trusted-proxies", value: "10.0.0.1:80", want: wantProxies},
		{name: "one proxy of two bad", flag: "trusted-proxies", value: "10.0.0.1,*", want: wantProxies},
		{name: "proxies with too many bits", flag: "trusted-proxies", value: "10.0.0.0/33", want: wantProxies},
		{name: "proxy with a zone", flag: "trusted-proxies", value: "fe80::1%eth0", want: wantProxies},
		{name: "proxies that would match no client", flag: "trusted-proxies", value: "::ffff:10.0.0.0/104", want: wantProxies},

		{name: "dns without port", flag: "dns", value: "192.0.2.53", want: wantDNS},
		{name: "dns with one of two bad", flag: "dns", value: "192.0.2.53:53,x", want: wantDNS},
		{name: "dns with port 0", flag: "dns", value: "192.0.2.53:0", want: wantDNS},
		{name: "dns without host", flag: "dns", value: ":53", want: wantDNS},

		{name: "mx.probe unknown", flag: "mx-probe", value: "sometimes", want: "must be one of on, off"},

		{name: "report_domain of one label", flag: "report-domain", value: "example", want: wantDomain},
		{name: "report_domain with an underscore", flag: "report-domain", value: "a_b.example", want: wantDomain},
		{name: "report_domain with an outer hyphen", flag: "report-domain", value: "-a.example", want: wantDomain},
		{name: "report_domain with an empty label", flag: "report-domain", value: "a..example", want: wantDomain},
		{name: "report_domain is an address", flag: "report-domain", value: "192.0.2.1", want: wantDomain},
		{name: "report_domain is a mail address", flag: "report-domain", value: "a@example.com", want: wantDomain},
		{name: "report_domain with a long label", flag: "report-domain", value: strings.Repeat("a", 64) + ".example", want: wantDomain},
		{name: "report_domain too long is cut off", flag: "report-domain", value: strings.Repeat("a.", 124) + "example", shown: strings.Repeat("a.", 100) + "...", want: wantDomain},

		{name: "token too short", flag: "token", value: goodToken[:43], shown: "***", want: wantToken},
		{name: "token too long", flag: "token", value: goodToken + "a", shown: "***", want: wantToken},
		{name: "token with another beginning", flag: "token", value: "dmx" + goodToken[3:], shown: "***", want: wantToken},
		{name: "token with a sign", flag: "token", value: goodToken[:43] + "-", shown: "***", want: wantToken},

		{name: "rate_limit in words", flag: "rate-limit", value: "many", want: wantRate},
		{name: "rate_limit below zero", flag: "rate-limit", value: "-1", want: wantRate},
		{name: "rate_limit not a number", flag: "rate-limit", value: "NaN", want: wantRate},
		{name: "rate_limit infinite", flag: "rate-limit", value: "Inf", shown: "+Inf", want: wantRate},
		{name: "rate_limit too high", flag: "rate-limit", value: "1000001", want: wantRate},

		{name: "log.level unknown", flag: "log-level", value: "loud", want: "must be one of debug, info, warn, error"},
		{name: "log.level with an offset", flag: "log-level", value: "info+1", want: "must be one of debug, info, warn, error"},

		{name: "origin with a path", flag: "http-cors-origins", value: "https://a.example/x", want: wantOrigins},
		{name: "origin with a slash", flag: "http-cors-origins", value: "https://a.example/", want: wantOrigins},
		{name: "origin without scheme", flag: "http-cors-origins", value: "a.example", want: wantOrigins},
		{name: "second origin with a password", flag: "http-cors-origins", value: "https://a.example,https://u:secret@b.example", shown: "https://a.example,https://u:***@b.example", want: wantOrigins},

		{name: "resolver.timeout without unit", flag: "resolver-timeout", value: "30", want: "must be a duration from 1ms to 1m"},
		{name: "resolver.timeout of zero", flag: "resolver-timeout", value: "0s", want: "must be a duration from 1ms to 1m"},
		{name: "resolver.timeout below zero", flag: "resolver-timeout", value: "-1s", want: "must be a duration from 1ms to 1m"},
		{name: "resolver.timeout too long", flag: "resolver-timeout", value: "61s", shown: "1m1s", want: "must be a duration from 1ms to 1m"},
		{name: "schedule.interval too short", flag: "schedule-interval", value: "1ms", want: "must be a duration from 10ms to 720h"},
		{name: "limit.members below zero", flag: "limit-members", value: "-1", want: "must be a whole number from 1 to 1000000"},
		{name: "limit.members not whole", flag: "limit-members", value: "1.5", want: "must be a whole number from 1 to 1000000"},
		{name: "smtp_listen without report_domain", flag: "smtp-listen", value: ":2525", want: "must be set together with report_domain (DMARCD_REPORT_DOMAIN), the domain of the reporting addresses"},
		{name: "a line break stays inside the quotes", flag: "listen", value: "a\nb", want: wantListen},

		{name: "an upload of nothing", flag: "limit-upload", value: "0", want: "must be a size from 1KiB to 2GiB, in bytes or with KiB, MiB or GiB"},
		{name: "no nesting", flag: "limit-nesting", value: "0", want: "must be a whole number from 1 to 100"},
		{name: "an unknown word for forged reports", flag: "intake-forged", value: "drop", want: "must be one of mark, refuse"},
		{name: "an invalid team name", flag: "intake-folder-team", value: "a\tb", want: "must be the name of a team, 1 to 100 printable characters"},
		{name: "a certificate without its key", flag: "smtp-certificate", value: "a.pem", want: "must be set together with smtp.key (DMARCD_SMTP_KEY), the private key file of the certificate"},
		{name: "a key without its certificate", flag: "smtp-key", value: "a.key", want: "must be set together with smtp.certificate (DMARCD_SMTP_CERTIFICATE), the certificate file of the key"},
		{name: "HTTPS for a URL without it", flag: "tls", value: "auto", others: map[string]string{"base-url": "http://a.example/api"}, want: wantTLS},
		{name: "HTTPS for an address", flag: "tls", value: "auto", others: map[string]string{"base-url": "https://192.0.2.1/api"}, want: wantTLS},
		{name: "HTTPS files without their key", flag: "tls-certificate", value: "a.pem", others: map[string]string{"base-url": "https://a.example", "tls": "files"}, want: wantTLSFiles},
		{name: "HTTPS files that have no effect", flag: "tls-certificate", value: "a.pem", others: map[string]string{"base-url": "https://a.example", "tls-key": "a.key"}, want: wantTLSFiles},
		{name: "a contact with a name", flag: "acme-email", value: "Me <me@example.com>", want: "must be an email address, such as dmarc@example.com"},
		{name: "kept for a minute", flag: "retention-originals", value: "1m", want: wantAge},

		{name: "an issuer that is not a URL", flag: "oidc-issuer", value: "login.example.com", others: client, want: wantIssuer},
		{name: "an issuer without TLS", flag: "oidc-issuer", value: "http://login.example.com", others: client, want: wantIssuer},
		{name: "an issuer with a query", flag: "oidc-issuer", value: "https://login.example.com/?tenant=1", others: client, want: wantIssuer},
		{name: "an issuer without a client", flag: "oidc-issuer", value: "https://login.example.com", others: map[string]string{"oidc-client-id": "dmarcd"}, want: wantClient},
		{name: "a domain that is an address", flag: "oidc-domains", value: "me@example.com", want: "must be a comma-separated list of domain names, such as example.com,example.org=viewer:acme"},
		{name: "smtp_listen is bad itself", flag: "smtp-listen", value: "2525", others: map[string]string{"report-domain": "example.com"}, want: wantSMTP},
	}
	keys := map[string]string{} // by flag
	for _, s := range config.Settings() {
		keys[s.Flag()] = s.Key
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			flags := map[string]string{tt.flag: tt.value}
			maps.Copy(flags, tt.others)
			_, err := config.Load(config.Input{Flags: flags})
			want := fmt.Sprintf("%s = %q (flag --%s): %s", keys[tt.flag], cmp.Or(tt.shown, tt.value), tt.flag, tt.want)
			if err == nil || err.Error() != want {
				t.Errorf("got  %v\nwant %s", err, want)
			}
		})
	}
}

func TestBadValueNamesItsOrigin(t *testing.T) {
	t.Parallel()
	file := writeFile(t, "dmarcd.yaml", "limit: {members: -1}")
	want := `limit.members = "-1" (%): must be a whole number from 1 to 1000000`
	tests := []struct {
		name   string
		in     config.Input
		origin string
	}{
		{"file", config.Input{File: file}, "file " + file},
		{"environment", config.Input{Environ: []string{"DMARCD_LIMIT_MEMBERS=-1"}}, "environment DMARCD_LIMIT_MEMBERS"},
		{"flag", config.Input{Flags: map[string]string{"limit-members": "-1"}}, "flag --limit-members"},
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
		Flags:   map[string]string{"log-level": "z"},
	})
	if err == nil {
		t.Fatal("got no error, want three lines")
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 3 {
		t.Fatalf("got %d lines, want 3:\n%v", len(lines), err)
	}
	for _, part := range []string{"DMARCD_LISTEN", "DMARCD_RATE_LIMIT", "--log-level"} {
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
				`schedule.interval = "-1s": must be a duration from 10ms to 720h`,
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

func TestIssuerOnTheSameMachine(t *testing.T) {
	t.Parallel()
	for _, issuer := range []string{"http://127.0.0.1:3000", "http://localhost:3000/oidc", "http://[::1]:3000"} {
		flags := map[string]string{"oidc-issuer": issuer}
		maps.Copy(flags, client)
		if _, err := config.Load(config.Input{Flags: flags}); err != nil {
			t.Errorf("%s: got %v, want no error", issuer, err)
		}
	}
}

func TestParseDuration(t *testing.T) {
	t.Parallel()
	const hour = time.Hour
	for text, want := range map[string]time.Duration{
		"30d": 720 * hour, "12w": 2016 * hour, "1w2d12h": 228 * hour, "720h": 720 * hour, "1d30m": 24*hour + 30*time.Minute, "0": 0, "-5m": -5 * time.Minute,
	} {
		if got, err := config.ParseDuration(text); err != nil || got != want {
			t.Errorf("%q: got %v, %v want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "d", "w", "-1d", "1d-2h", "1.5d", "2d1w", "30", "99999w", "65535w", "1d99999999h", "1d 2h"} {
		if got, err := config.ParseDuration(text); err == nil {
			t.Errorf("%q: got %v, want an error", text, got)
		}
	}
}
