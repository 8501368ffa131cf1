package auth

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"
	"golang.org/x/text/unicode/norm"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/fair"
)

// The minimum that OWASP recommends for argon2id: 19 MiB, two passes, one lane; with a
// 128-bit salt and a 256-bit tag. More would make a flood of sign-ins more expensive for
// us than for the attacker. Stored hashes contain their parameters.
const (
	argonMemory = 19 * 1024 // KiB
	argonPasses = 2
	argonLanes  = 1
	saltBytes   = 16
	tagBytes    = 32
)

// MinPassword is the minimum length in characters.
const MinPassword = 12

const (
	maxPassword = 1024 // bytes
	// maxHashes is the number of concurrent hashes. It limits memory during a flood of
	// sign-ins.
	maxHashes = 2
	// maxWaiting is the queue limit per client network.
	maxWaiting = 20
)

// Passwords hashes and verifies passwords with limited concurrency, fairly by client: a
// flood of sign-ins from some networks does not delay the others for long. One instance
// serves the process; it is safe for concurrent use.
type Passwords struct {
	slots *fair.Limiter[string]
}

// NewPasswords returns a Passwords.
func NewPasswords() *Passwords {
	return &Passwords{slots: fair.New[string](fair.Options{Capacity: maxHashes, PerKey: 1, Waiting: maxWaiting, HalfLife: time.Minute})}
}

// Hash returns the argon2id hash of the password of the user with an email address, with its
// parameters. A password shorter than 12 characters or longer than 1024 bytes is an InvalidError, and so is
// one that is tried first by those who guess. The error is
// ErrTemporary if ctx ends while waiting, or if too many hashes of the same network are
// queued. client is an address or another key that distinguishes clients.
func (p *Passwords) Hash(ctx context.Context, client, email, password string) (string, error) {
	if utf8.RuneCountInString(password) < MinPassword || len(password) > maxPassword || !utf8.ValidString(password) {
		return "", &dmarcd.InvalidError{Field: "password", Message: "A password must have at least 12 characters and at most 1,024 bytes."}
	}
	if commonPassword(password, email) {
		return "", &dmarcd.InvalidError{Field: "password", Message: "This password is one of those that are tried first. Choose another one, such as a few words."}
	}
	h := argonHash{memory: argonMemory, passes: argonPasses, lanes: argonLanes, salt: make([]byte, saltBytes)}
	_, _ = rand.Read(h.salt) // never fails
	var err error
	if h.tag, err = p.tag(ctx, client, h, password, tagBytes); err != nil {
		return "", err
	}
	return h.String(), nil
}

// Verify reports whether the password matches the hash. The hash "" stands for a user
// without a password or an unknown user: the result is false and takes the same time, so
// that timing does not reveal accounts. See Hash for client.
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
		password = "" // never matches: no password is empty
	}
	tag, err := p.tag(ctx, client, h, password, len(h.tag))
	if err != nil {
		return false, err
	}
	same := subtle.ConstantTimeCompare(tag, h.tag) == 1
	return same && hash != "", nil
}

// tag waits for a slot and hashes. The password is normalized (RFC 8265 §4.2), because
// the same characters may be typed as different bytes.
func (p *Passwords) tag(ctx context.Context, client string, h argonHash, password string, length int) ([]byte, error) {
	release, err := p.slots.Acquire(ctx, addressKey(client), 1)
	if err != nil {
		return nil, fmt.Errorf("%w: wait for a password hashing slot: %w", dmarcd.ErrTemporary, err)
	}
	defer release()
	return argon2.IDKey([]byte(norm.NFC.String(password)), h.salt, h.passes, h.memory, h.lanes, uint32(length)), nil //nolint:gosec // 32, or as stored
}

type argonHash struct {
	memory, passes uint32
	lanes          uint8
	salt, tag      []byte
}

const argonForm = "$argon2id$v=%d$m=%d,t=%d,p=%d$"

// String formats the hash like the reference implementation of argon2.
func (h argonHash) String() string {
	base64 := base64.RawStdEncoding.EncodeToString
	return fmt.Sprintf(argonForm, argon2.Version, h.memory, h.passes, h.lanes) + base64(h.salt) + "$" + base64(h.tag)
}

// errHash does not reveal the stored hash.
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

// PasswordStore stores password hashes.
type PasswordStore interface {
	// Password returns the user with that email address and their password hash, or
	// dmarcd.ErrNotFound.
	Password(ctx context.Context, email string) (user dmarcd.UserID, hash string, err error)
	// SignInAddresses returns the network addresses from which the user with an email address
	// began sessions since a time.
	SignInAddresses(ctx context.Context, email string, since time.Time) ([]string, error)
}

// PasswordSignIn signs users in with email address and password. It is safe for
// concurrent use.
type PasswordSignIn struct {
	Store     PasswordStore
	Passwords *Passwords
	Throttle  *Throttle
}

// User returns the user with that email address and password. If either is wrong it
// returns dmarcd.ErrUnauthorized after the same time; a ThrottledError says how long to
// wait. address is the client's network address.
func (s *PasswordSignIn) User(ctx context.Context, email, password, address string) (dmarcd.SignIn, error) {
	email, err := dmarcd.ParseEmail(email)
	if err != nil {
		email = "" // matches no user
	}
	if err := s.attempt(ctx, address, email); err != nil {
		return dmarcd.SignIn{}, err
	}
	user, hash, err := s.Store.Password(ctx, email)
	if err != nil && !errors.Is(err, dmarcd.ErrNotFound) {
		return dmarcd.SignIn{}, err
	}
	right, err := s.Passwords.Verify(ctx, address, hash, password)
	if err != nil {
		return dmarcd.SignIn{}, err
	}
	if !right {
		return dmarcd.SignIn{}, dmarcd.ErrUnauthorized
	}
	s.Throttle.Succeeded(address, email)
	return dmarcd.SignIn{User: dmarcd.User{ID: user}, PasswordHash: hash, ProvedAt: s.Throttle.now()}, nil
}

// attempt is Throttle.Attempt, with the known addresses of the user's sessions: the throttle knows
// none after a restart, nor those of other replicas.
func (s *PasswordSignIn) attempt(ctx context.Context, address, email string) error {
	throttled := s.Throttle.Attempt(address, email)
	if throttled == nil || !s.Throttle.mayAsk(address, email) {
		return throttled
	}
	known, err := s.Store.SignInAddresses(ctx, email, s.Throttle.now().Add(-knownFor))
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(known, func(of string) bool { return addressKey(of) == addressKey(address) }) {
		return throttled
	}
	s.Throttle.know(address, email)
	return s.Throttle.Attempt(address, email)
}

// Next returns the hash of the next password of a user. current must be the current password,
// and is throttled like a sign-in. A user without a password gets dmarcd.ErrForbidden: otherwise
// the holder of a stolen session could set one.
func (s *PasswordSignIn) Next(ctx context.Context, user dmarcd.User, current, next, address string) (of dmarcd.SignIn, hash string, err error) {
	if !user.Password {
		return dmarcd.SignIn{}, "", dmarcd.ErrForbidden
	}
	if of, err = s.User(ctx, user.Email, current, address); err == nil {
		hash, err = s.Passwords.Hash(ctx, address, user.Email, next)
	}
	return of, hash, err
}
