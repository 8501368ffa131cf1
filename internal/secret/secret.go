// Package secret encrypts secrets, such as mailbox passwords, so that the database or a
// backup of it does not reveal them. The keys are outside the database: in a file, the environment,
// or what a command prints.
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
	"io/fs"
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

// key encrypts and decrypts secrets.
type key struct {
	aead cipher.AEAD
	raw  []byte
	name [nameSize]byte
}

func newKey(raw []byte) (key, error) {
	block, err := aes.NewCipher(raw)
	if err != nil {
		return key{}, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return key{}, err
	}
	sum := sha256.Sum256(append([]byte("dmarcd key name\n"), raw...))
	return key{aead: aead, raw: raw, name: [nameSize]byte(sum[:])}, nil
}

// Keys encrypts with the first of some keys, and decrypts with all of them: the others are of earlier
// times. They are read on every call, so that restored or new keys apply immediately. It is safe for
// concurrent use.
type Keys struct {
	source string // for error messages
	read   func() (string, error)
	// create creates the first key; nil if this is left to the operator.
	create func() error
}

// Seal encrypts plain for the context. It does not create the key file: a missing one is to be restored.
func (k *Keys) Seal(plain []byte, context string) ([]byte, error) {
	keys, err := k.keys()
	if err != nil {
		return nil, err
	}
	first := keys[0]
	sealed := append(make([]byte, 0, headSize+first.aead.Overhead()+len(plain)), version)
	sealed = append(sealed, first.name[:]...)
	return first.aead.Seal(sealed, nil, plain, []byte(context)), nil //nolint:gosec // the cipher generates the nonce
}

// Open decrypts the result of Seal for the context. Errors wrap ErrOtherKey or ErrDamaged
// and say what to do. It does not create the key file: without it, the key is lost.
func (k *Keys) Open(sealed []byte, context string) ([]byte, error) {
	keys, err := k.keys()
	if err != nil {
		return nil, err
	}
	if len(sealed) < headSize || sealed[0] != version {
		return nil, fmt.Errorf("decrypt a secret: %w; enter it again", ErrDamaged)
	}
	for _, key := range keys {
		if [nameSize]byte(sealed[1:headSize]) != key.name {
			continue
		}
		plain, err := key.aead.Open(nil, nil, sealed[headSize:], []byte(context))
		if err != nil {
			return nil, fmt.Errorf("decrypt a secret: %w; enter it again", ErrDamaged)
		}
		return plain, nil
	}
	return nil, fmt.Errorf("decrypt a secret: %w than those of %s; restore that key, or enter the secret again", ErrOtherKey, k.source)
}

// Current reports whether sealed was encrypted with the first key.
func (k *Keys) Current(sealed []byte) (bool, error) {
	keys, err := k.keys()
	return err == nil && len(sealed) >= headSize && [nameSize]byte(sealed[1:headSize]) == keys[0].name, err
}

// Check returns an error if the keys cannot be read. A file that is still to be created is none.
func (k *Keys) Check() error {
	_, err := k.keys()
	if errors.Is(err, fs.ErrNotExist) && k.create != nil {
		return nil
	}
	return err
}

const (
	// keyPrefix begins each key, which is a line of text.
	keyPrefix = "dmarcd-key-1:"
	// maxKeys is the limit of the text with the keys, in bytes.
	maxKeys = 4096
)

// keysOrNew is keys, but creates the key file if there is none.
func (k *Keys) keysOrNew() ([]key, error) {
	keys, err := k.keys()
	if !errors.Is(err, fs.ErrNotExist) || k.create == nil {
		return keys, err
	}
	if err := k.create(); err != nil {
		return nil, fmt.Errorf("create the key file: %w", err)
	}
	return k.keys()
}

// keys returns the keys, at least one.
func (k *Keys) keys() ([]key, error) {
	text, err := k.read()
	if err != nil {
		return nil, err
	}
	var keys []key
	for field := range strings.FieldsSeq(text) {
		encoded, ok := strings.CutPrefix(field, keyPrefix)
		raw, err := base64.StdEncoding.DecodeString(encoded)
		if !ok || err != nil || len(raw) != keySize {
			return nil, fmt.Errorf("%s must consist of keys of dmarcd, which begin with %s; restore it, or use a new key", k.source, keyPrefix)
		}
		key, err := newKey(raw)
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 || len(text) >= maxKeys {
		return nil, fmt.Errorf("%s must have a key of dmarcd, and at most 4096 bytes; restore it, or use a new key", k.source)
	}
	return keys, nil
}

// NewKey returns a random key as text.
func NewKey() string {
	var raw [keySize]byte
	_, _ = rand.Read(raw[:]) // never fails
	return keyPrefix + base64.StdEncoding.EncodeToString(raw[:])
}

// Text returns the keys of a text, such as the value of a setting that source names.
func Text(source, text string) *Keys {
	return &Keys{source: source, read: func() (string, error) { return text, nil }}
}
