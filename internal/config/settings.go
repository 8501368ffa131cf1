package config

import (
	"log/slog"
	"net/netip"
	"slices"
	"time"
)

// envPrefix begins the name of every environment variable that we read.
const envPrefix = "DMARCD_"

// Settings returns every setting in the order in which it is documented. The
// slice belongs to the caller.
func Settings() []Setting {
	return slices.Concat(generalSettings(), sectionSettings(), intakeSettings(), pageSettings())
}

func generalSettings() []Setting {
	return []Setting{
		define("database", textKind(), "", orEmpty(database()),
			func(c *Config) *string { return &c.Database },
			"an SQLite file, or postgres://user:password@host:port/database").
			defaulting("dmarcd.db in the data folder"),
		define("data", textKind(), "./data", path(),
			func(c *Config) *string { return &c.Data },
			"the data folder"),
		define("listen", textKind(), "127.0.0.1:8080", listenAddress("host:port, such as 127.0.0.1:8080 or :8080"),
			func(c *Config) *string { return &c.Listen },
			"host:port of the HTTP listener"),
		define("base_url", urlKind(), "", orEmpty(baseURL()),
			func(c *Config) *string { return &c.BaseURL },
			"where clients see the API; its path is the prefix of every endpoint").
			defaulting("the address listened on + /api"),
		define("trusted_proxies", networksKind(), "", anyNetworks(),
			func(c *Config) *[]netip.Prefix { return &c.TrustedProxies },
			"comma list of addresses and networks of the reverse proxies whose X-Forwarded-For is believed").
			defaulting("empty = nobody's"),
		define("dns", listKind(), "", each(serverAddress(), "a comma list of host:port, such as 192.0.2.53:53,[2001:db8::53]:53"),
			func(c *Config) *[]string { return &c.DNS },
			"comma list of the resolvers to ask, each host:port").
			defaulting("the system's resolvers"),
		define("smtp_listen", textKind(), "", orEmpty(listenAddress("host:port, such as :2525, or nothing for no SMTP listener")),
			func(c *Config) *string { return &c.SMTPListen },
			"host:port of the SMTP listener that takes reports; needs report_domain").
			defaulting("empty = off").
			needing(rule[Config]{
				want:  "report_domain (DMARCD_REPORT_DOMAIN) as well, the domain of the addresses that mail is taken for",
				valid: func(c Config) bool { return c.SMTPListen == "" || c.ReportDomain != "" },
			}),
		define("report_domain", nameKind(), "", orEmpty(domainName()),
			func(c *Config) *string { return &c.ReportDomain },
			"the domain of the reporting addresses").
			defaulting("empty"),
		define("token", textKind(), "", orEmpty(token()),
			func(c *Config) *string { return &c.Token },
			"the token of the team default, for declarative installs; the environment hides it better than a flag").
			defaulting("empty").secret(),
		define("rate_limit", numberKind(), "50", numberUpTo(1_000_000, "off"),
			func(c *Config) *float64 { return &c.RateLimit },
			"requests a second per token, burst twice that; 0 = off"),
	}
}

func sectionSettings() []Setting {
	timeout := durationFrom(time.Millisecond, 24*time.Hour)
	return []Setting{
		define("log.level", levelKind(), "info", anyLevel(),
			func(c *Config) *slog.Level { return &c.Log.Level },
			"the lowest level that is logged: debug, info, warn or error"),
		define("log.format", wordKind(), FormatAuto, oneOf(FormatAuto, FormatText, FormatJSON),
			func(c *Config) *string { return &c.Log.Format },
			"text, json, or auto: text on a terminal and JSON otherwise"),
		define("http.cors_origins", listKind(), "", each(origin(), "a comma list of origins, such as https://app.example.com, or *"),
			func(c *Config) *[]string { return &c.HTTP.CORSOrigins },
			"comma list of the origins whose pages may call the API, * for all").
			defaulting("empty = off"),
		define("http.read_timeout", durationKind(), "30s", timeout,
			func(c *Config) *time.Duration { return &c.HTTP.ReadTimeout },
			"how long the reading of a request may take"),
		define("http.write_timeout", durationKind(), "2m", timeout,
			func(c *Config) *time.Duration { return &c.HTTP.WriteTimeout },
			"how long the answering of a request may take"),
		define("http.idle_timeout", durationKind(), "2m", timeout,
			func(c *Config) *time.Duration { return &c.HTTP.IdleTimeout },
			"how long a connection is kept between two requests"),
		define("http.max_header_bytes", wholeKind(), "65536", wholeBetween(4096, 16<<20, ""),
			func(c *Config) *int { return &c.HTTP.MaxHeaderBytes },
			"how many bytes the header of a request may have"),
		define("http.max_connections", wholeKind(), "2048", wholeBetween(1, 1_000_000, ""),
			func(c *Config) *int { return &c.HTTP.MaxConnections },
			"how many HTTP connections may be open at once; idle ones give way to new ones"),
		define("http.max_per_address", wholeKind(), "256", wholeBetween(1, 1_000_000, ""),
			func(c *Config) *int { return &c.HTTP.MaxPerAddress },
			"how many HTTP connections one address (IPv6: one /64) may have, other than a trusted proxy"),
		define("resolver.timeout", durationKind(), "900ms", durationFrom(time.Millisecond, time.Minute),
			func(c *Config) *time.Duration { return &c.Resolver.Timeout },
			"how long one DNS server is waited for before the next try"),
		define("outbound.allow", networksKind(), "", anyNetworks(),
			func(c *Config) *[]netip.Prefix { return &c.Outbound.Allow },
			"comma list of private or reserved networks that mailboxes, MTA-STS and BIMI may lead to").
			defaulting("empty = public addresses alone"),
		define("schedule.interval", durationKind(), "1h", durationFrom(time.Second, 30*24*time.Hour),
			func(c *Config) *time.Duration { return &c.Schedule.Interval },
			"how often the DMARC record of a domain is looked at again"),
		define("schedule.full_interval", durationKind(), "24h", durationFrom(time.Second, 30*24*time.Hour),
			func(c *Config) *time.Duration { return &c.Schedule.FullInterval },
			"how often everything about a domain is looked at again"),
		define("schedule.rate", numberKind(), "50", numberUpTo(1_000_000, "none"),
			func(c *Config) *float64 { return &c.Schedule.Rate },
			"how many scheduled checks this process begins in a second at most; 0 = none"),
	}
}
