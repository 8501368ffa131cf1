package config_test

import (
	"testing"

	"github.com/dmarcd/dmarcd/internal/config"
)

// withClient returns the flags for an issuer with valid client credentials.
func withClient(issuer string) map[string]string {
	return map[string]string{"oidc-issuer": issuer, "oidc-client-id": "dmarcd", "oidc-client-secret": "open sesame"}
}

func TestBadOIDCValues(t *testing.T) {
	t.Parallel()
	const (
		wantIssuer = "must be an https URL without query and fragment, such as https://login.example.com; http is for a provider on the same machine"
		wantClient = "must be set together with oidc.client_id and oidc.client_secret (DMARCD_OIDC_CLIENT_ID, DMARCD_OIDC_CLIENT_SECRET), as issued by the provider"
	)
	for _, tt := range []struct {
		name  string
		flags map[string]string
		want  string // the whole line
	}{
		{
			"an issuer that is not a URL",
			withClient("login.example.com"),
			`oidc.issuer = "login.example.com" (flag --oidc-issuer): ` + wantIssuer,
		},
		{
			"an issuer without TLS",
			withClient("http://login.example.com"),
			`oidc.issuer = "http://login.example.com" (flag --oidc-issuer): ` + wantIssuer,
		},
		{
			"an issuer with a query",
			withClient("https://login.example.com/?tenant=1"),
			`oidc.issuer = "https://login.example.com/?tenant=1" (flag --oidc-issuer): ` + wantIssuer,
		},
		{
			"an issuer without a client",
			map[string]string{"oidc-issuer": "https://login.example.com", "oidc-client-id": "dmarcd"},
			`oidc.issuer = "https://login.example.com" (flag --oidc-issuer): ` + wantClient,
		},
		{
			"a domain that is an address",
			map[string]string{"oidc-domains": "me@example.com"},
			`oidc.domains = "me@example.com" (flag --oidc-domains): must be a comma-separated list of domain names, such as example.com,example.org`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := config.Load(config.Input{Flags: tt.flags})
			if err == nil || err.Error() != tt.want {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

func TestIssuerOnTheSameMachine(t *testing.T) {
	t.Parallel()
	for _, issuer := range []string{"http://127.0.0.1:3000", "http://localhost:3000/oidc", "http://[::1]:3000"} {
		if _, err := config.Load(config.Input{Flags: withClient(issuer)}); err != nil {
			t.Errorf("%s: got %v, want no error", issuer, err)
		}
	}
}
