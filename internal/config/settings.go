package config

import (
	"log/slog"
	"net/mail"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
)

// envPrefix is the prefix of all environment variables.
const envPrefix = "DMARCD_"

// Settings returns all settings in the order of the documentation. The caller may modify
// the slice.
func Settings() []Setting {
	return slices.Concat(generalSettings(), tlsSettings(), zoneSettings(), sectionSettings(), reportSettings(), oidcSettings(), mailSettings())
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
		define("domain_proof", wordKind(), ProofOff, oneOf(ProofOn, ProofOff),
			func(c *Config) *string { return &c.DomainProof },
			"whether a domain is active, and its reports count, only while DNS shows that its team controls it"),
		define("token", textKind(), "", orEmpty(token()),
			func(c *Config) *string { return &c.Token },
			"token of the team default, for declarative installs; prefer the environment over a flag").
			defaulting("empty").secret(),
		define("rate_limit", numberKind(), "50", numberUpTo(1_000_000, "off"),
			func(c *Config) *float64 { return &c.RateLimit },
			"requests per second and token, with a burst of twice that; 0 = unlimited"),
	}
}

// tlsSettings returns the settings of HTTPS.
func tlsSettings() []Setting {
	files := func(c Config) bool {
		return (c.TLSCertificate != "" && c.TLSKey != "") == (c.TLS == TLSFiles) && (c.TLSCertificate == "") == (c.TLSKey == "")
	}
	return []Setting{
		define("tls", wordKind(), TLSOff, oneOf(TLSOff, TLSAuto, TLSFiles),
			func(c *Config) *string { return &c.TLS },
			"HTTPS: off behind a reverse proxy, auto for a certificate by ACME, files for tls_certificate and tls_key").
			needing(rule[Config]{
				want:  "off unless base_url (DMARCD_BASE_URL) begins with https:// and a host name",
				valid: func(c Config) bool { return c.TLS == TLSOff || hasHTTPSName(c.BaseURL) },
			}),
		define("tls_certificate", textKind(), "", orEmpty(file()),
			func(c *Config) *string { return &c.TLSCertificate },
			"PEM file with the certificate chain for HTTPS and STARTTLS; read again when it changes").
			defaulting("empty").
			needing(rule[Config]{
				want:  "set together with tls_key (DMARCD_TLS_KEY) and tls (DMARCD_TLS) files, and only with them",
				valid: files,
			}),
		define("tls_key", textKind(), "", orEmpty(file()),
			func(c *Config) *string { return &c.TLSKey },
			"PEM file with the private key of tls_certificate").
			defaulting("empty"),
		define("acme.directory", textKind(), "", orEmpty(issuer()),
			func(c *Config) *string { return &c.ACME.Directory },
			"directory URL of the certificate authority for tls auto, such as that of a private one").
			defaulting("Let's Encrypt"),
		define("acme.email", textKind(), "", orEmpty(email()),
			func(c *Config) *string { return &c.ACME.Email },
			"contact for the certificate authority").
			defaulting("empty = none"),
	}
}

// hasHTTPSName reports whether a certificate can be valid for the URL.
func hasHTTPSName(v string) bool {
	u, err := url.Parse(v)
	if err != nil || u.Scheme != "https" {
		return false
	}
	_, err = netip.ParseAddr(u.Hostname())
	return err != nil
}

