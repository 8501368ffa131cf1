package resolver_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/resolver"
)

func TestSystemServers(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "resolv.conf")
	musttest.Do(t, os.WriteFile(path, []byte("search example.org\nnameserver 192.0.2.53\nnameserver 2001:db8::53\n"), 0o600))
	r := resolver.New(resolver.Config{ResolvConf: path})
	defer r.Close()
	if err := r.Err(); err != nil {
		t.Errorf("got error %v want none", err)
	}
	if got, want := r.Servers(), []string{"192.0.2.53:53", "[2001:db8::53]:53"}; !slices.Equal(got, want) {
		t.Errorf("got servers %q want %q", got, want)
	}
}

func TestNoServer(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	empty := filepath.Join(folder, "empty.conf")
	musttest.Do(t, os.WriteFile(empty, []byte("search example.org\n"), 0o600))
	tests := []struct {
		name   string
		config resolver.Config
		says   string
	}{
		{name: "no file", config: resolver.Config{ResolvConf: filepath.Join(folder, "missing.conf")}, says: "set DMARCD_DNS"},
		{name: "file without servers", config: resolver.Config{ResolvConf: empty}, says: "set DMARCD_DNS"},
		{name: "no port", config: resolver.Config{Servers: []string{"192.0.2.53"}}, says: `"192.0.2.53" is not a host:port`},
		{name: "no host", config: resolver.Config{Servers: []string{":53"}}, says: `":53" is not a host:port`},
		{name: "port 0", config: resolver.Config{Servers: []string{"192.0.2.53:0"}}, says: `"192.0.2.53:0" is not a host:port`},
		{name: "port too large", config: resolver.Config{Servers: []string{"192.0.2.53:65536"}}, says: `"192.0.2.53:65536" is not a host:port`},
		{name: "one bad among good", config: resolver.Config{Servers: []string{"192.0.2.53:53", "192.0.2.54"}}, says: `"192.0.2.54" is not a host:port`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := resolver.New(test.config)
			defer r.Close()
			if err := r.Err(); err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got error %v want one that says %s", err, test.says)
			}
			got := r.Resolve(t.Context(), text("example.org"))
			if got.Outcome != dns.Inconclusive || !strings.Contains(got.Reason, test.says) {
				t.Errorf("got %s, reason %q want inconclusive with a reason that says %s", got.Outcome, got.Reason, test.says)
			}
		})
	}
}
