package config

import (
	"log/slog"
	"net/netip"
	"slices"
	"time"
)

// envPrefix is the prefix of all environment variables.
const envPrefix = "DMARCD_"

// Settings returns all settings in the order of the documentation. The caller may modify
// the slice.
func Settings() []Setting {
	return slices.Concat(generalSettings(), sectionSettings(), reportSettings(), oidcSettings(), mailSettings())
}

func generalSettings() []Setting {
	return []Setting{
		define("database", textKind(), "", orEmpty(database()),
			func(c *Config) *string { return &c.Database },
			"SQLite file, or postgres://user:password@host:port/database").
			defaulting("dmarcd.db in the data folder"),
		define("data", textKind(), "./data", folder(),
			func(c *Config) *string { return &c.Data },
			"data folder"),
		define("listen", textKind(), "127.0.0.1:8080", listenAddress("host:port, such as 127.0.0.1:8080 or :8080"),
			func(c *Config) *string { return &c.Listen },
			"host:port of the HTTP listener"),
		define("base_url", urlKind(), "", orEmpty(baseURL()),
			func(c *Config) *string { return &c.BaseURL },
			"public URL of the API; its path is the prefix of all endpoints").
			defaulting("the address listened on + /api"),
		define("trusted_proxies", networksKind(), "", anyNetworks(),
			func(c *Config) *[]netip.Prefix { return &c.TrustedProxies },
			"comma-separated addresses and networks of reverse proxies whose X-Forwarded-For is trusted").
			defaulting("empty = none"),
		define("dns", listKind(), "", each(serverAddress(), "a comma-separated list of host:port, such as 192.0.2.53:53,[2001:db8::53]:53"),
			func(c *Config) *[]string { return &c.DNS },
			"comma-separated DNS resolvers, each host:port").
			defaulting("the system's resolvers"),
		define("smtp_listen", textKind(), "", orEmpty(listenAddress("host:port, such as :2525, or empty for no SMTP listener")),
			func(c *Config) *string { return &c.SMTPListen },
			"host:port of the SMTP listener for reports; requires report_domain").
			defaulting("empty = off").
			needing(rule[Config]{
				want:  "set together with report_domain (DMARCD_REPORT_DOMAIN), the domain of the reporting addresses",
				valid: func(c Config) bool { return c.SMTPListen == "" || c.ReportDomain != "" },
			}),
		define("report_domain", nameKind(), "", orEmpty(domainName()),
			func(c *Config) *string { return &c.ReportDomain },
			"domain of the reporting addresses").
			defaulting("empty"),
		define("token", textKind(), "", orEmpty(token()),
			func(c *Config) *string { return &c.Token },
			"token of the team default, for declarative installs; prefer the environment over a flag").
			defaulting("empty").secret(),
		define("rate_limit", numberKind(), "50", numberUpTo(1_000_000, "off"),
			func(c *Config) *float64 { return &c.RateLimit },
			"requests per second and token, with a burst of twice that; 0 = unlimited"),
	}
}

// sectionSettings returns the settings of the sections log to schedule.
func sectionSettings() []Setting {
	return []Setting{
		define("log.level", levelKind(), "info", anyLevel(),
			func(c *Config) *slog.Level { return &c.Log.Level },
			"minimum log level: debug, info, warn or error"),
		define("http.cors_origins", listKind(), "", each(origin(), "a comma-separated list of origins, such as https://app.example.com, or *"),
			func(c *Config) *[]string { return &c.HTTP.CORSOrigins },
			"comma-separated origins whose pages may call the API (CORS); * = all").
			defaulting("empty = off"),
		define("resolver.timeout", durationKind(), "900ms", durationFrom(time.Millisecond, time.Minute),
			func(c *Config) *time.Duration { return &c.Resolver.Timeout },
			"how long to wait for a DNS server before the next attempt"),
		define("outbound.allow", networksKind(), "", anyNetworks(),
			func(c *Config) *[]netip.Prefix { return &c.Outbound.Allow },
			"comma-separated private or reserved networks that mailboxes, MX, MTA-STS, BIMI and webhooks may connect to").
			defaulting("empty = public addresses only"),
		define("mx.probe", wordKind(), ProbeOn, oneOf(ProbeOn, ProbeOff),
			func(c *Config) *string { return &c.MX.Probe },
			"whether full checks read the certificates of mail servers, on port 25"),
		define("schedule.interval", durationKind(), "1h", durationFrom(10*time.Millisecond, 30*24*time.Hour),
			func(c *Config) *time.Duration { return &c.Schedule.Interval },
			"how often to check the DMARC record of a domain; every 24th check is a full one"),
		define("schedule.rate", numberKind(), "50", numberUpTo(1_000_000, "none"),
			func(c *Config) *float64 { return &c.Schedule.Rate },
			"maximum number of scheduled checks that this process starts per second; 0 = none"),
	}
}
