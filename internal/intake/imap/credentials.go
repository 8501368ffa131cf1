package imap

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/dmarcd/dmarcd"
)

// Credentials are what a mailbox is logged in to with: the secret that is kept
// sealed. One of the two is set.
type Credentials struct {
	Password string `json:"password,omitempty"`
	OAuth    *OAuth `json:"oauth,omitempty"`
}

// Method returns how one logs in with them.
func (c Credentials) Method() dmarcd.LoginMethod {
	if c.OAuth != nil {
		return dmarcd.LoginOAuth
	}
	return dmarcd.LoginPassword
}

// Validate returns an InvalidError if nobody can log in with them.
func (c Credentials) Validate() error {
	if c.OAuth != nil {
		return c.OAuth.validate()
	}
	if c.Password == "" || strings.ContainsAny(c.Password, "\x00\r\n") {
		return &dmarcd.InvalidError{Field: "password", Message: "A password is one line of text, and not empty."}
	}
	return nil
}

// Encode returns the credentials in the form that is sealed.
func (c Credentials) Encode() []byte {
	encoded, err := json.Marshal(c) //nolint:gosec // what is secret is sealed next
	if err != nil {
		panic(err) // strings are always encoded
	}
	return encoded
}

// DecodeCredentials reads what Encode wrote.
func DecodeCredentials(encoded []byte) (Credentials, error) {
	var c Credentials
	if err := json.Unmarshal(encoded, &c); err != nil {
		// The words of the error would show what is being hidden.
		return Credentials{}, errors.New("the credentials of the mailbox cannot be read; remove the mailbox and add it again")
	}
	return c, c.Validate()
}
