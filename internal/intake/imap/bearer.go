package imap

import (
	"encoding/json"
	"fmt"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-sasl"
)

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
