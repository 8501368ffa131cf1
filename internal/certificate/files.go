// Package certificate has the certificates of the server. Files reads one, again when it changes.
// Authority gets one from a certificate authority with ACME (RFC 8555) and renews it; certmagic
// does so, and its state is encrypted in the database, which replicas share. Listeners are up to
// package app.
package certificate

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// readEvery is how long Files uses what it has read.
const readEvery = 2 * time.Second

// Files is a certificate in two PEM files. It is safe for concurrent use.
type Files struct {
	certificate, key string
	now              func() time.Time
	log              *slog.Logger

	mu      sync.Mutex
	pair    *tls.Certificate
	content [2][]byte // of the files when they were read last, also if they are not a pair
	readAt  time.Time
}

// NewFiles reads a chain of certificates and the key of its first one.
func NewFiles(certificate, key string, now func() time.Time, log *slog.Logger) (*Files, error) {
	f := &Files{certificate: certificate, key: key, now: now, log: log}
	if err := f.read(); err != nil {
		return nil, err
	}
	return f, nil
}

// GetCertificate is the callback of a tls.Config. It first reads files that have changed. If they
// are not valid, the last valid ones are used, and the error is logged once.
func (f *Files) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.now().Sub(f.readAt) >= readEvery {
		if err := f.read(); err != nil {
			f.log.Error("the new certificate is not used, and the previous one stays", "error", err)
		}
	}
	return f.pair, nil
}

// read reads the files, and parses them if they have changed.
func (f *Files) read() error {
	f.readAt = f.now()
	certificate, err := os.ReadFile(f.certificate)
	key, keyErr := os.ReadFile(f.key)
	if bytes.Equal(certificate, f.content[0]) && bytes.Equal(key, f.content[1]) && f.pair != nil {
		return nil // a file that is gone was reported before
	}
	f.content = [2][]byte{certificate, key}
	if err = errors.Join(err, keyErr); err != nil {
		return fmt.Errorf("read the certificate: %w", err)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return fmt.Errorf("read the certificate in %s and its key in %s: %w", f.certificate, f.key, err)
	}
	if f.pair != nil {
		f.log.Info("using the new certificate", "file", f.certificate, "until", pair.Leaf.NotAfter)
	}
	f.pair = &pair
	return nil
}