// email allows an address without a name.
func email() rule[string] {
	return rule[string]{want: "an email address, such as dmarc@example.com", valid: func(v string) bool {
		_, err := dmarcd.ParseEmail(v)
		return err == nil
	}}
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

// reportSettings returns the settings for receiving and storing reports.
func reportSettings() []Setting {
	return slices.Concat(limitSettings(), intakeSettings(), mailIntakeSettings(), retentionSettings(), fileSettings())
}

func limitSettings() []Setting {
	const most = 2 << 30
	bytes := bytesBetween(1<<10, most, "")
	return []Setting{
		define("limit.upload", bytesKind(), "32MiB", bytes,
			func(c *Config) *int { return &c.Limit.Upload },
			"maximum size of an uploaded or imported file"),
		define("limit.mail", bytesKind(), "32MiB", bytes,
			func(c *Config) *int { return &c.Limit.Mail },
			"maximum size of an email message with reports"),
		define("limit.expanded", bytesKind(), "256MiB", bytes,
			func(c *Config) *int { return &c.Limit.Expanded },
			"maximum total size of all decompressed archives in a message"),
		define("limit.ratio", wholeKind(), "200", wholeBetween(1, 1_000_000, ""),
			func(c *Config) *int { return &c.Limit.Ratio },
			"maximum compression ratio, from 1 MiB of decompressed content on"),
		define("limit.members", wholeKind(), "1000", wholeBetween(1, 1_000_000, ""),
			func(c *Config) *int { return &c.Limit.Members },
			"maximum number of archive files, MIME parts and messages in a message"),
		define("limit.nesting", wholeKind(), "5", wholeBetween(1, 100, ""),
			func(c *Config) *int { return &c.Limit.Nesting },
			"maximum nesting depth of archives and messages around a report"),
		define("limit.records", wholeKind(), "1000000", wholeBetween(1, 100_000_000, ""),
			func(c *Config) *int { return &c.Limit.Records },
			"maximum number of records in a report"),
		define("limit.free_disk", bytesKind(), "256MiB", bytesBetween(0, 1<<50, ""),
			func(c *Config) *int { return &c.Limit.FreeDisk },
			"minimum free disk space in the data folder; below it, no reports are accepted"),
	}
}

func intakeSettings() []Setting {
	return []Setting{
		define("intake.forged", wordKind(), ForgedMark, oneOf(ForgedMark, ForgedReject),
			func(c *Config) *string { return &c.Intake.Forged },
			"whether reports in messages with a spoofed sender are marked (mark) or rejected (refuse)"),
		define("intake.folder", textKind(), "", orEmpty(folder()),
			func(c *Config) *string { return &c.Intake.Folder },
			"folder whose files are imported as reports, then moved to its subfolder done or rejected").
			defaulting("empty = off"),
		define("intake.folder_team", textKind(), "default", teamName(),
			func(c *Config) *string { return &c.Intake.FolderTeam },
			"team that receives the reports in intake.folder"),
	}
}

// mailIntakeSettings returns the sections smtp and imap.
func mailIntakeSettings() []Setting {
	return []Setting{
		define("smtp.certificate", textKind(), "", orEmpty(file()),
			func(c *Config) *string { return &c.SMTP.Certificate },
			"PEM file with the certificate chain for STARTTLS, instead of that of tls; requires smtp.key").
			defaulting("empty = that of tls, if any").
			needing(rule[Config]{
				want:  "set together with smtp.key (DMARCD_SMTP_KEY), the private key file of the certificate",
				valid: func(c Config) bool { return c.SMTP.Certificate == "" || c.SMTP.Key != "" },
			}),
		define("smtp.key", textKind(), "", orEmpty(file()),
			func(c *Config) *string { return &c.SMTP.Key },
			"PEM file with the private key of smtp.certificate").
			defaulting("empty").
			needing(rule[Config]{
				want:  "set together with smtp.certificate (DMARCD_SMTP_CERTIFICATE), the certificate file of the key",
				valid: func(c Config) bool { return c.SMTP.Key == "" || c.SMTP.Certificate != "" },
			}),
		define("smtp.rate", numberKind(), "600", numberUpTo(1_000_000, "off"),
			func(c *Config) *float64 { return &c.SMTP.Rate },
			"maximum messages per minute and reporting address, at most half from one network; 0 = unlimited"),
	}
}

func retentionSettings() []Setting {
	age := ageFrom(time.Hour, 876_000*time.Hour) // a hundred years
	return []Setting{
		define("retention.originals", durationKind(), "2160h", age,
			func(c *Config) *time.Duration { return &c.Retention.Originals },
			"how long to keep the original messages and files, and rejected reports; 0s = forever"),
		define("retention.records", durationKind(), "17520h", age,
			func(c *Config) *time.Duration { return &c.Retention.Records },
			"how long to keep reports with their records; 0s = forever"),
		define("retention.failure", durationKind(), "336h", age,
			func(c *Config) *time.Duration { return &c.Retention.Failure },
			"how long to keep failure reports with their originals; 0s = forever"),
		define("retention.audit", durationKind(), "17520h", age,
			func(c *Config) *time.Duration { return &c.Retention.Audit },
			"how long to keep the audit log; 0s = forever"),
	}
}

// fileSettings returns the sections secret and senders.
func fileSettings() []Setting {
	return []Setting{
		define("secret.file", textKind(), "", orEmpty(file()),
			func(c *Config) *string { return &c.Secret.File },
			"file with the key that encrypts secrets, such as mailbox passwords; created on first use").
			defaulting("secret.key in the data folder"),
		define("secret.key", textKind(), "", anyText(),
			func(c *Config) *string { return &c.Secret.Key },
			"the key itself, used instead of secret.file; prefer the environment over a flag").
			defaulting("empty").secret(),
		define("secret.command", textKind(), "", anyText(),
			func(c *Config) *string { return &c.Secret.Command },
			"command that prints the key, used instead of secret.file and secret.key: a program and its arguments, without a shell").
			defaulting("empty"),
		define("senders.catalogue", textKind(), "", orEmpty(file()),
			func(c *Config) *string { return &c.Senders.Catalogue },
			"TOML file with services, forwarders and mailing lists that take precedence over the built-in ones").
			defaulting("empty = built-in only"),
	}
}

// mailSettings returns the settings for sending mail.
func mailSettings() []Setting {
	return []Setting{
		define("mail.relay", textKind(), "", orEmpty(relay()),
			func(c *Config) *string { return &c.Mail.Relay },
			"relay for email: smtp://user:password@host:587 (STARTTLS) or smtps://user:password@host; requires mail.from").
			defaulting("empty = no email").
			needing(rule[Config]{
				want:  "set together with mail.from (DMARCD_MAIL_FROM), the address of the sender",
				valid: func(c Config) bool { return c.Mail.Relay == "" || c.Mail.From != "" },
			}),
		define("mail.from", textKind(), "", orEmpty(sender()),
			func(c *Config) *string { return &c.Mail.From },
			"sender of email, such as dmarcd <dmarc@example.com>").
			defaulting("empty"),
		define("mail.dkim_key", textKind(), "", orEmpty(file()),
			func(c *Config) *string { return &c.Mail.DKIMKey },
			"PEM file with the RSA or Ed25519 private key that signs email; requires mail.dkim_selector").
			defaulting("empty = not signed").
			needing(rule[Config]{
				want:  "set together with mail.dkim_selector (DMARCD_MAIL_DKIM_SELECTOR), where the public key is published",
				valid: func(c Config) bool { return (c.Mail.DKIMKey == "") == (c.Mail.DKIMSelector == "") },
			}),
		define("mail.dkim_selector", textKind(), "", orEmpty(selector()),
			func(c *Config) *string { return &c.Mail.DKIMSelector },
			"selector of the DKIM key in the domain of mail.from").
			defaulting("empty"),
	}
}

// relay allows smtp and smtps URLs. A user and password require TLS.
func relay() rule[string] {
	return rule[string]{
		want: "smtp://user:password@host:port (with STARTTLS), smtps://user:password@host:port, or smtp://host:port?tls=off without user and password",
		valid: func(v string) bool {
			u, err := url.Parse(v)
			if err != nil || u.Scheme != "smtp" && u.Scheme != "smtps" || !isHost(u.Hostname()) || u.Path != "" || u.Fragment != "" || strings.HasSuffix(u.Host, ":") {
				return false
			}
			_, password := u.User.Password()
			plain := u.Scheme == "smtp" && u.RawQuery == "tls=off"
			return (u.Port() == "" || isPort(u.Port(), 1)) && (u.RawQuery == "" || plain) && (u.User == nil || password && !plain)
		},
	}
}

// sender allows an address with or without a name.
func sender() rule[string] {
	return rule[string]{
		want: "an email address, such as dmarc@example.com or dmarcd <dmarc@example.com>",
		valid: func(v string) bool {
			address, err := mail.ParseAddress(v)
			if err != nil {
				return false
			}
			_, err = dmarcd.ParseEmail(address.Address)
			return err == nil
		},
	}
}

// selector allows one or more DNS labels.
func selector() rule[string] {
	return rule[string]{want: "a DKIM selector, such as s1", valid: hostPattern.MatchString}
}

// oidcSettings returns the settings for sign-in with an OpenID provider.
func oidcSettings() []Setting {
	return []Setting{
		define("oidc.issuer", textKind(), "", orEmpty(issuer()),
			func(c *Config) *string { return &c.OIDC.Issuer },
			"issuer URL of an OpenID provider for sign-in; requires oidc.client_id and oidc.client_secret").
			defaulting("empty = off").
			needing(rule[Config]{
				want: "set together with oidc.client_id and oidc.client_secret (DMARCD_OIDC_CLIENT_ID, DMARCD_OIDC_CLIENT_SECRET), as issued by the provider",
				valid: func(c Config) bool {
					return c.OIDC.Issuer == "" || c.OIDC.ClientID != "" && c.OIDC.ClientSecret != ""
				},
			}),
		define("oidc.client_id", textKind(), "", anyText(),
			func(c *Config) *string { return &c.OIDC.ClientID },
			"client id at the provider; the redirect URI is /app/oidc/callback at the host of base_url").
			defaulting("empty"),
		define("oidc.client_secret", textKind(), "", anyText(),
			func(c *Config) *string { return &c.OIDC.ClientSecret },
			"client secret for oidc.client_id; prefer the environment over a flag").
			defaulting("empty").secret(),
		define("oidc.domains", listKind(), "", each(admittedDomain(), "a comma-separated list of domain names, such as example.com,example.org=viewer:acme"),
			func(c *Config) *[]string { return &c.OIDC.Domains },
			"comma-separated mail domains whose users can sign up without an invitation, as members with =ROLE:TEAM").
			defaulting("empty = none"),
		define("oidc.groups", listKind(), "", each(groupRole(), "a comma-separated list of groups with roles in teams, such as staff=viewer:acme,admins=owner:acme"),
			func(c *Config) *[]string { return &c.OIDC.Groups },
			"comma-separated groups at the provider with their roles in teams, such as staff=viewer:acme").
			defaulting("empty = none"),
		define("oidc.groups_claim", textKind(), "groups", anyText(),
			func(c *Config) *string { return &c.OIDC.GroupsClaim },
			"claim with the groups of a user, a list of names"),
	}
}

// groupRole allows what dmarcd.ParseTeamRole parses.
func groupRole() rule[string] {
	return rule[string]{want: "a group with a role in a team, such as staff=viewer:acme", valid: func(v string) bool {
		_, _, err := dmarcd.ParseTeamRole(v)
		return err == nil
	}}
}

// admittedDomain allows a domain name, also with a role in a team.
func admittedDomain() rule[string] {
	return rule[string]{want: "a domain name, such as example.com or example.com=viewer:acme", valid: func(v string) bool {
		if name, _, err := dmarcd.ParseTeamRole(v); err == nil {
			v = name
		}
		return domainName().valid(v)
	}}
}

// anyText allows every text.
func anyText() rule[string] {
	return rule[string]{want: "a text", valid: func(string) bool { return true }}
}

// issuer allows https URLs without query and fragment (OpenID Connect Discovery 1.0
// §3), and http URLs on loopback.
func issuer() rule[string] {
	return rule[string]{
		want: "an https URL without query and fragment, such as https://login.example.com; http is for a provider on the same machine",
		valid: func(v string) bool {
			u, err := url.Parse(v)
			return err == nil && isOrigin(u) && (u.Scheme == "https" || isLoopback(u.Hostname())) && u.RawQuery == "" && u.Fragment == ""
		},
	}
}

func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}
