package auth

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
)

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
