package api

import (
	"errors"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/auth"
	"github.com/dmarcd/dmarcd/internal/clientaddr"
	"github.com/dmarcd/dmarcd/internal/fair"
	"github.com/dmarcd/dmarcd/internal/httproute"
	"github.com/dmarcd/dmarcd/internal/service"
)

// lost returns the error for a request whose token was revoked, or whose team was denied, after
// authentication. It returns other errors unchanged.
func lost(w http.ResponseWriter, err error) error {
	var full *dmarcd.QuotaError
	switch {
	case errors.Is(err, dmarcd.ErrUnauthorized):
		w.Header().Set("WWW-Authenticate", invalidToken)
	case errors.Is(err, dmarcd.ErrForbidden) && !errors.As(err, &full): // the scope is sufficient
		err = errNotWhitelisted
	}
	return err
}

// stillAllowed returns an error if the token of a request was revoked or its team denied since the
// request was authenticated. Long-lasting responses call it.
func (a *API) stillAllowed(c *call) error {
	credential, err := a.options.Authenticator.Authenticate(c.r.Context(), bearer(c.r), clientaddr.Of(c.r))
	if err == nil && !credential.API {
		err = errNotWhitelisted
	}
	return err
}

// bearer returns the token of a request.
func bearer(r *http.Request) string {
	_, secret, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.TrimSpace(secret)
}

// The header WWW-Authenticate of an error 401.
const (
	challenge    = `Bearer realm="dmarcd"`
	invalidToken = challenge + `, error="invalid_token"`
)

// insufficientScope is the header WWW-Authenticate of an error 403 (RFC 6750 §3.1).
func insufficientScope(scope dmarcd.Scope) string {
	return challenge + `, error="insufficient_scope", scope="` + string(scope) + `"`
}

// authenticate returns the credential of the bearer token.
func (a *API) authenticate(w http.ResponseWriter, r *http.Request) (dmarcd.Credential, error) {
	if scheme, _, _ := strings.Cut(r.Header.Get("Authorization"), " "); !strings.EqualFold(scheme, "Bearer") {
		w.Header().Set("WWW-Authenticate", challenge)
		return dmarcd.Credential{}, dmarcd.ErrUnauthorized
	}
	address := clientaddr.Of(r)
	credential, err := a.options.Authenticator.Authenticate(r.Context(), bearer(r), address)
	if err == nil {
		return credential, nil
	}
	elsewhere := errors.Is(err, auth.ErrOtherNetwork)
	if !elsewhere && kindStatus(err) != http.StatusUnauthorized {
		return dmarcd.Credential{}, err
	}
	// Count only rejected tokens: a client with a valid token is not affected by others at the
	// same address.
	if a.failed.take(w.Header(), address) {
		a.failed.setRetryAfter(w.Header(), address)
		return dmarcd.Credential{}, errTooManyRequests
	}
	if elsewhere {
		return dmarcd.Credential{}, errOtherNetwork
	}
	w.Header().Set("WWW-Authenticate", invalidToken)
	return dmarcd.Credential{}, err
}

// admit returns the token of a request, after the checks that all requests with a token have: the token,
// the whitelist, the rates, and the number of requests at once. Call leave at its end.
func (a *API) admit(w http.ResponseWriter, r *http.Request) (token dmarcd.Token, leave func(), err error) {
	credential, err := a.authenticate(w, r)
	if err != nil {
		return token, nil, err
	}
	token = credential.Token
	httproute.Note(w, "team", token.Team.String())
	httproute.Note(w, "token", token.ID.String())
	limited := a.tokens.take(w.Header(), token.ID)
	switch {
	case !credential.API:
		return token, nil, errNotWhitelisted
	case limited:
		a.tokens.setRetryAfter(w.Header(), token.ID)
		return token, nil, errTooManyRequests
	}
	if _, limited := a.teams.allow(token.Team); limited {
		a.teams.setRetryAfter(w.Header(), token.Team)
		return token, nil, errTooManyRequests
	}
	leave, ok := a.requests.Try(token.Team)
	if !ok {
		w.Header().Set("Retry-After", retryAfter)
		return token, nil, errTooManyRequests
	}
	return token, leave, nil
}

