// Package config holds everything an operator can set. One table, Settings,
// names each setting once; the configuration file, the environment, the flags
// of the command line, the output of "dmarcd config" and the documentation are
// all made from it.
//
// A value is looked for in four layers, and the last one that has it wins:
// defaults, the file (TOML or YAML), the environment, flags. An empty value
// stands for the default in every layer.
//
// The package reads the configuration file and nothing else: whether a folder
// can be written or a server reached is found out by those who use it, and the
// checksum of a token by package auth.
package config

import (
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"strings"
	"time"
)

// Config is the effective configuration. Load makes a valid one; Validate
// judges one that was put together by hand.
type Config struct {
	// Database is the path of an SQLite file or a postgres:// URL.
	Database string
	// Data is the path of the data folder.
	Data string
	// Listen is the host:port of the HTTP listener. Port 0 takes a free one.
	Listen string
	// BaseURL is where clients see the API, without a trailing slash.
	BaseURL string
	// TrustedProxies are the reverse proxies whose word about the client is
	// taken. Where it is empty, the client is whoever connects.
	TrustedProxies []netip.Prefix
	// DNS holds the host:port of each resolver to ask. Where it is empty, the
	// resolvers of the system are asked.
	DNS []string
	// SMTPListen is the host:port of the SMTP listener; empty means none.
	SMTPListen string
	// ReportDomain is the domain of the reporting addresses in lower case;
	// empty means that there is none.
	ReportDomain string
	// Token is the token of the team "default"; empty means that one is made
	// at the first start.
	Token string
	// RateLimit is how many requests a second one token may make; 0 means any
	// number. It may be a fraction.
	RateLimit float64

	Log      Log
	HTTP     HTTP
	Resolver Resolver
	Outbound Outbound
	Schedule Schedule
	Quota    Quota

	Limit     Limit
	Intake    Intake
	SMTP      SMTP
	IMAP      IMAP
	Retention Retention
	Secret    Secret
	Senders   Senders
	OIDC      OIDC
}

// Log is the section "log".
type Log struct {
	// Level is the lowest level that is written.
	Level slog.Level
	// Format is FormatAuto, FormatText or FormatJSON.
	Format string
}

// The values of Log.Format.
const (
	FormatAuto = "auto" // text on a terminal, JSON otherwise
	FormatText = "text"
	FormatJSON = "json"
)

// HTTP is the section "http".
type HTTP struct {
	// CORSOrigins holds the origins whose pages may call the API from a
	// browser, "*" for all of them. Where it is empty, CORS is off.
	CORSOrigins []string
	// ReadTimeout bounds the reading of one request with its body.
	ReadTimeout time.Duration
	// WriteTimeout bounds the answering of one request.
	WriteTimeout time.Duration
	// IdleTimeout is how long a connection is kept between two requests.
	IdleTimeout time.Duration
	// MaxHeaderBytes bounds the request line and the header fields.
	MaxHeaderBytes int
	// MaxConnections is how many clients may be connected, MaxPerAddress how many from
	// one address (IPv6: one /64) that is no trusted proxy.
	MaxConnections, MaxPerAddress int
}

// Resolver is the section "resolver".
type Resolver struct {
	// Timeout is how long one DNS server is waited for.
	Timeout time.Duration
}

// Outbound is the section "outbound".
type Outbound struct {
	// Allow lists networks that are reached although they are not public, when an
	// outsider names a host in them.
	Allow []netip.Prefix
}

// Schedule is the section "schedule".
type Schedule struct {
	// Interval is the time between two looks at the DMARC record of a domain.
	Interval time.Duration
	// FullInterval is the time between two looks at everything about a domain.
	FullInterval time.Duration
	// Rate is how many scheduled checks begin in a second at most; 0 means
	// that this process makes none.
	Rate float64
}

// Quota is the section "quota": what a team may have that has no quota of its own; 0
// means any amount.
type Quota struct {
	Domains, Mailboxes int
	// Stored and Unreadable are bytes, Reports a number for each day.
	Stored, Unreadable, Reports int
}

// Prefix returns the path of the base URL without a trailing slash. It is
// empty where the API is at the root.
func (c Config) Prefix() string {
	u, err := url.Parse(c.derived().BaseURL)
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(u.Path, "/")
}

// Listening returns the configuration as it is once the HTTP listener has the
// address addr. It matters where Listen asks for port 0: the port that was
// taken replaces it, also in a base URL that follows from Listen.
func (c Config) Listening(addr net.Addr) Config {
	host, _, _ := net.SplitHostPort(c.Listen)
	_, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return c
	}
	follows := c.BaseURL == "" || c.BaseURL == defaultBaseURL(c.Listen)
	c.Listen = net.JoinHostPort(host, port)
	if follows {
		c.BaseURL = defaultBaseURL(c.Listen)
	}
	return c
}

// derived returns c with the defaults that depend on other settings.
func (c Config) derived() Config {
	if c.Database == "" {
		c.Database = filepath.Join(c.Data, "dmarcd.db")
	}
	if c.BaseURL == "" {
		c.BaseURL = defaultBaseURL(c.Listen)
	}
	if c.SMTP.Hostname == "" {
		c.SMTP.Hostname = c.ReportDomain
	}
	if c.Secret.File == "" {
		c.Secret.File = filepath.Join(c.Data, "secret.key")
	}
	return c
}

// defaultBaseURL is the base URL of a server that listens on host:port. Nobody
// can open a wildcard address in a browser, so it becomes localhost.
func defaultBaseURL(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return ""
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return "http://" + net.JoinHostPort(host, port) + "/api"
}
