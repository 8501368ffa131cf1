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

// oidcLife is how long a person may take at the provider.
const oidcLife = 10 * time.Minute

// maxOIDCState bounds the value that a browser sends back, in bytes.
const maxOIDCState = 4096

// oidcState is what is remembered of a sign-in while the person is at the
// provider. The browser keeps it, so that any replica can go on with it.
type oidcState struct {
	State    string `json:"s"` // comes back in the URL: the answer is to our question
	Nonce    string `json:"n"` // comes back in the ID token: it was made for our question
	Verifier string `json:"v"` // of PKCE
	Next     string `json:"t"` // the page that the person wanted
	Expires  int64  `json:"e"`
}

// stateSigner signs what the browser keeps.
type stateSigner struct{ key []byte }

// newStateSigner derives the key from the secret that dmarcd shares with the
// provider: all replicas have it, and nothing more needs to be configured.
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

// open reads what seal wrote; anything else, and what is too old, is
// dmarcd.ErrUnauthorized.
func (s stateSigner) open(value string, now time.Time) (oidcState, error) {
	refused := func(reason string) (oidcState, error) {
		return oidcState{}, fmt.Errorf("%w: the sign-in cookie %s", dmarcd.ErrUnauthorized, reason)
	}
	payload, signature, ok := strings.Cut(value, ".")
	if !ok || len(value) > maxOIDCState {
		return refused("is missing or malformed")
	}
	given, err := base64.RawURLEncoding.DecodeString(signature)
	if err != nil || !hmac.Equal(given, s.mac(payload)) {
		return refused("is not ours")
	}
	document, err := base64.RawURLEncoding.DecodeString(payload)
	var state oidcState
	if err := errors.Join(err, json.Unmarshal(document, &state)); err != nil {
		return refused("cannot be read")
	}
	if now.Unix() >= state.Expires {
		return refused("is too old")
	}
	return state, nil
}
