package dkim_test

import (
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"math/big"
	"testing"

	"github.com/dmarcd/dmarcd/internal/musttest"
)

const (
	// exampleRSA is the key of 1024 bits from RFC 6376 Appendix C.
	exampleRSA = "MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDwIRP/UC3SBsEmGqZ9ZJW3/DkMoGeLnQg1fWn7/zYt" +
		"IxN2SnFCjxOCKG9v3b4jYfcTNh5ijSsq631uBItLa7od+v/RtdC2UzJ1lWT947qR+Rcac2gb" +
		"to/NMqJ0fzfVjH4OuKhitdY9tf6mcwGjaNBcWToIMmPSPDdQPNUYckcQ2QIDAQAB"
	// exampleEd25519 is the key of RFC 8463 §A.2.
	exampleEd25519 = "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="

	usualExponent = 65537
)

// modulus returns a number that has the size of an RSA modulus and nothing else
// of one.
func modulus(bits int) *big.Int {
	n := big.NewInt(1)
	return n.SetBit(n, bits-1, 1)
}

// bareKey returns an RSAPublicKey in base64.
func bareKey(tb testing.TB, n, e *big.Int) string {
	tb.Helper()
	return encode(tb, struct{ N, E *big.Int }{n, e})
}

// wrappedKey returns a SubjectPublicKeyInfo in base64.
func wrappedKey(tb testing.TB, n, e *big.Int) string {
	tb.Helper()
	inner := musttest.Get(base64.StdEncoding.DecodeString(bareKey(tb, n, e)))(tb)
	return wrap(tb, pkix.AlgorithmIdentifier{
		Algorithm: asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 1}, Parameters: asn1.NullRawValue,
	}, inner)
}

// rsaKey returns the usual form of a key of that many bits.
func rsaKey(tb testing.TB, bits int) string {
	tb.Helper()
	return wrappedKey(tb, modulus(bits), big.NewInt(usualExponent))
}

// wrap returns a SubjectPublicKeyInfo of any algorithm in base64.
func wrap(tb testing.TB, algorithm pkix.AlgorithmIdentifier, key []byte) string {
	tb.Helper()
	return encode(tb, struct {
		Algorithm pkix.AlgorithmIdentifier
		Key       asn1.BitString
	}{algorithm, asn1.BitString{Bytes: key, BitLength: 8 * len(key)}})
}

func encode(tb testing.TB, value any) string {
	tb.Helper()
	der := musttest.Get(asn1.Marshal(value))(tb)
	return base64.StdEncoding.EncodeToString(der)
}
