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
	"crypto/sha256"
	"errors"
	"fmt"
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
