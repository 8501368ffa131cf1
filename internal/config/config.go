// Package config contains all settings. One table, Settings, defines each setting once;
// the configuration file, the environment, the command line flags, the output of "dmarcd
// config" and the documentation are derived from it.
//
// A value comes from four layers, and the last one wins: defaults, the file (TOML or
// YAML), the environment, flags. An empty value means the default in every layer.
//
// The package reads only the configuration file: the users of a setting find out whether a
// folder is writable or a server reachable, and package auth verifies the checksum of a
// token.
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

// Config is the effective configuration. Load returns a valid one; Validate checks one
// that was built by hand.
type Config struct {
	// Database is the path of an SQLite file or a postgres:// URL.
	Database string
	// Data is the path of the data folder.
	Data string
	// Listen is the host:port of the HTTP listener. Port 0 selects a free port.
	Listen string
	// BaseURL is the public URL of the API, without a trailing slash.
	BaseURL string
	// TLS is TLSOff, TLSAuto or TLSFiles.
	TLS string
	// TLSCertificate and TLSKey are PEM files, with TLSFiles.
	TLSCertificate, TLSKey string
	// TrustedProxies are the reverse proxies whose X-Forwarded-For is trusted. If empty,
	// the client is the peer of the connection.
	TrustedProxies []netip.Prefix
	// DNS are the resolvers, each as host:port. If empty, those of the system are used.
	DNS []string
	// SMTPListen is the host:port of the SMTP listener; empty means none.
	SMTPListen string
	// ReportDomain is the domain of the reporting addresses in lower case; empty means
	// none.
	ReportDomain string
	// DomainProof is ProofOn or ProofOff: whether a domain counts only while DNS shows that its
	// team controls it.
	DomainProof string
	// Zone is the domain that the DNS server answers for, in lower case; empty means none.
	Zone string
	// ZoneListen is the host:port of the DNS listener. Port 0 selects a free port.
	ZoneListen string
	// ZoneNameservers are the name servers of Zone, see Nameservers.
	ZoneNameservers []string
	// ZoneAddresses are those of the hosts of MTA-STS policies in Zone; empty means that none are served.
	ZoneAddresses []string
	// ZoneSecondaries are the servers that may transfer Zone, in the form of zone.ParseSecondary.
	ZoneSecondaries []string
	// Token is the token of the team "default"; if empty, the first start creates one.
	Token string
	// RateLimit is the number of requests per second and token; 0 means unlimited. It may
	// be a fraction.
	RateLimit float64

	Log      Log
	HTTP     HTTP
	ACME     ACME
	Resolver Resolver
	Outbound Outbound
	MX       MX
	Schedule Schedule

	Limit     Limit
	Intake    Intake
	SMTP      SMTP
	Retention Retention
	Secret    Secret
	Senders   Senders
	OIDC      OIDC
	Mail      Mail
}

// The values of TLS: what the HTTP listener serves.
const (
	TLSOff   = "off"   // plain HTTP, for a reverse proxy
	TLSAuto  = "auto"  // HTTPS with a certificate from a certificate authority
	TLSFiles = "files" // HTTPS with a certificate in files
)

// ACME is the section "acme": the certificate authority, with TLSAuto.
type ACME struct {
	// Directory is the URL of its directory; empty means Let's Encrypt.
	Directory string
	// Email is the contact of the account; empty means none.
	Email string
}

// Log is the section "log".
type Log struct {
	// Level is the minimum log level.
	Level slog.Level
}

// HTTP is the section "http".
type HTTP struct {
	// CORSOrigins are the origins whose pages may call the API from a browser, "*" for
	// all. If empty, CORS is off.
	CORSOrigins []string
}

// Resolver is the section "resolver".
type Resolver struct {
	// Timeout is how long to wait for one DNS server.
	Timeout time.Duration
}

// Outbound is the section "outbound".
type Outbound struct {
	// Allow lists non-public networks that may be connected to when an outsider names a
	// host.
	Allow []netip.Prefix
}

// MX is the section "mx".
type MX struct {
	// Probe is ProbeOn or ProbeOff: whether full checks connect to mail servers.
	Probe string
}

// The values of MX.Probe.
const (
	ProbeOn  = "on"
	ProbeOff = "off"
)

// The values of DomainProof.
const (
	ProofOn  = "on"
	ProofOff = "off"
)

