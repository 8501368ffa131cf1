package auth

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"
	"golang.org/x/text/unicode/norm"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/fair"
)

// The parameters are those that OWASP recommends at least: 19 MiB, two passes, one lane;
// with a salt of 128 bits and a tag of 256. More would make a flood of sign-ins dearer
// for us than for the attacker. A stored hash names its own.
const (
	argonMemory = 19 * 1024 // KiB
	argonPasses = 2
	argonLanes  = 1
	saltBytes   = 16
	tagBytes    = 32
)

// MinPassword is how many characters a password has at least.
const MinPassword = 12

const (
	maxPassword = 1024 // bytes: what is hashed has a limit
	// maxHashes is how many passwords are hashed at once. It bounds the memory
	// that a flood of sign-ins takes.
	maxHashes = 2
	// maxWaiting is how many hashes may wait for one client network.
	maxWaiting = 20
)

// Passwords hashes and verifies passwords, few at a time and fairly by client: a flood
// of sign-ins from some networks does not hold up the others for long. One value serves
// the whole process; it is safe for concurrent use.
type Passwords struct {
	slots *fair.Limiter[string]
}

// NewPasswords returns a Passwords.
func NewPasswords() *Passwords {
	return &Passwords{slots: fair.New[string](fair.Options{Capacity: maxHashes, PerKey: 1, Waiting: maxWaiting, Memory: time.Minute})}
}

// Hash returns what is stored of a password: an argon2id hash that names its own
// parameters. A password with fewer than 12 characters, or more than 1024 bytes,
// is an InvalidError; ErrTemporary means that ctx ended before its turn came, or that too
// many passwords from the same network wait already. The client is
// its address, or anything else that tells clients apart.
func (p *Passwords) Hash(ctx context.Context, client, password string) (string, error) {
	if utf8.RuneCountInString(password) < MinPassword || len(password) > maxPassword || !utf8.ValidString(password) {
		return "", &dmarcd.InvalidError{Field: "password", Message: "A password has at least 12 characters, and at most 1024 bytes."}
	}
	h := argonHash{memory: argonMemory, passes: argonPasses, lanes: argonLanes, salt: make([]byte, saltBytes)}
	_, _ = rand.Read(h.salt) // never fails
	var err error
	if h.tag, err = p.tag(ctx, client, h, password, tagBytes); err != nil {
		return "", err
	}
	return h.String(), nil
}

// Verify reports whether the password is the one that was hashed. For the hash
// "", which stands for a user who has no password or is not there, the answer is
// no and takes as long: the time does not reveal who has an account. See Hash
// for the client.
func (p *Passwords) Verify(ctx context.Context, client, hash, password string) (bool, error) {
	h := argonHash{
		memory: argonMemory, passes: argonPasses, lanes: argonLanes,
		salt: make([]byte, saltBytes), tag: make([]byte, tagBytes),
	}
	if hash != "" {
		var err error
		if h, err = parseHash(hash); err != nil {
			return false, err
		}
	}
	if len(password) > maxPassword {
		password = "" // nobody's: none is that long, and none is empty
	}
	tag, err := p.tag(ctx, client, h, password, len(h.tag))
	if err != nil {
		return false, err
	}
	same := subtle.ConstantTimeCompare(tag, h.tag) == 1
	return same && hash != "", nil
}

// tag waits for its turn and hashes. The password is normalized as RFC 8265 §4.2
// has it: the same characters may be typed as different bytes.
func (p *Passwords) tag(ctx context.Context, client string, h argonHash, password string, length int) ([]byte, error) {
	release, err := p.slots.Acquire(ctx, addressKey(client), 1)
	if err != nil {
		return nil, fmt.Errorf("%w: wait for a password hashing slot: %w", dmarcd.ErrTemporary, err)
	}
	defer release()
	return argon2.IDKey([]byte(norm.NFC.String(password)), h.salt, h.passes, h.memory, h.lanes, uint32(length)), nil //nolint:gosec // 32, or as stored
}

// argonHash is an argon2id hash with its parameters.
type argonHash struct {
	memory, passes uint32
	lanes          uint8
	salt, tag      []byte
}

const argonForm = "$argon2id$v=%d$m=%d,t=%d,p=%d$"

// String returns the hash as the reference implementation of argon2 writes it.
func (h argonHash) String() string {
	base64 := base64.RawStdEncoding.EncodeToString
	return fmt.Sprintf(argonForm, argon2.Version, h.memory, h.passes, h.lanes) + base64(h.salt) + "$" + base64(h.tag)
}

// errHash says that what is stored is no hash of ours. It tells nothing of it.
var errHash = errors.New("the stored password hash is malformed")

func parseHash(s string) (argonHash, error) {
	var h argonHash
	var version int
	end := strings.LastIndexByte(s, '$')
	begin := strings.LastIndexByte(s[:max(end, 0)], '$')
	if begin < 0 {
		return h, errHash
	}
	if _, err := fmt.Sscanf(s[:begin+1], argonForm, &version, &h.memory, &h.passes, &h.lanes); err != nil || version != argon2.Version {
		return h, errHash
	}
	var errSalt, errTag error
	h.salt, errSalt = base64.RawStdEncoding.DecodeString(s[begin+1 : end])
	h.tag, errTag = base64.RawStdEncoding.DecodeString(s[end+1:])
	if errSalt != nil || errTag != nil || len(h.tag) == 0 || h.passes == 0 || h.lanes == 0 || h.String() != s {
		return h, errHash
	}
	return h, nil
}
