package secret

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
)

// Subkey makes codes of texts (HMAC), which prove that the text was written by someone who has the key.
// It is derived from a key of Keys for one purpose, and has the name of that key. The zero value is no
// key.
type Subkey struct {
	name [nameSize]byte
	key  [keySize]byte
}

// Subkey returns the subkey of the first key. It creates the key file if there is none.
func (k *Keys) Subkey(purpose string) (Subkey, error) {
	keys, err := k.keysOrNew()
	if err != nil {
		return Subkey{}, err
	}
	return keys[0].derive(purpose)
}

// Subkeys returns the subkeys of all keys, that of the first one first. It does not create the key file.
func (k *Keys) Subkeys(purpose string) ([]Subkey, error) {
	keys, err := k.keys()
	if err != nil {
		return nil, err
	}
	derived := make([]Subkey, len(keys))
	for i := range keys {
		if derived[i], err = keys[i].derive(purpose); err != nil {
			return nil, err
		}
	}
	return derived, nil
}

// derive derives a subkey as in RFC 5869.
func (k key) derive(purpose string) (Subkey, error) {
	raw, err := hkdf.Key(sha256.New, k.raw, nil, purpose, keySize)
	if err != nil {
		return Subkey{}, err
	}
	return Subkey{name: k.name, key: [keySize]byte(raw)}, nil
}

// Code returns the code of a text, which begins with the name of the key.
func (s Subkey) Code(text []byte) []byte {
	mac := hmac.New(sha256.New, s.key[:])
	mac.Write(text)
	return mac.Sum(s.name[:])
}

// Made reports whether a code has the name of this key.
func (s Subkey) Made(code []byte) bool {
	return len(code) == nameSize+sha256.Size && [nameSize]byte(code) == s.name
}

// Valid reports whether code is the code of the text.
func (s Subkey) Valid(code, text []byte) bool { return hmac.Equal(code, s.Code(text)) }

// Name returns the name of the key as text.
func (s Subkey) Name() string { return hex.EncodeToString(s.name[:]) }

// Bytes returns the subkey for ParseSubkey. It is a secret.
func (s Subkey) Bytes() []byte { return append(s.name[:], s.key[:]...) }

// ParseSubkey returns the subkey of a result of Bytes.
func ParseSubkey(raw []byte) (Subkey, error) {
	if len(raw) != nameSize+keySize {
		return Subkey{}, ErrDamaged
	}
	return Subkey{name: [nameSize]byte(raw), key: [keySize]byte(raw[nameSize:])}, nil
}
