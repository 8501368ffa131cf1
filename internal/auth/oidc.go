package auth

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/dmarcd/dmarcd"
)

// CallbackPath is where the provider sends browsers back to.
const CallbackPath = "/app/oidc/callback"

// homePath is the page that a person sees who wanted none in particular.
const homePath = "/app/"

// maxNext bounds the path of the page to come back to, in bytes.
const maxNext = 1024

// OIDCOptions are the settings of a sign-in by OpenID Connect.
type OIDCOptions struct {
	// Issuer is the provider's address, below which its discovery document is.
	Issuer string
	// ClientID and ClientSecret are what the provider knows dmarcd by.
	ClientID, ClientSecret string
	// BaseURL is where clients see the API; CallbackPath is at the same host.
	BaseURL string
	// Domains are the mail domains whose people are let in uninvited. Others need
	// a user or an invite.
	Domains []string
	// Dial connects to the provider.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	Now  func() time.Time
}

// Identities is where people of a provider become users.
type Identities interface {
	// SignInIdentity returns the user of a person, or dmarcd.ErrForbidden for one
	// without a verified e-mail address, or dmarcd.ErrNotFound for one whom
	// nobody invited.
	SignInIdentity(ctx context.Context, identity dmarcd.Identity) (dmarcd.User, error)
}

// OIDC lets people in whom an OpenID provider vouches for: the authorization code
// flow of OpenID Connect Core 1.0 §3.1 with PKCE (RFC 7636), state and nonce. It
// is safe for concurrent use.
type OIDC struct {
	options    OIDCOptions
	identities Identities
	signer     stateSigner
	client     *http.Client
	redirect   string

	mu       sync.Mutex
	provider *oidc.Provider // nil until it was reached
}

// NewOIDC returns a sign-in at that provider. It does not ask it for anything
// yet: the page works while the provider is away.
func NewOIDC(options OIDCOptions, identities Identities) (*OIDC, error) {
	if options.Issuer == "" || options.ClientID == "" || options.ClientSecret == "" {
		return nil, errors.New("OpenID Connect requires the issuer, the client id and the client secret")
	}
	signer, err := newStateSigner(options.ClientSecret)
	if err != nil {
		return nil, err
	}
	base, err := url.Parse(options.BaseURL)
	if err != nil {
		return nil, fmt.Errorf("read the base URL: %w", err)
	}
	redirect := url.URL{Scheme: base.Scheme, Host: base.Host, Path: CallbackPath}
	return &OIDC{
		options: options, identities: identities, signer: signer,
		client: newProviderClient(options.Dial), redirect: redirect.String(),
	}, nil
}

// Begin returns where to send the browser, and what it has to keep meanwhile as a
// cookie. next is the path of the page to come back to; anything but a path of
// this page stands for the first one. A provider that cannot be reached is
// dmarcd.ErrTemporary.
func (o *OIDC) Begin(ctx context.Context, next string) (location, cookie string, err error) {
	config, _, err := o.discover(ctx)
	if err != nil {
		return "", "", err
	}
	state := oidcState{
		State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(),
		Next: localPath(next), Expires: o.options.Now().Add(oidcLife).Unix(),
	}
	if cookie, err = o.signer.seal(state); err != nil {
		return "", "", err
	}
	location = config.AuthCodeURL(state.State, oidc.Nonce(state.Nonce), oauth2.S256ChallengeOption(state.Verifier))
	return location, cookie, nil
}

