package config_test

import (
	"testing"

	"github.com/dmarcd/dmarcd/internal/config"
)

func TestSecretsAreMasked(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, flag, value, want string }{
		{"token", "token", goodToken, "***"},
		{"no token", "token", "", ""},
		{"SQLite file", "database", "/srv/a.db", "/srv/a.db"},
		{"no password", "database", "postgres://u@h:5432/d?sslmode=require", "postgres://u@h:5432/d?sslmode=require"},
		{"no user", "database", "postgres://h/d", "postgres://h/d"},
		{"password", "database", "postgres://u:secret@h:5432/d?sslmode=require", "postgres://u:***@h:5432/d?sslmode=require"},
		{"other scheme word", "database", "postgresql://u:secret@h/d", "postgresql://u:***@h/d"},
		{"empty password", "database", "postgres://u:@h/d", "postgres://u:***@h/d"},
		{"encoded password", "database", "postgres://u:s%40e%2Fc@h/d", "postgres://u:***@h/d"},
		{"encoded user", "database", "postgres://u%40x:secret@h/d", "postgres://u%40x:***@h/d"},
		{"several hosts", "database", "postgres://u:secret@h1:1,h2:2/d", "postgres://u:***@h1:1,h2:2/d"},
		{"password as a parameter", "database", "postgres://u@h/d?password=secret&sslmode=require", "postgres://u@h/d?password=***&sslmode=require"},
		{"password of the key", "database", "postgres://u@h/d?sslpassword=secret", "postgres://u@h/d?sslpassword=***"},
		{"encoded name of the parameter", "database", "postgres://u@h/d?pass%77ord=secret", "postgres://u@h/d?pass%77ord=***"},
		{"password with a bare at sign", "database", "postgres://u:se@cret@h/d", "postgres://***"},
		{"password with a bare slash", "database", "postgres://u:1/secret@h/d", "postgres://***"},
		{"password with a bare question mark", "database", "postgres://u:1?secret@h/d", "postgres://***"},
		{"password with a bare number sign", "database", "postgres://u:1#secret@h/d", "postgres://***"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := load(t, config.Input{Flags: map[string]string{tt.flag: tt.value}})
			if got := valueOf(t, e, tt.flag).Text; got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
