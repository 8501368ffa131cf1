package config_test

import (
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/internal/config"
)

// TestMailSettings checks that a password requires TLS, and that no error contains it.
func TestMailSettings(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		relay, from string
		ok          bool
	}{
		{"", "", true},
		{"smtp://mail.example.com", "dmarc@example.com", true},
		{"smtp://user:hunter-22@mail.example.com:587", "dmarcd <dmarc@example.com>", true},
		{"smtps://user:hunter-22@[2001:db8::1]:465", "dmarc@example.com", true},
		{"smtp://127.0.0.1:25?tls=off", "dmarc@example.com", true},
		{"smtp://mail.example.com", "", false},
		{"smtp://mail.example.com", "no address", false},
		{"mail.example.com:25", "dmarc@example.com", false},
		{"http://mail.example.com", "dmarc@example.com", false},
		{"smtp://user:hunter-22@mail.example.com?tls=off", "dmarc@example.com", false},
		{"smtps://mail.example.com?tls=off", "dmarc@example.com", false},
		{"smtp://user@mail.example.com", "dmarc@example.com", false},
		{"smtp://mail.example.com:0", "dmarc@example.com", false},
		{"smtp://mail.example.com/path", "dmarc@example.com", false},
	} {
		_, err := config.Load(config.Input{Flags: map[string]string{"mail-relay": tt.relay, "mail-from": tt.from}})
		if (err == nil) != tt.ok || err != nil && strings.Contains(err.Error(), "hunter-22") {
			t.Errorf("%s from %s: got %v, want it valid: %v", tt.relay, tt.from, err, tt.ok)
		}
	}
	if _, err := config.Load(config.Input{Flags: map[string]string{"mail-dkim-key": "/x.pem"}}); err == nil {
		t.Error("a key without a selector: got no error")
	}
}
