// Package webhook delivers events to HTTP endpoints as Standard Webhooks 1.0 describes it:
// a POST with the headers webhook-id, webhook-timestamp and webhook-signature, signed with
// HMAC-SHA256. Endpoints of chat services get the messages of package chat. When a delivery is due, and how often it is tried, is left to package notify.
package webhook

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"
	"time"
)

const (
	// secretPrefix begins the form of a secret that users see.
	secretPrefix = "whsec_"
	// secretSize is how many random bytes a secret has; the standard wants 24 to 64.
	secretSize = 32
)

// NewSecret returns a random secret.
func NewSecret() []byte {
	secret := make([]byte, secretSize)
	_, _ = rand.Read(secret) // never fails
	return secret
}

// FormatSecret returns a secret as users copy it.
func FormatSecret(secret []byte) string {
	return secretPrefix + base64.StdEncoding.EncodeToString(secret)
}

// sign returns the header webhook-signature of a message: a signature with each secret.
//
//	header    = signature *( SP signature )
//	signature = "v1," base64( HMAC-SHA256( secret, id "." seconds "." body ) )
func sign(id string, at time.Time, body []byte, secrets [][]byte) string {
	signatures := make([]string, len(secrets))
	for i, secret := range secrets {
		mac := hmac.New(sha256.New, secret)
		mac.Write([]byte(id + "." + strconv.FormatInt(at.Unix(), 10) + "."))
		mac.Write(body)
		signatures[i] = "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	return strings.Join(signatures, " ")
}