// Admit returns a handler for requests outside the prefix that need a token: it checks them like the
// requests of the API, and passes them on with the use cases of the token.
func (a *API) Admit(next func(w http.ResponseWriter, r *http.Request, team *service.Team, token dmarcd.Token)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a.cors.answer(w, r) {
			return
		}
		token, leave, err := a.admit(w, r)
		if err != nil {
			a.fail(w, r, true, err)
			return
		}
		defer leave()
		next(w, r, a.useCases(r, token), token)
	})
}

// useCases returns the use cases with the rights of the token of a request.
func (a *API) useCases(r *http.Request, token dmarcd.Token) *service.Team {
	if a.options.Operator {
		return a.options.Service.Team(token.Team, service.CommandLine())
	}
	return a.options.Service.Team(token.Team, service.Token(token.ID, token.Scope, clientaddr.Of(r)))
}

// buckets is an in-process token bucket per key.
type buckets[K comparable] struct {
	rate  rate.Limit // 0: no limit
	burst int
	now   func() time.Time
	byKey fair.Buckets[K]
}

// newBuckets returns buckets with times the size of a token's bucket.
func newBuckets[K comparable](perSecond float64, times int, now func() time.Time) *buckets[K] {
	return &buckets[K]{
		rate:  rate.Limit(perSecond * float64(times)),
		burst: int(math.Ceil(2*perSecond)) * times,
		now:   now,
	}
}

// take takes one request from the bucket of key, sets the rate limit headers, and reports
// whether it was empty.
func (b *buckets[K]) take(header http.Header, key K) (limited bool) {
	if b.rate == 0 {
		return false
	}
	left, limited := b.allow(key)
	header.Set("RateLimit-Limit", strconv.Itoa(b.burst))
	header.Set("RateLimit-Remaining", strconv.Itoa(int(max(0, left))))
	header.Set("RateLimit-Reset", b.seconds(float64(b.burst)-left))
	return limited
}

// allow takes one request from the bucket of key, and returns how many are left and whether it
// was empty.
func (b *buckets[K]) allow(key K) (left float64, limited bool) {
	if b.rate == 0 {
		return 0, false
	}
	now := b.now()
	bucket := b.byKey.Of(key, b.rate, b.burst, now)
	limited = !bucket.AllowN(now, 1)
	return bucket.TokensAt(now), limited
}

// setRetryAfter sets the headers of a rejected request: nothing remaining, and when to retry.
func (b *buckets[K]) setRetryAfter(header http.Header, key K) {
	left, _ := b.byKey.Tokens(key, b.now())
	header.Set("RateLimit-Remaining", "0")
	header.Set("Retry-After", b.seconds(1-left))
}

// seconds returns the time until this number of requests is available, rounded up, at least one.
func (b *buckets[K]) seconds(requests float64) string {
	return strconv.Itoa(int(math.Ceil(max(requests/float64(b.rate), 1))))
}

// cors allows some origins to call the API from a browser. The zero value is off.
type cors struct {
	origins []string
}

func newCORS(origins []string) cors { return cors{origins: origins} }

// answer sets CORS headers, and reports whether it answered a preflight request.
func (c cors) answer(w http.ResponseWriter, r *http.Request) bool {
	if len(c.origins) == 0 {
		return false
	}
	header := w.Header()
	header.Add("Vary", "Origin")
	origin := r.Header.Get("Origin")
	if origin == "" || !slices.Contains(c.origins, origin) && !slices.Contains(c.origins, "*") {
		return false
	}
	header.Set("Access-Control-Allow-Origin", origin)
	header.Set("Access-Control-Expose-Headers", "Location, Link, ETag, Retry-After, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, WWW-Authenticate, X-Request-Id, Dmarcd-Check, Dmarcd-Check-Reason, Dmarcd-Error")
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	header.Set("Access-Control-Allow-Methods", "GET, HEAD, POST, PUT, PATCH, DELETE")
	header.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Idempotency-Key, If-None-Match, Last-Event-ID, Mcp-Method, Mcp-Name, Mcp-Protocol-Version")
	header.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
	return true
}
