// Package secret encrypts secrets, such as mailbox passwords, so that the database or a
// backup of it does not reveal them. The key is in a separate file outside the database.
//
// A sealed text is AES-256-GCM (NIST SP 800-38D) with a random nonce. It is bound to a
// context, its row: copied to another row it cannot be decrypted. It identifies its key,
// so that a lost or replaced key file can be distinguished from damage.
package secret

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// The errors of Open.
var (
	// ErrOtherKey means that the text was encrypted with another key.
	ErrOtherKey = errors.New("it was encrypted with another key")
	// ErrDamaged means that the text is not a result of Seal for this context.
	ErrDamaged = errors.New("it is damaged, or was encrypted for another purpose")
)

const (
	keySize = 32
	// version is the first byte of every sealed text.
	version = 1
	// nameSize is the length of the key identifier, in bytes.
	nameSize = 4
	headSize = 1 + nameSize
)

// Key encrypts and decrypts secrets. It is safe for concurrent use.
type Key struct {
	aead cipher.AEAD
	name [nameSize]byte
	path string // of the file, for error messages
}

func newKey(raw []byte, path string) (*Key, error) {
	block, err := aes.NewCipher(raw)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(append([]byte("dmarcd key name\n"), raw...))
	return &Key{aead: aead, name: [nameSize]byte(sum[:]), path: path}, nil
}

// Seal encrypts plain for the context.
func (k *Key) Seal(plain []byte, context string) []byte {
	sealed := append(make([]byte, 0, headSize+k.aead.Overhead()+len(plain)), version)
	sealed = append(sealed, k.name[:]...)
	return k.aead.Seal(sealed, nil, plain, []byte(context)) //nolint:gosec // the cipher generates the nonce
}

// Open decrypts the result of Seal for the context. Errors wrap ErrOtherKey or ErrDamaged
// and say what to do.
func (k *Key) Open(sealed []byte, context string) ([]byte, error) {
	if len(sealed) < headSize || sealed[0] != version {
		return nil, fmt.Errorf("decrypt a secret: %w; enter it again", ErrDamaged)
	}
	if [nameSize]byte(sealed[1:headSize]) != k.name {
		return nil, fmt.Errorf("decrypt a secret: %w than the one in %s; restore that key file, or enter the secret again", ErrOtherKey, k.path)
	}
	plain, err := k.aead.Open(nil, nil, sealed[headSize:], []byte(context))
	if err != nil {
		return nil, fmt.Errorf("decrypt a secret: %w; enter it again", ErrDamaged)
	}
	return plain, nil
}

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