// Finish takes what the browser comes back with, the cookie's value and the query
// of the URL, and returns the user and the page to go to.
//
// dmarcd.ErrUnauthorized means that the answer is not to our question or that the
// provider refused, dmarcd.ErrForbidden that it has no verified e-mail address of
// the person, dmarcd.ErrNotFound that nobody invited them, and
// dmarcd.ErrTemporary that the provider could not be reached. The words of those
// errors are for the log.
func (o *OIDC) Finish(ctx context.Context, cookie string, query url.Values) (user dmarcd.User, next string, err error) {
	state, err := o.signer.open(cookie, o.options.Now())
	if err != nil {
		return dmarcd.User{}, "", err
	}
	if subtle.ConstantTimeCompare([]byte(query.Get("state")), []byte(state.State)) != 1 {
		return dmarcd.User{}, "", fmt.Errorf("%w: the state does not match", dmarcd.ErrUnauthorized)
	}
	// RFC 9207 §2.4: an answer that names another issuer is not to our question.
	if issuer := query.Get("iss"); issuer != "" && issuer != o.options.Issuer {
		return dmarcd.User{}, "", fmt.Errorf("%w: the response is from another issuer", dmarcd.ErrUnauthorized)
	}
	if refusal := query.Get("error"); refusal != "" {
		return dmarcd.User{}, "", fmt.Errorf("%w: the provider returned an error: %.100q", dmarcd.ErrUnauthorized, refusal)
	}
	identity, err := o.identify(ctx, query.Get("code"), state)
	if err != nil {
		return dmarcd.User{}, "", err
	}
	user, err = o.identities.SignInIdentity(ctx, identity)
	return user, state.Next, err
}

// identify changes the code for the person's claims.
func (o *OIDC) identify(ctx context.Context, code string, state oidcState) (dmarcd.Identity, error) {
	config, provider, err := o.discover(ctx)
	if err != nil {
		return dmarcd.Identity{}, err
	}
	ctx = oidc.ClientContext(ctx, o.client)
	token, err := config.Exchange(ctx, code, oauth2.VerifierOption(state.Verifier))
	if err != nil {
		return dmarcd.Identity{}, providerError("change the code for a token", err)
	}
	raw, ok := token.Extra("id_token").(string)
	if !ok {
		return dmarcd.Identity{}, fmt.Errorf("%w: the provider sent no ID token", dmarcd.ErrUnauthorized)
	}
	idToken, err := provider.Verifier(&oidc.Config{ClientID: o.options.ClientID, Now: o.options.Now}).Verify(ctx, raw)
	if err != nil {
		return dmarcd.Identity{}, fmt.Errorf("%w: verify the ID token: %w", dmarcd.ErrUnauthorized, err)
	}
	if subtle.ConstantTimeCompare([]byte(idToken.Nonce), []byte(state.Nonce)) != 1 {
		return dmarcd.Identity{}, fmt.Errorf("%w: the ID token is not for this sign-in", dmarcd.ErrUnauthorized)
	}
	var claims personClaims
	if err := idToken.Claims(&claims); err != nil {
		return dmarcd.Identity{}, fmt.Errorf("%w: read the ID token: %w", dmarcd.ErrUnauthorized, err)
	}
	if claims.Email == "" {
		// OpenID Connect Core 1.0 §5.4: with an access token, the claims of
		// scopes are at the UserInfo endpoint.
		if claims, err = userInfo(ctx, provider, config.TokenSource(ctx, token), idToken.Subject); err != nil {
			return dmarcd.Identity{}, err
		}
	}
	return o.identity(idToken.Subject, claims), nil
}

// identity returns the person of some claims.
func (o *OIDC) identity(subject string, claims personClaims) dmarcd.Identity {
	identity := dmarcd.Identity{Issuer: o.options.Issuer, Subject: subject}
	if email, err := dmarcd.ParseEmail(claims.Email); err == nil && claims.verified() {
		identity.Email = email
		_, domain, _ := strings.Cut(email, "@")
		identity.Admit = slices.Contains(o.options.Domains, domain)
	}
	if name, err := dmarcd.ParseUserName(claims.Name); err == nil {
		identity.Name = name // else the provider's name is none that we can show
	}
	return identity
}

// localPath returns next if it is the path of a page here, else that of the first
// page: a link to us must not lead on to another site. A browser takes a
// backslash for a slash and passes over control characters.
func localPath(next string) string {
	odd := func(r rune) bool { return r <= ' ' || r == '\\' || r == 0x7f }
	if !strings.HasPrefix(next, homePath) || len(next) > maxNext || strings.ContainsFunc(next, odd) {
		return homePath
	}
	return next
}
