package auth

import (
	"context"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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

// CallbackPath is the redirect path of the provider.
const CallbackPath = "/app/oidc/callback"

// ProvedPath is the page after a sign-in at the provider that only proves who the user of the present
// session is.
const ProvedPath = "/app/proved"

// startPath is the default page after sign-in.
const startPath = "/app/"

// maxNext limits the path to return to, in bytes.
const maxNext = 1024

// OIDCOptions configures sign-in with OpenID Connect.
type OIDCOptions struct {
	// Issuer is the URL of the provider. The discovery document is below it.
	Issuer string
	// ClientID and ClientSecret identify dmarcd to the provider.
	ClientID, ClientSecret string
	// BaseURL is the public URL of the API; CallbackPath is on the same host.
	BaseURL string
	// Domains are the email domains whose users may sign in without an invitation, some with a role in a
	// team (dmarcd.ParseTeamRole). Others need a user account, an invitation, or a role by a group.
	Domains []string
	// Groups are the groups of the claim GroupsClaim that have a role in a team.
	Groups      []string
	GroupsClaim string
	Dial        func(ctx context.Context, network, address string) (net.Conn, error)
	Now         func() time.Time
}

// Identities maps identities of the provider to users.
type Identities interface {
	// SignInIdentity returns the user of an identity. It returns dmarcd.ErrForbidden
	// without a verified email address, and dmarcd.ErrNotFound if the person was not
	// invited.
	SignInIdentity(ctx context.Context, identity dmarcd.Identity) (dmarcd.SignIn, error)
}

// OIDC signs users in with an OpenID provider: the authorization code flow of OpenID
// Connect Core 1.0 §3.1 with PKCE (RFC 7636), state and nonce. It is safe for concurrent
// use.
type OIDC struct {
	options    OIDCOptions
	identities Identities
	signer     stateSigner
	client     *http.Client
	redirect   string
	// domains and groups are the roles that they grant, by their names; that of a domain may be zero.
	domains, groups map[string][]dmarcd.TeamRole

	mu       sync.Mutex
	provider *oidc.Provider // nil until discovery succeeds
	failure  error          // of the last discovery
	failedAt time.Time
}

// NewOIDC returns a sign-in with the provider. It does not contact the provider yet, so
// that the page works while the provider is down.
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
	o := &OIDC{
		options: options, identities: identities, signer: signer,
		client: newProviderClient(options.Dial), redirect: redirect.String(),
		domains: map[string][]dmarcd.TeamRole{}, groups: map[string][]dmarcd.TeamRole{},
	}
	for _, domain := range options.Domains {
		name, role, err := dmarcd.ParseTeamRole(domain)
		if err != nil { // no role
			o.domains[domain] = append(o.domains[domain], role)
			continue
		}
		o.domains[name] = append(o.domains[name], role)
	}
	for _, group := range options.Groups {
		name, role, err := dmarcd.ParseTeamRole(group)
		if err != nil {
			return nil, fmt.Errorf("read the groups: %w", err)
		}
		o.groups[name] = append(o.groups[name], role)
	}
	return o, nil
}

// Begin returns the URL to redirect the browser to, and the cookie value to set. next is
// the path to return to; anything that is not a local path is replaced by the home page.
// If the provider cannot be reached the error is dmarcd.ErrTemporary.
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
	parameters := []oauth2.AuthCodeOption{oidc.Nonce(state.Nonce), oauth2.S256ChallengeOption(state.Verifier)}
	if state.Next == ProvedPath { // the provider must not remember the user
		parameters = append(parameters, oauth2.SetAuthURLParam("max_age", "0"))
	}
	location = config.AuthCodeURL(state.State, parameters...)
	return location, cookie, nil
}

