package certificate

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caddyserver/certmagic"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/secret"
)

// Database stores the state, which replicas share.
type Database interface {
	SaveCertificateFile(ctx context.Context, name string, content []byte) error
	CertificateFile(ctx context.Context, name string) ([]byte, error)
	CertificateFiles(ctx context.Context) ([]string, error)
	DeleteCertificateFile(ctx context.Context, name string) error

	// ClaimJob leases a job to this process, and reports whether it did; EndJob ends the lease.
	ClaimJob(ctx context.Context, name string, lease time.Duration, early bool) (bool, error)
	EndJob(ctx context.Context, name string, next time.Duration) error
}

const (
	// maxName is the maximum length of the name of a file, in bytes.
	maxName = 2048
	// lockLease is how long other replicas wait for one that died while it got a certificate.
	// It is longer than an attempt.
	lockLease = attemptTimeout + time.Minute
	// lockPoll is how often they look.
	lockPoll = time.Second
)

// storage encrypts the state of certmagic, binds each file to its name, and stores it in the
// database.
type storage struct {
	database Database
	secrets  *secret.Keys
	log      *slog.Logger
	locks    sync.Map // channels by name, full while this process has the lock
}

var _ certmagic.Storage = (*storage)(nil)

// Lock implements certmagic.Locker between goroutines with a channel, and between replicas with
// a lease.
func (s *storage) Lock(ctx context.Context, name string) error {
	select {
	case s.lock(name) <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	for {
		claimed, err := s.database.ClaimJob(ctx, leaseName(name), lockLease, true)
		if claimed && err == nil {
			return nil
		}
		if err == nil {
			err = sleep(ctx, lockPoll)
		}
		if err != nil {
			<-s.lock(name)
			return err
		}
	}
}

// Unlock implements certmagic.Locker.
func (s *storage) Unlock(ctx context.Context, name string) error {
	defer func() { <-s.lock(name) }()
	return s.database.EndJob(ctx, leaseName(name), 0)
}

func (s *storage) lock(name string) chan struct{} {
	lock, _ := s.locks.LoadOrStore(name, make(chan struct{}, 1))
	return lock.(chan struct{}) //nolint:forcetypeassert // nothing else is in the map
}

// leaseName is short, unlike the name of a host.
func leaseName(name string) string {
	sum := sha256.Sum256([]byte(name))
	return "certificate " + hex.EncodeToString(sum[:8])
}

// Store implements certmagic.Storage.
func (s *storage) Store(ctx context.Context, name string, value []byte) error {
	if len(name) > maxName {
		return fmt.Errorf("the name of a certificate file has %d bytes, and %d are the limit", len(name), maxName)
	}
	sealed, err := s.secrets.Seal(value, name)
	if err != nil {
		return err
	}
	return s.database.SaveCertificateFile(ctx, name, sealed)
}

// Load implements certmagic.Storage. A file that cannot be decrypted, because its key was lost,
// is like one that does not exist: a new certificate is the remedy.
func (s *storage) Load(ctx context.Context, name string) ([]byte, error) {
	sealed, err := s.database.CertificateFile(ctx, name)
	if errors.Is(err, dmarcd.ErrNotFound) {
		return nil, fs.ErrNotExist
	}
	if err != nil {
		return nil, err
	}
	plain, err := s.secrets.Open(sealed, name)
	if errors.Is(err, secret.ErrOtherKey) || errors.Is(err, secret.ErrDamaged) || errors.Is(err, fs.ErrNotExist) {
		s.log.Warn("a file of the certificate is replaced, because it cannot be decrypted", "name", name, "error", err)
		return nil, fs.ErrNotExist
	}
	return plain, err
}

// Delete implements certmagic.Storage.
func (s *storage) Delete(ctx context.Context, name string) error {
	below, err := s.List(ctx, name, true)
	for _, name := range append(below, name) {
		err = errors.Join(err, s.database.DeleteCertificateFile(ctx, name))
	}
	return err
}

// Exists implements certmagic.Storage.
func (s *storage) Exists(ctx context.Context, name string) bool {
	_, err := s.Stat(ctx, name)
	return err == nil
}

// List implements certmagic.Storage.
func (s *storage) List(ctx context.Context, folder string, recursive bool) ([]string, error) {
	names, err := s.database.CertificateFiles(ctx)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, name := range names {
		rest, ok := strings.CutPrefix(name, strings.Trim(folder, "/")+"/")
		if first, _, _ := strings.Cut(rest, "/"); ok && !recursive {
			name = path.Join(folder, first)
		}
		if ok && !slices.Contains(found, name) {
			found = append(found, name)
		}
	}
	return found, nil
}

// Stat implements certmagic.Storage.
func (s *storage) Stat(ctx context.Context, name string) (certmagic.KeyInfo, error) {
	content, err := s.Load(ctx, name)
	if err == nil {
		return certmagic.KeyInfo{Key: name, Size: int64(len(content)), IsTerminal: true}, nil
	}
	below, listErr := s.List(ctx, name, true)
	if errors.Is(err, fs.ErrNotExist) && len(below) > 0 {
		return certmagic.KeyInfo{Key: name}, nil
	}
	return certmagic.KeyInfo{}, errors.Join(err, listErr)
}

// Stored returns the newest certificate for a host that an Authority stored, or fs.ErrNotExist.
func Stored(ctx context.Context, database Database, secrets *secret.Keys, host string) (newest *x509.Certificate, err error) {
	s := &storage{database: database, secrets: secrets, log: slog.New(slog.DiscardHandler)}
	names, err := s.List(ctx, "certificates", true)
	for _, name := range names {
		if path.Base(name) != certmagic.StorageKeys.Safe(host)+".crt" {
			continue
		}
		content, loadErr := s.Load(ctx, name)
		block, _ := pem.Decode(content)
		if loadErr != nil || block == nil {
			err = loadErr
			continue
		}
		leaf, parseErr := x509.ParseCertificate(block.Bytes)
		if parseErr == nil && (newest == nil || leaf.NotAfter.After(newest.NotAfter)) {
			newest = leaf
		}
	}
	if newest == nil {
		return nil, cmp.Or(err, fs.ErrNotExist)
	}
	return newest, nil
}
