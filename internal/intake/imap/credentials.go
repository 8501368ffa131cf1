package imap

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-sasl"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/dmarcd/dmarcd"
)

// Credentials are the login of a mailbox, stored encrypted. Exactly one field is set.
type Credentials struct {
	Password string `json:"password,omitempty"`
	OAuth    *OAuth `json:"oauth,omitempty"`
}

// Method returns the login method.
func (c Credentials) Method() dmarcd.LoginMethod {
	if c.OAuth != nil {
		return dmarcd.LoginOAuth
	}
	return dmarcd.LoginPassword
}

// Validate returns an InvalidError if a field is missing.
func (c Credentials) Validate() error {
	if c.OAuth != nil {
		return c.OAuth.validate()
	}
	if c.Password == "" || strings.ContainsAny(c.Password, "\x00\r\n") {
		return &dmarcd.InvalidError{Field: "password", Message: "A password is one line of text, and not empty."}
	}
	return nil
}

// Encode returns the plain text to encrypt.
func (c Credentials) Encode() []byte {
	encoded, err := json.Marshal(c) //nolint:gosec // what is secret is sealed next
	if err != nil {
		panic(err) // strings are always encoded
	}
	return encoded
}

// DecodeCredentials is the inverse of Encode.
func DecodeCredentials(encoded []byte) (Credentials, error) {
	var c Credentials
	if err := json.Unmarshal(encoded, &c); err != nil {
		// The original error would quote the secret.
		return Credentials{}, errors.New("the credentials of the mailbox cannot be read; remove the mailbox and add it again")
	}
	return c, c.Validate()
}

// tokenTimeout limits a token request.
const tokenTimeout = 30 * time.Second

// OAuth describes how to get access tokens (RFC 6749): with a refresh token (§6), or without
// one by client credentials (§4.4).
type OAuth struct {
	TokenURL     string   `json:"token_url"`
	ClientID     string   `json:"client_id"`
	ClientSecret string   `json:"client_secret,omitempty"`
	RefreshToken string   `json:"refresh_token,omitempty"`
	Scopes       []string `json:"scopes,omitempty"`
}

// validate returns an InvalidError if a required field is missing.
func (o OAuth) validate() error {
	address, err := url.Parse(o.TokenURL)
	switch {
	case err != nil || address.Scheme != "https" || address.Host == "":
		return &dmarcd.InvalidError{Field: "token_url", Message: "The address that access tokens are asked from is a URL that begins with https://."}
	case o.ClientID == "":
		return &dmarcd.InvalidError{Field: "client_id", Message: "Access tokens need the id of a client that is registered with the provider."}
	case o.ClientSecret == "" && o.RefreshToken == "":
		return &dmarcd.InvalidError{Field: "refresh_token", Message: "Access tokens need a refresh token, a client secret, or both."}
	}
	return nil
}

// Token requests an access token. The provider may replace the refresh token: renewed is for
// the next request, and equals o if nothing changed.
func (o OAuth) Token(ctx context.Context, client *http.Client) (access string, renewed OAuth, err error) {
	ctx, cancel := context.WithTimeout(ctx, tokenTimeout)
	defer cancel()
	if client != nil {
		ctx = context.WithValue(ctx, oauth2.HTTPClient, client)
	}
	token, err := o.source(ctx).Token()
	if err != nil {
		return "", o, fmt.Errorf("request an access token: %w", withoutBody(err))
	}
	if token.RefreshToken != "" {
		o.RefreshToken = token.RefreshToken
	}
	return token.AccessToken, o, nil
}

func (o OAuth) source(ctx context.Context) oauth2.TokenSource {
	if o.RefreshToken == "" {
		program := &clientcredentials.Config{ClientID: o.ClientID, ClientSecret: o.ClientSecret, TokenURL: o.TokenURL, Scopes: o.Scopes}
		return program.TokenSource(ctx)
	}
	person := &oauth2.Config{
		ClientID: o.ClientID, ClientSecret: o.ClientSecret, Scopes: o.Scopes,
		Endpoint: oauth2.Endpoint{TokenURL: o.TokenURL},
	}
	return person.TokenSource(ctx, &oauth2.Token{RefreshToken: o.RefreshToken})
}

// withoutBody reduces a provider's error to its code and description (RFC 6749 §5.2). The
// library would quote the whole response.
func withoutBody(err error) error {
	var rejected *oauth2.RetrieveError
	if !errors.As(err, &rejected) {
		return readable(err)
	}
	status := "no status"
	if rejected.Response != nil {
		status = rejected.Response.Status
	}
	words := fmt.Errorf("the provider returned %s", status)
	if rejected.ErrorCode != "" {
		words = fmt.Errorf("%w: %s %s", words, rejected.ErrorCode, rejected.ErrorDescription)
	}
	if rejected.ErrorCode == "invalid_grant" || rejected.ErrorCode == "invalid_client" || rejected.ErrorCode == "unauthorized_client" {
		return fmt.Errorf("%w: %w", ErrLogin, readable(words))
	}
	return readable(words)
}

// xoauth2 is the predecessor of OAUTHBEARER. Some large providers support only this mechanism
// for access tokens.
const xoauth2 = "XOAUTH2"

// bearer returns the token mechanism that the server supports, preferably the standard one.
func bearer(caps imap.CapSet, user, token string) sasl.Client {
	if caps.Has(imap.AuthCap(sasl.OAuthBearer)) {
		// RFC 7628 §3.1
		return &bearerClient{sasl.OAuthBearer, "n,a=" + escapeName(user) + ",\x01auth=Bearer " + token + "\x01\x01"}
	}
	return &bearerClient{xoauth2, "user=" + user + "\x01auth=Bearer " + token + "\x01\x01"}
}

// escapeName escapes a name for the GS2 header (RFC 5801 §4).
func escapeName(name string) string {
	escaped := make([]byte, 0, len(name))
	for i := range len(name) {
		switch name[i] {
		case ',':
			escaped = append(escaped, "=2C"...)
		case '=':
			escaped = append(escaped, "=3D"...)
		default:
			escaped = append(escaped, name[i])
		}
	}
	return string(escaped)
}

// bearerClient sends everything in its initial response.
type bearerClient struct {
	mechanism, response string
}

func (c *bearerClient) Start() (mechanism string, response []byte, err error) {
	return c.mechanism, []byte(c.response), nil
}

// Next is called if the token was rejected; the challenge has the reason (RFC 7628 §3.2.2).
func (c *bearerClient) Next(challenge []byte) ([]byte, error) {
	rejected := &tokenError{}
	_ = json.Unmarshal(challenge, rejected) // an error without details is still an error
	return nil, rejected
}

// tokenError means that the server rejected the access token.
type tokenError struct {
	Status string `json:"status"`
	Scope  string `json:"scope"`
}

func (e *tokenError) Error() string {
	return fmt.Sprintf("the access token was rejected (status %q, scope %q)", e.Status, e.Scope)
}
