package certificate_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/internal/certificate"
	"github.com/dmarcd/dmarcd/internal/certtest"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

// writePair writes a certificate and its key.
func writePair(t *testing.T, pair *tls.Certificate, certificateFile, keyFile string) {
	t.Helper()
	key := musttest.Get(x509.MarshalPKCS8PrivateKey(pair.PrivateKey))(t)
	musttest.Do(t, os.WriteFile(certificateFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}), 0o600))
	musttest.Do(t, os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), 0o600))
}

func TestFilesAreReadAgain(t *testing.T) {
	t.Parallel()
	crt, key := filepath.Join(t.TempDir(), "crt"), filepath.Join(t.TempDir(), "key")
	first, second := certtest.New(t, nil, x509.Certificate{}), certtest.New(t, nil, x509.Certificate{})
	writePair(t, first, crt, key)
	var log bytes.Buffer
	now := time.Unix(1_700_000_000, 0)
	files := musttest.Get(certificate.NewFiles(crt, key, func() time.Time { return now }, slog.New(slog.NewTextHandler(&log, nil))))(t)
	check := func(what string, want *tls.Certificate, lines int) {
		t.Helper()
		now = now.Add(time.Minute)
		for range 2 {
			got := musttest.Get(files.GetCertificate(nil))(t)
			if !bytes.Equal(got.Certificate[0], want.Certificate[0]) {
				t.Errorf("%s: got another certificate", what)
			}
			now = now.Add(time.Minute)
		}
		if got := strings.Count(log.String(), "\n"); got != lines {
			t.Errorf("%s: got %d log lines, want %d:\n%s", what, got, lines, log.String())
		}
		log.Reset()
	}
	check("unchanged", first, 0)
	old := musttest.Get(os.ReadFile(key))(t)
	writePair(t, second, crt, key)
	good := musttest.Get(os.ReadFile(key))(t)
	musttest.Do(t, os.WriteFile(key, old, 0o600))
	check("with the key of another", first, 1)
	musttest.Do(t, os.Remove(key))
	check("without the key", first, 1)
	musttest.Do(t, os.WriteFile(key, good, 0o600))
	check("replaced", second, 1)
	musttest.Do(t, os.WriteFile(crt, []byte("-----BEGIN CERTIFICATE-----\n"), 0o600))
	check("cut off", second, 1)
}

func TestFilesThatAreNoPair(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	crt, key := filepath.Join(folder, "crt"), filepath.Join(folder, "key")
	writePair(t, certtest.New(t, nil, x509.Certificate{}), crt, filepath.Join(folder, "other"))
	writePair(t, certtest.New(t, nil, x509.Certificate{}), filepath.Join(folder, "other"), key)
	for _, files := range [][2]string{{crt, key}, {crt, filepath.Join(folder, "none")}, {key, key}} {
		if _, err := certificate.NewFiles(files[0], files[1], time.Now, slog.New(slog.DiscardHandler)); err == nil {
			t.Errorf("%v: got no error", files)
		}
	}
}