// Finish validates the callback, given the cookie value and the query of the URL, and
// returns the user and the page to go to.
//
// It returns dmarcd.ErrUnauthorized if the response does not belong to our request or the
// provider denied it, dmarcd.ErrForbidden if the person has no verified email address,
// dmarcd.ErrNotFound if they were not invited, and dmarcd.ErrTemporary if the provider
// could not be reached. The texts of these errors are for the log.
func (o *OIDC) Finish(ctx context.Context, cookie string, query url.Values) (of dmarcd.SignIn, next string, err error) {
	state, err := o.signer.open(cookie, o.options.Now())
	if err != nil {
		return dmarcd.SignIn{}, "", err
	}
	if subtle.ConstantTimeCompare([]byte(query.Get("state")), []byte(state.State)) != 1 {
		return dmarcd.SignIn{}, "", fmt.Errorf("%w: the state does not match", dmarcd.ErrUnauthorized)
	}
	// RFC 9207 §2.4: a response with another issuer does not belong to our request.
	if issuer := query.Get("iss"); issuer != "" && issuer != o.options.Issuer {
		return dmarcd.SignIn{}, "", fmt.Errorf("%w: the response is from another issuer", dmarcd.ErrUnauthorized)
	}
	if reason := query.Get("error"); reason != "" {
		return dmarcd.SignIn{}, "", fmt.Errorf("%w: the provider returned an error: %.100q", dmarcd.ErrUnauthorized, reason)
	}
	identity, facts, err := o.identify(ctx, query.Get("code"), state)
	if err != nil {
		return dmarcd.SignIn{}, "", err
	}
	of, err = o.identities.SignInIdentity(ctx, identity)
	of.ProvedAt, of.ProviderSession = facts.provedAt, facts.session
	return of, state.Next, err
}

// signInFacts are about a sign-in at the provider.
type signInFacts struct {
	// provedAt is when the provider authenticated the person, zero if it does not tell.
	provedAt time.Time
	// session is the id of the session there, "" if it does not tell.
	session string
}

// maxSubject limits a subject (OpenID Connect Core 1.0 §2). It is part of a key, so it is not cut.
const maxSubject = 255

// identify exchanges the code for the person's claims, and facts about the sign-in.
func (o *OIDC) identify(ctx context.Context, code string, state oidcState) (identity dmarcd.Identity, facts signInFacts, err error) {
	config, provider, err := o.discover(ctx)
	if err != nil {
		return identity, facts, err
	}
	ctx = oidc.ClientContext(ctx, o.client)
	token, err := config.Exchange(ctx, code, oauth2.VerifierOption(state.Verifier))
	if err != nil {
		return identity, facts, providerError("change the code for a token", err)
	}
	raw, ok := token.Extra("id_token").(string)
	if !ok {
		return identity, facts, fmt.Errorf("%w: the provider sent no ID token", dmarcd.ErrUnauthorized)
	}
	idToken, err := provider.Verifier(&oidc.Config{ClientID: o.options.ClientID, Now: o.options.Now}).Verify(ctx, raw)
	if err != nil {
		return identity, facts, fmt.Errorf("%w: verify the ID token: %w", dmarcd.ErrUnauthorized, err)
	}
	if subtle.ConstantTimeCompare([]byte(idToken.Nonce), []byte(state.Nonce)) != 1 {
		return identity, facts, fmt.Errorf("%w: the ID token is not for this sign-in", dmarcd.ErrUnauthorized)
	}
	if len(idToken.Subject) > maxSubject {
		return identity, facts, fmt.Errorf("%w: the subject of the ID token is too long", dmarcd.ErrUnauthorized)
	}
	var claims personClaims
	if err := idToken.Claims(&claims); err != nil {
		return identity, facts, fmt.Errorf("%w: read the ID token: %w", dmarcd.ErrUnauthorized, err)
	}
	if claims.AuthTime > 0 { // of the ID token, not of the UserInfo endpoint
		facts.provedAt = time.Unix(claims.AuthTime, 0)
		if now := o.options.Now(); facts.provedAt.After(now) { // the clocks differ, or the provider is wrong
			facts.provedAt = now
		}
	}
	if len(claims.Session) <= maxSubject {
		facts.session = claims.Session
	}
	groups, hasGroups := o.groupsOf(idToken)
	if claims.Email == "" || !hasGroups && provider.UserInfoEndpoint() != "" {
		// OpenID Connect Core 1.0 §5.4: with an access token, the claims of scopes are at
		// the UserInfo endpoint.
		info, err := userInfo(ctx, provider, config.TokenSource(ctx, token), idToken.Subject)
		if err != nil {
			return identity, facts, err
		}
		if !hasGroups {
			groups, _ = o.groupsOf(info)
		}
		if claims.Email == "" {
			claims = personClaims{}
			if err := info.Claims(&claims); err != nil {
				return identity, facts, fmt.Errorf("%w: read the user's claims: %w", dmarcd.ErrUnauthorized, err)
			}
		}
	}
	identity = o.identity(idToken.Subject, claims)
	identity.HasGroups = len(o.groups) > 0
	for _, group := range groups {
		identity.Groups = append(identity.Groups, o.groups[group]...)
	}
	return identity, facts, nil
}

