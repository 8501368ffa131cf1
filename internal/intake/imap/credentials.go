package imap

import (
	"encoding/json"
	"errors"
	"strings"

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
