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
