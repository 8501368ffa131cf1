package secret

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const (
	// keyPrefix starts the key file, which is one line of text.
	keyPrefix = "dmarcd-key-1:"
	// maxKeyFile is in bytes.
	maxKeyFile = 1024
	// exposed are the permissions with which others could read or replace the key. Group
	// read access is allowed: orchestrators use it to pass secrets to a process.
	exposed = 0o027
)

// Load returns the key in the file. If there is no file, it creates one with a random
// key, readable only by the owner. If several processes do so concurrently, one succeeds
// and all use its key.
func Load(path string) (*Key, error) {
	key, err := read(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	if err := create(path); err != nil {
		return nil, fmt.Errorf("create the key file: %w", err)
	}
	return read(path)
}

// File encrypts and decrypts with the key in a file, which is read on every call, so that
// a restored or replaced key applies immediately. It is safe for concurrent use.
type File string

// Seal is Key.Seal. It creates the file if there is none.
func (f File) Seal(plain []byte, context string) ([]byte, error) {
	key, err := Load(string(f))
	if err != nil {
		return nil, err
	}
	return key.Seal(plain, context), nil
}

// Open is Key.Open. It does not create the file: without it, the key is lost.
func (f File) Open(sealed []byte, context string) ([]byte, error) {
	key, err := read(string(f))
	if err != nil {
		return nil, err
	}
	return key.Open(sealed, context)
}

func read(path string) (*Key, error) {
	file, err := os.Open(path) //nolint:gosec // the operator's own path
	if err != nil {
		return nil, fmt.Errorf("read the key file: %w", err)
	}
	defer func() { _ = file.Close() }() // read-only
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("read the key file: %w", err)
	}
	if info.Mode().Perm()&exposed != 0 {
		return nil, fmt.Errorf("the key file %s is accessible to other users (%v); run `chmod 600 %s`", path, info.Mode().Perm(), path)
	}
	text, err := io.ReadAll(io.LimitReader(file, maxKeyFile))
	if err != nil {
		return nil, fmt.Errorf("read the key file: %w", err)
	}
	encoded, ok := strings.CutPrefix(strings.TrimSpace(string(text)), keyPrefix)
	raw, err := base64.StdEncoding.DecodeString(encoded)
	if !ok || err != nil || len(raw) != keySize {
		return nil, fmt.Errorf("%s is not a dmarcd key file; restore it, or move it away to create a new one", path)
	}
	return newKey(raw, path)
}

// create creates a key file. It writes a temporary file and links it, which is atomic and
// does not overwrite a file created concurrently.
func create(path string) error {
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return err
	}
	file, err := os.CreateTemp(folder, ".key-") // 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(file.Name()) }() // the temporary name
	var raw [keySize]byte
	_, _ = rand.Read(raw[:]) // never fails
	_, err = io.WriteString(file, keyPrefix+base64.StdEncoding.EncodeToString(raw[:])+"\n")
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := os.Link(file.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncFolder(folder)
}

// syncFolder makes the directory entry of a new file durable.
func syncFolder(folder string) error {
	f, err := os.Open(folder) //nolint:gosec // the operator's own path
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
