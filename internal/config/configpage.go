package config

// OIDC is the section "oidc": a sign-in on the web page by an OpenID provider. It is
// off where Issuer is empty.
type OIDC struct {
	// Issuer is the provider's address, below which its discovery document is.
	Issuer string
	// ClientID and ClientSecret are what the provider knows this installation by.
	ClientID, ClientSecret string
	// Name is how the sign-in page calls the provider.
	Name string
	// Domains are the mail domains whose people are let in uninvited.
	Domains []string
}
