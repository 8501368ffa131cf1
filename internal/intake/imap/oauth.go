package imap

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/dmarcd/dmarcd"
)

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
