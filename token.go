package dmarcd

import "time"

// Scope is the permission of a token.
type Scope string

const (
	// ScopeRead allows reading.
	ScopeRead Scope = "read"
	// ScopeWrite allows reading and writing.
	ScopeWrite Scope = "write"
)

// ParseScope returns the scope named s, or an InvalidError.
func ParseScope(s string) (Scope, error) {
	switch scope := Scope(s); scope {
	case ScopeRead, ScopeWrite:
		return scope, nil
	}
	return "", &InvalidError{Field: "scope", Message: "The scope must be read or write."}
}

// Token is the metadata of a bearer token. Only the hash of its secret is stored.
type Token struct {
	ID        TokenID
	Team      TeamID
	Name      string
	Scope     Scope
	CreatedAt time.Time
	ExpiresAt time.Time // zero: never
	UsedAt    time.Time // with a resolution of one minute; zero: not yet
	RevokedAt time.Time // zero: not revoked
}

// Valid reports whether the token is valid at the given time.
func (t Token) Valid(now time.Time) bool {
	return t.RevokedAt.IsZero() && (t.ExpiresAt.IsZero() || now.Before(t.ExpiresAt))
}

// May reports whether the token's scope includes the wanted one.
func (t Token) May(want Scope) bool {
	return t.Scope == ScopeWrite || t.Scope == want
}

// Credential is the result of resolving a bearer token.
type Credential struct {
	Token Token
	// API is true if the token's team may use the API.
	API bool
}