// Schedule is the section "schedule".
type Schedule struct {
	// Interval is the time between checks of the DMARC record of a domain.
	Interval time.Duration
	// Rate is the maximum number of scheduled checks started per second; 0 means that this
	// process runs none.
	Rate float64
}

// OIDC is the section "oidc": sign-in with an OpenID provider. It is off if Issuer is
// empty.
type OIDC struct {
	// Issuer is the issuer URL of the provider.
	Issuer string
	// ClientID and ClientSecret are the credentials at the provider.
	ClientID, ClientSecret string
	// Domains are the mail domains whose users can sign up without an invitation, some with a role in a
	// team; see dmarcd.ParseTeamRole.
	Domains []string
	// Groups are the groups of the claim GroupsClaim with a role in a team.
	Groups      []string
	GroupsClaim string
}

// Mail is the section "mail": mail that dmarcd sends. It sends none if Relay is empty.
type Mail struct {
	// Relay is the URL of the SMTP relay.
	Relay string
	// From is the address of the sender, with or without a name.
	From string
	// DKIMKey is a PEM file with the private key that signs mail, DKIMSelector is the
	// selector of its public key; both or none.
	DKIMKey, DKIMSelector string
}

// Prefix returns the path of the base URL without a trailing slash. It is empty if the API
// is at the root.
func (c Config) Prefix() string {
	u, err := url.Parse(c.derived().BaseURL)
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(u.Path, "/")
}

// Listening returns the configuration after the HTTP listener is bound to addr. If Listen
// has port 0, the actual port replaces it, also in a derived base URL.
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

// fullEvery is how many scheduled checks of a domain include one full check: the other records
// change rarely, and a full check asks many questions.
const fullEvery = 24

// FullInterval returns the time between full checks of a domain.
func (s Schedule) FullInterval() time.Duration { return fullEvery * s.Interval }

// derived returns c with the defaults that depend on other settings.
func (c Config) derived() Config {
	if c.Database == "" {
		c.Database = filepath.Join(c.Data, "dmarcd.db")
	}
	if c.BaseURL == "" {
		c.BaseURL = defaultBaseURL(c.Listen)
	}
	if c.Secret.File == "" {
		c.Secret.File = filepath.Join(c.Data, "secret.key")
	}
	return c
}

// defaultBaseURL is the base URL of a server that listens on host:port. A wildcard address
// cannot be opened in a browser, so it becomes localhost.
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

// Limit is the section "limit": limits for one message with reports.
type Limit struct {
	// Upload and Mail are the maximum sizes over HTTP and by mail, in bytes.
	Upload, Mail int
	// Expanded is the maximum total decompressed size in bytes.
	Expanded int
	// Ratio is the maximum compression ratio.
	Ratio int
	// Members is the maximum number of files, parts and messages.
	Members int
	// Nesting is the maximum number of nested containers.
	Nesting int
	// Records is the maximum number of records in a report.
	Records int
	// FreeDisk is the minimum free disk space of the data folder in bytes.
	FreeDisk int
}

// Intake is the section "intake".
type Intake struct {
	// Forged is ForgedMark or ForgedReject.
	Forged string
	// Folder is the drop folder; empty means none.
	Folder string
	// FolderTeam is the team that receives the reports in Folder.
	FolderTeam string
}

// The values of Intake.Forged: how to treat a report with a spoofed sender.
const (
	ForgedMark   = "mark"
	ForgedReject = "refuse"
)

// SMTP is the section "smtp".
type SMTP struct {
	// Certificate and Key are PEM files for STARTTLS; both or none.
	Certificate, Key string
	// Rate is the number of messages per minute and recipient address; 0 means unlimited.
	// It may be a fraction.
	Rate float64
}

// Retention is the section "retention": retention periods; 0 means forever.
type Retention struct {
	// Originals is for original messages and files, and for rejected reports.
	Originals time.Duration
	// Records is for reports with their records.
	Records time.Duration
	// Failure is for failure reports, which contain personal data.
	Failure time.Duration
	// Audit is for the audit log.
	Audit time.Duration
}

// Secret is the section "secret".
type Secret struct {
	// File contains the key that encrypts secrets. Key is the key itself, and Command prints it; they
	// are used instead of File if they are not empty, Command before Key.
	File, Key, Command string
}

// Senders is the section "senders".
type Senders struct {
	// Catalogue is a file with senders that take precedence over the built-in ones; empty
	// means none.
	Catalogue string
}
