package auth_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"maps"
	"testing"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

// TestLogout validates logout tokens of all kinds.
func TestLogout(t *testing.T) {
	t.Parallel()
	v := beginVisit(t, "/app/")
	now := v.clock.now().Unix()
	right := map[string]any{
		"iss": v.provider.URL, "aud": "id", "sub": "subject", "sid": "session", "jti": "1", "iat": now, "exp": now + 120,
		"events": map[string]any{"http://schemas.openid.net/event/backchannel-logout": map[string]any{}},
	}
	for _, row := range []struct {
		name   string
		change map[string]any // nil removes a member
		want   error
	}{
		{name: "right"},
		{name: "of a user", change: map[string]any{"sid": nil}},
		{name: "of a session", change: map[string]any{"sub": nil}},
		{name: "without an end", change: map[string]any{"exp": nil}},
		{name: "a little ahead", change: map[string]any{"iat": now + 30}},
		{name: "of the future", change: map[string]any{"iat": now + 120}, want: dmarcd.ErrUnauthorized},
		{name: "old", change: map[string]any{"iat": now - 400, "exp": nil}, want: dmarcd.ErrUnauthorized},
		{name: "without a time", change: map[string]any{"iat": nil}, want: dmarcd.ErrUnauthorized},
		{name: "expired", change: map[string]any{"exp": now - 120}, want: dmarcd.ErrUnauthorized},
		{name: "of another issuer", change: map[string]any{"iss": "https://id.example"}, want: dmarcd.ErrUnauthorized},
		{name: "for another client", change: map[string]any{"aud": "other"}, want: dmarcd.ErrUnauthorized},
		{name: "an ID token", change: map[string]any{"events": nil}, want: dmarcd.ErrUnauthorized},
		{name: "another event", change: map[string]any{"events": map[string]any{"https://example.com/event": map[string]any{}}}, want: dmarcd.ErrUnauthorized},
		{name: "an event that is no object", change: map[string]any{"events": map[string]any{"http://schemas.openid.net/event/backchannel-logout": 1}}, want: dmarcd.ErrUnauthorized},
		{name: "with a nonce", change: map[string]any{"nonce": "x"}, want: dmarcd.ErrUnauthorized},
		{name: "without an id", change: map[string]any{"jti": nil}, want: dmarcd.ErrUnauthorized},
		{name: "of no one", change: map[string]any{"sub": nil, "sid": nil}, want: dmarcd.ErrUnauthorized},
	} {
		claims := maps.Clone(right)
		maps.Copy(claims, row.change)
		maps.DeleteFunc(claims, func(_ string, value any) bool { return value == nil })
		logout, err := v.signIn.Logout(t.Context(), v.provider.sign(t, claims))
		if !errors.Is(err, row.want) || err == nil && (logout.Hash != sha256.Sum256([]byte("1")) || logout.Subject+logout.Session == "" || logout.Issuer != v.provider.URL) {
			t.Errorf("%s: got %+v, %v; want %v", row.name, logout, err, row.want)
		}
	}
	forged := *v.provider
	forged.key = musttest.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	for name, token := range map[string]string{"signed by others": forged.sign(t, right), "not signed": "e30.e30.", "empty": ""} {
		if _, err := v.signIn.Logout(t.Context(), token); !errors.Is(err, dmarcd.ErrUnauthorized) {
			t.Errorf("%s: got %v, want ErrUnauthorized", name, err)
		}
	}
}