// groupsOf returns the groups in the claims of a token or an answer, and whether it has them, or none
// have a role.
func (o *OIDC) groupsOf(from interface{ Claims(v any) error }) (groups []string, ok bool) {
	if len(o.groups) == 0 {
		return nil, true
	}
	var claims map[string]any
	if err := from.Claims(&claims); err != nil {
		return nil, false
	}
	switch value := claims[o.options.GroupsClaim].(type) {
	case string: // of providers that write one value without a list
		return []string{value}, true
	case []any:
		for _, group := range value {
			if name, ok := group.(string); ok {
				groups = append(groups, name)
			}
		}
		return groups, true
	}
	return nil, false
}

// identity converts claims.
func (o *OIDC) identity(subject string, claims personClaims) dmarcd.Identity {
	identity := dmarcd.Identity{Issuer: o.options.Issuer, Subject: subject}
	if email, err := dmarcd.ParseEmail(claims.Email); err == nil && claims.verified() {
		identity.Email = email
		_, domain, _ := strings.Cut(email, "@")
		var roles []dmarcd.TeamRole
		roles, identity.Admit = o.domains[domain]
		for _, of := range roles {
			if of.Team != "" {
				identity.Join = append(identity.Join, of)
			}
		}
	}
	if name, err := dmarcd.ParseUserName(claims.Name); err == nil {
		identity.Name = name // else the name cannot be displayed
	}
	return identity
}

// localPath returns next if it is a local path, else the home page, to prevent open
// redirects. Browsers treat a backslash as a slash and ignore control characters.
func localPath(next string) string {
	odd := func(r rune) bool { return r <= ' ' || r == '\\' || r == 0x7f }
	if !strings.HasPrefix(next, startPath) || len(next) > maxNext || strings.ContainsFunc(next, odd) {
		return startPath
	}
	return next
}

const (
	// providerTimeout is for one request to the provider.
	providerTimeout = 10 * time.Second
	// discoverEvery is the time between attempts to discover a provider that cannot be reached:
	// anyone can ask for it.
	discoverEvery = 5 * time.Second
	// maxProviderAnswer limits a response, in bytes.
	maxProviderAnswer = 1 << 20
)

// personClaims are the claims about a person (OpenID Connect Core 1.0 §5.1).
type personClaims struct {
	Email         string `json:"email"`
	EmailVerified any    `json:"email_verified"`
	Name          string `json:"name"`
	AuthTime      int64  `json:"auth_time"`
	Session       string `json:"sid"`
}

// verified reports whether the provider has verified the email address. Some providers
// write the value as a string; a missing value means no.
func (c personClaims) verified() bool { return c.EmailVerified == true || c.EmailVerified == "true" }

// discover returns the provider. Its discovery document is fetched once, even if the client
// leaves.
func (o *OIDC) discover(ctx context.Context) (*oauth2.Config, *oidc.Provider, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.provider == nil {
		if o.failure != nil && o.options.Now().Sub(o.failedAt) < discoverEvery {
			return nil, nil, o.failure
		}
		provider, err := oidc.NewProvider(oidc.ClientContext(context.WithoutCancel(ctx), o.client), o.options.Issuer)
		if err != nil {
			o.failure, o.failedAt = fmt.Errorf("%w: discover the OpenID provider: %w", dmarcd.ErrTemporary, err), o.options.Now()
			return nil, nil, o.failure
		}
		o.provider = provider
	}
	scopes := []string{oidc.ScopeOpenID, "email", "profile"}
	// Some providers have the groups in a scope of their own.
	var known struct {
		Scopes []string `json:"scopes_supported"`
	}
	if err := o.provider.Claims(&known); err == nil && len(o.groups) > 0 && slices.Contains(known.Scopes, o.options.GroupsClaim) {
		scopes = append(scopes, o.options.GroupsClaim)
	}
	return &oauth2.Config{
		ClientID:     o.options.ClientID,
		ClientSecret: o.options.ClientSecret,
		Endpoint:     o.provider.Endpoint(),
		RedirectURL:  o.redirect,
		Scopes:       scopes,
	}, o.provider, nil
}

