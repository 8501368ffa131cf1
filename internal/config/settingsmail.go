package config

import (
	"net/mail"
	"net/url"
	"strings"

	"github.com/dmarcd/dmarcd"
)

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
