package dmarcd

import "time"

// Scope says what a token may do.
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

// Token is what is known of a bearer token. The secret itself is not: only its
// hash is kept, and only by the store.
type Token struct {
	ID        TokenID
	Team      TeamID
	Name      string
	Scope     Scope
	CreatedAt time.Time
	ExpiresAt time.Time // zero: never
	UsedAt    time.Time // to the minute; zero: not yet
	RevokedAt time.Time // zero: not revoked
}

// Valid reports whether the token may be used at that moment.
func (t Token) Valid(now time.Time) bool {
	return t.RevokedAt.IsZero() && (t.ExpiresAt.IsZero() || now.Before(t.ExpiresAt))
}

// May reports whether the token's scope covers what is wanted.
func (t Token) May(want Scope) bool {
	return t.Scope == ScopeWrite || t.Scope == want
}

// Credential is what a bearer token resolves to.
type Credential struct {
	Token Token
	// API tells whether the token's team is on the API whitelist.
	API bool
}
