package auth

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"image/png"
	"strings"
	"time"

	"github.com/pquerna/otp"
	"github.com/pquerna/otp/hotp"
	"github.com/pquerna/otp/totp"
)

const (
	// totpPeriod is for how long an authenticator app shows a code (RFC 6238 §5.2), in seconds.
	totpPeriod = 30
	// totpBytes is the length of a secret (RFC 4226 §4).
	totpBytes = 20
	// totpImage is the width of the image, in pixels.
	totpImage = 240
	// recoveryCodes is how many a user has, and recoveryChars their length: 80 bits.
	recoveryCodes = 10
	recoveryChars = 16
)

// TOTP is what an authenticator app is set up with.
type TOTP struct {
	// Secret is in base32.
	Secret string
	// Image is a PNG of the QR code, which contains the address of the user.
	Image []byte
}

// NewTOTP generates a secret for the user with an email address, unless it is given.
func NewTOTP(email, secret string) (TOTP, error) {
	raw := make([]byte, totpBytes)
	_, _ = rand.Read(raw) // never fails
	if secret != "" {
		var ok bool
		if raw, ok = totpSecret(secret); !ok {
			return TOTP{}, fmt.Errorf("draw a QR code: the secret is malformed")
		}
	}
	key, err := totp.Generate(totp.GenerateOpts{Issuer: "dmarcd", AccountName: email, Period: totpPeriod, Secret: raw})
	if err != nil {
		return TOTP{}, fmt.Errorf("draw a QR code: %w", err)
	}
	drawn, err := key.Image(totpImage, totpImage)
	if err != nil {
		return TOTP{}, fmt.Errorf("draw a QR code: %w", err)
	}
	var image bytes.Buffer
	if err := png.Encode(&image, drawn); err != nil {
		return TOTP{}, fmt.Errorf("draw a QR code: %w", err)
	}
	return TOTP{Secret: key.Secret(), Image: image.Bytes()}, nil
}

// totpSecret decodes a secret.
func totpSecret(secret string) ([]byte, bool) {
	raw, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(secret)
	return raw, err == nil && len(raw) == totpBytes
}

// VerifyTOTP returns the period of a code, and whether it is that of now, the one before or the one
// after: the clocks of phones differ.
func VerifyTOTP(secret, code string, now time.Time) (period int64, ok bool) {
	if _, ok := totpSecret(secret); !ok {
		return 0, false
	}
	current := now.Unix() / totpPeriod
	for _, period := range []int64{current, current - 1, current + 1} {
		//nolint:gosec // the time is after 1970
		if ok, err := hotp.ValidateCustom(code, uint64(period), secret, hotp.ValidateOpts{Digits: otp.DigitsSix}); err == nil && ok {
			return period, true
		}
	}
	return 0, false
}

// NewRecoveryCodes generates codes that replace the second factor once each, and the hashes to store.
func NewRecoveryCodes() (codes []string, hashes [][32]byte) {
	for range recoveryCodes {
		text := newSecret()[:recoveryChars]
		codes = append(codes, text[:4]+"-"+text[4:8]+"-"+text[8:12]+"-"+text[12:])
		hashes = append(hashes, sha256.Sum256([]byte(text)))
	}
	return codes, hashes
}

// HashRecoveryCode returns the hash of a recovery code, and whether it has the format of one.
func HashRecoveryCode(code string) ([32]byte, bool) {
	text := PlainCode(code)
	return sha256.Sum256([]byte(text)), len(text) == recoveryChars
}

// PlainCode returns a code as typed, without what separates its groups, in upper case.
func PlainCode(code string) string {
	return strings.ToUpper(strings.NewReplacer(" ", "", "-", "").Replace(code))
}