// userInfo fetches the claims of a person.
func userInfo(ctx context.Context, provider *oidc.Provider, tokens oauth2.TokenSource, subject string) (*oidc.UserInfo, error) {
	info, err := provider.UserInfo(ctx, tokens)
	if err != nil {
		return nil, providerError("ask for the person's claims", err)
	}
	// OpenID Connect Core 1.0 §5.3.2: claims of another subject must not be used.
	if info.Subject != subject {
		return nil, fmt.Errorf("%w: the provider's claims are for another user", dmarcd.ErrUnauthorized)
	}
	return info, nil
}

// providerError distinguishes a provider that denies the request from one that cannot be
// reached.
func providerError(what string, err error) error {
	kind := dmarcd.ErrTemporary
	var rejected *oauth2.RetrieveError
	if errors.As(err, &rejected) && rejected.Response != nil && rejected.Response.StatusCode < http.StatusInternalServerError {
		kind = dmarcd.ErrUnauthorized
	}
	return fmt.Errorf("%w: %s: %w", kind, what, err)
}

// newProviderClient returns a client without keep-alive and with bounded responses.
func newProviderClient(dial func(ctx context.Context, network, address string) (net.Conn, error)) *http.Client {
	return &http.Client{
		Timeout:   providerTimeout,
		Transport: limitedTransport{&http.Transport{Proxy: http.ProxyFromEnvironment, DialContext: dial, DisableKeepAlives: true}},
	}
}

// limitedTransport truncates long responses.
type limitedTransport struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t limitedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	response.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(response.Body, maxProviderAnswer), response.Body}
	return response, nil
}

// oidcLife is the time limit for signing in at the provider.
const oidcLife = 10 * time.Minute

// maxOIDCState limits the cookie value, in bytes.
const maxOIDCState = 4096

// oidcState is the state of a sign-in. It is in a cookie, so that any replica can
// continue.
type oidcState struct {
	State    string `json:"s"` // compared with the URL of the callback
	Nonce    string `json:"n"` // compared with the ID token
	Verifier string `json:"v"` // the PKCE verifier
	Next     string `json:"t"` // the page to return to
	Expires  int64  `json:"e"`
}

// stateSigner signs the cookie.
type stateSigner struct{ key []byte }

// newStateSigner derives the key from the client secret: all replicas have it, and no
// further setting is needed.
func newStateSigner(clientSecret string) (stateSigner, error) {
	key, err := hkdf.Key(sha256.New, []byte(clientSecret), nil, "dmarcd: sign-in by OpenID Connect", sha256.Size)
	if err != nil {
		return stateSigner{}, fmt.Errorf("derive a key from the client secret: %w", err)
	}
	return stateSigner{key: key}, nil
}

func (s stateSigner) mac(payload string) []byte {
	mac := hmac.New(sha256.New, s.key)
	mac.Write([]byte(payload))
	return mac.Sum(nil)
}

func (s stateSigner) seal(state oidcState) (string, error) {
	document, err := json.Marshal(state)
	if err != nil {
		return "", fmt.Errorf("encode the sign-in state: %w", err)
	}
	payload := base64.RawURLEncoding.EncodeToString(document)
	return payload + "." + base64.RawURLEncoding.EncodeToString(s.mac(payload)), nil
}

// open verifies and decodes the result of seal. Anything else, or an expired state, is
// dmarcd.ErrUnauthorized.
func (s stateSigner) open(value string, now time.Time) (oidcState, error) {
	rejected := func(reason string) (oidcState, error) {
		return oidcState{}, fmt.Errorf("%w: the sign-in cookie %s", dmarcd.ErrUnauthorized, reason)
	}
	payload, signature, ok := strings.Cut(value, ".")
	if !ok || len(value) > maxOIDCState {
		return rejected("is missing or malformed")
	}
	given, err := base64.RawURLEncoding.DecodeString(signature)
	if err != nil || !hmac.Equal(given, s.mac(payload)) {
		return rejected("is not ours")
	}
	document, err := base64.RawURLEncoding.DecodeString(payload)
	var state oidcState
	if err := errors.Join(err, json.Unmarshal(document, &state)); err != nil {
		return rejected("cannot be read")
	}
	if now.Unix() >= state.Expires {
		return rejected("is too old")
	}
	return state, nil
}
