// Package secret seals what must not be read by whoever gets hold of the database
// or of a backup of it: the passwords of mailboxes. The key is a file of its own,
// kept outside the database.
//
// A sealed text is AES-256-GCM (NIST SP 800-38D) under a random nonce. It is bound
// to a context, the row that it stands in: copied into another row it does not
// open. It names the key that it was sealed with, so that a lost or exchanged key
// file is told apart from damage.
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
	// ErrOtherKey means that the text was sealed with another key.
	ErrOtherKey = errors.New("it was encrypted with another key")
	// ErrDamaged means that the text is not what Seal returned for that context.
	ErrDamaged = errors.New("it is damaged, or was encrypted for another purpose")
)

const (
	keySize = 32
	// version begins every sealed text, so that another form may come later.
	version = 1
	// nameSize is how many bytes name the key.
	nameSize = 4
	headSize = 1 + nameSize
)

// Key seals and opens secrets. It is safe for concurrent use.
type Key struct {
	aead cipher.AEAD
	name [nameSize]byte
	path string // of the file, for people
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

// Seal returns plain sealed for the context.
func (k *Key) Seal(plain []byte, context string) []byte {
	sealed := append(make([]byte, 0, headSize+k.aead.Overhead()+len(plain)), version)
	sealed = append(sealed, k.name[:]...)
	return k.aead.Seal(sealed, nil, plain, []byte(context)) //nolint:gosec // the cipher draws the nonce itself
}

// Open returns what was sealed for the context. Its errors are ErrOtherKey and
// ErrDamaged, with words that say what to do.
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
