package main

import (
	"crypto/x509"
	"os"
	"os/exec"
	"testing"
)

// TestKnowsAuthorities checks that certificates of public authorities verify.
func TestKnowsAuthorities(t *testing.T) {
	t.Parallel()
	authorities, err := x509.SystemCertPool()
	if err != nil || authorities.Equal(x509.NewCertPool()) {
		t.Errorf("got no authorities (%v), want some", err)
	}
}

// TestKnowsAuthoritiesOnItsOwn checks the same without system roots. It needs its own
// process, because roots are loaded once.
func TestKnowsAuthoritiesOnItsOwn(t *testing.T) {
	t.Parallel()
	none := t.TempDir()
	again := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKnowsAuthorities$")
	again.Env = []string{"SSL_CERT_FILE=" + none + "/none.pem", "SSL_CERT_DIR=" + none}
	if out, err := again.CombinedOutput(); err != nil {
		t.Errorf("got %v, want some:\n%s", err, out)
	}
}
