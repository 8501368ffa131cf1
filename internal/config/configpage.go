package config

// OIDC is the section "oidc": sign-in with an OpenID provider. It is off if Issuer is
// empty.
type OIDC struct {
	// Issuer is the issuer URL of the provider.
	Issuer string
	// ClientID and ClientSecret are the credentials at the provider.
	ClientID, ClientSecret string
	// Name is the name of the provider on the sign-in page.
	Name string
	// Domains are the mail domains whose users can sign up without an invitation.
	Domains []string
}
