package config_test

import (
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/internal/config"
)

func TestDatabaseFollowsData(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		flags map[string]string
		want  string
	}{
		{"data moves the database", map[string]string{"data": "/srv/dmarcd"}, filepath.Join("/srv/dmarcd", "dmarcd.db")},
		{"database stays where it is put", map[string]string{"data": "/srv/dmarcd", "database": "other.db"}, "other.db"},
		{
			"PostgreSQL by socket folder",
			map[string]string{"database": "postgres:///dmarcd?host=/run/postgresql"},
			"postgres:///dmarcd?host=/run/postgresql",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := load(t, config.Input{Flags: tt.flags}).Config.Database; got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestBaseURLAndPrefix(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		flags   map[string]string
		baseURL string
		prefix  string
	}{
		{"default", nil, "http://127.0.0.1:8080/api", "/api"},
		{"no host", map[string]string{"listen": ":9000"}, "http://localhost:9000/api", "/api"},
		{"every IPv4 address", map[string]string{"listen": "0.0.0.0:9000"}, "http://localhost:9000/api", "/api"},
		{"every IPv6 address", map[string]string{"listen": "[::]:9000"}, "http://localhost:9000/api", "/api"},
		{"one IPv6 address", map[string]string{"listen": "[2001:db8::1]:80"}, "http://[2001:db8::1]:80/api", "/api"},
		{"a name", map[string]string{"listen": "mail.example.com:80"}, "http://mail.example.com:80/api", "/api"},
		{"at the root", map[string]string{"base-url": "https://api.example.com/"}, "https://api.example.com", ""},
		{"at the root without slash", map[string]string{"base-url": "https://api.example.com"}, "https://api.example.com", ""},
		{"deep", map[string]string{"base-url": "https://example.com/mail/dmarc/v1/"}, "https://example.com/mail/dmarc/v1", "/mail/dmarc/v1"},
		{"begins like a taken path", map[string]string{"base-url": "https://example.com/application"}, "https://example.com/application", "/application"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := load(t, config.Input{Flags: tt.flags}).Config
			if c.BaseURL != tt.baseURL {
				t.Errorf("got base URL %q, want %q", c.BaseURL, tt.baseURL)
			}
			if got := c.Prefix(); got != tt.prefix {
				t.Errorf("got prefix %q, want %q", got, tt.prefix)
			}
		})
	}
}

func TestPrefixOfConfigMadeByHand(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		c    config.Config
		want string
	}{
		{"base URL with a slash", config.Config{BaseURL: "https://example.com/api/"}, "/api"},
		{"no base URL", config.Config{Listen: ":80"}, "/api"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := tt.c.Prefix(); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestListening(t *testing.T) {
	t.Parallel()
	taken := &net.TCPAddr{IP: net.IPv6unspecified, Port: 41234}
	tests := []struct {
		name    string
		flags   map[string]string
		listen  string
		baseURL string
	}{
		{"free port", map[string]string{"listen": "127.0.0.1:0"}, "127.0.0.1:41234", "http://127.0.0.1:41234/api"},
		{"free port of every address", map[string]string{"listen": ":0"}, ":41234", "http://localhost:41234/api"},
		{"a name is kept", map[string]string{"listen": "mail.example.com:0"}, "mail.example.com:41234", "http://mail.example.com:41234/api"},
		{
			"a base URL that was given is kept",
			map[string]string{"listen": "127.0.0.1:0", "base-url": "https://example.com/v1"},
			"127.0.0.1:41234", "https://example.com/v1",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := load(t, config.Input{Flags: tt.flags}).Config.Listening(taken)
			if c.Listen != tt.listen || c.BaseURL != tt.baseURL {
				t.Errorf("got %q and %q, want %q and %q", c.Listen, c.BaseURL, tt.listen, tt.baseURL)
			}
		})
	}
}

func TestReportDomainIsNormalized(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, value, want string }{
		{"as it is", "reports.example.com", "reports.example.com"},
		{"upper case and a dot", "Reports.EXAMPLE.com.", "reports.example.com"},
		{"not ASCII", "berichte.bücher.example", "berichte.xn--bcher-kva.example"},
		{"none", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := load(t, config.Input{Environ: []string{"DMARCD_REPORT_DOMAIN=" + tt.value}}).Config.ReportDomain
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestSecretFollowsData(t *testing.T) {
	t.Parallel()
	c := load(t, config.Input{Flags: map[string]string{"data": "/srv/dmarcd"}}).Config
	if want := filepath.Join("/srv/dmarcd", "secret.key"); c.Secret.File != want {
		t.Errorf("got secret file %q, want %q", c.Secret.File, want)
	}
}

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
