package config

import (
	"net/netip"
	"net/url"
)

// pageSettings are those of the web page.
func pageSettings() []Setting {
	return []Setting{
		define("oidc.issuer", textKind(), "", orEmpty(issuer()),
			func(c *Config) *string { return &c.OIDC.Issuer },
			"the address of an OpenID provider that people sign in with on the web page; needs oidc.client_id and oidc.client_secret").
			defaulting("empty = off").
			needing(rule[Config]{
				want: "oidc.client_id and oidc.client_secret (DMARCD_OIDC_CLIENT_ID, DMARCD_OIDC_CLIENT_SECRET) as well, as the provider gave them out",
				valid: func(c Config) bool {
					return c.OIDC.Issuer == "" || c.OIDC.ClientID != "" && c.OIDC.ClientSecret != ""
				},
			}),
		define("oidc.client_id", textKind(), "", anyText(),
			func(c *Config) *string { return &c.OIDC.ClientID },
			"what the provider calls this installation; its redirect URI is /app/oidc/callback at the host of base_url").
			defaulting("empty"),
		define("oidc.client_secret", textKind(), "", anyText(),
			func(c *Config) *string { return &c.OIDC.ClientSecret },
			"the secret that goes with oidc.client_id; the environment hides it better than a flag").
			defaulting("empty").secret(),
		define("oidc.name", textKind(), "single sign-on", anyText(),
			func(c *Config) *string { return &c.OIDC.Name },
			"how the sign-in page calls the provider"),
		define("oidc.domains", listKind(), "", each(domainName(), "a comma list of domain names, such as example.com,example.org"),
			func(c *Config) *[]string { return &c.OIDC.Domains },
			"comma list of the mail domains whose people get a user uninvited; they still need somebody to let them into a team").
			defaulting("empty = nobody"),
	}
}

// anyText allows every text.
func anyText() rule[string] {
	return rule[string]{want: "a text", valid: func(string) bool { return true }}
}

// issuer allows an https address without query and fragment (OpenID Connect
// Discovery 1.0 §3), and one in the clear that leaves no machine.
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
