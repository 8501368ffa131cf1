package config

import (
	"net/netip"
	"net/url"
)

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
		define("oidc.domains", listKind(), "", each(domainName(), "a comma-separated list of domain names, such as example.com,example.org"),
			func(c *Config) *[]string { return &c.OIDC.Domains },
			"comma-separated mail domains whose users can sign up without an invitation; they still need to be added to a team").
			defaulting("empty = none"),
	}
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
