package dkim_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"math/big"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd/dkim"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

func TestParsePublicKey(t *testing.T) {
	t.Parallel()
	usual := big.NewInt(usualExponent)
	n := modulus(2048)
	huge := new(big.Int).SetBit(big.NewInt(1), 62, 1)
	raw := musttest.Get(base64.StdEncoding.DecodeString(exampleEd25519))(t)
	wrappedEd25519 := wrap(t, pkix.AlgorithmIdentifier{Algorithm: asn1.ObjectIdentifier{1, 3, 101, 112}}, raw)
	for _, tt := range []struct {
		name      string
		algorithm string // rsa where it is ""
		data      string
		bits      int
		invalid   bool
		problem   dkim.Problem // without Tag, and the zero value where there is none
	}{
		{name: "2048 bits", data: rsaKey(t, 2048), bits: 2048},
		{name: "4096 bits", data: rsaKey(t, 4096), bits: 4096},
		{name: "too short to count", data: rsaKey(t, 1023), bits: 1023, invalid: true, problem: dkim.Problem{Kind: dkim.ShortKey, Count: 1023, Limit: 1024}},
		{name: "as short as may be", data: rsaKey(t, 1024), bits: 1024, problem: dkim.Problem{Kind: dkim.WeakKey, Count: 1024, Limit: 2048}},
		{name: "shorter than it should be", data: rsaKey(t, 2047), bits: 2047, problem: dkim.Problem{Kind: dkim.WeakKey, Count: 2047, Limit: 2048}},
		{name: "longer than all must support", data: rsaKey(t, 4097), bits: 4097, problem: dkim.Problem{Kind: dkim.LongKey, Count: 4097, Limit: 4096}},
		{name: "as long as some support", data: rsaKey(t, 8192), bits: 8192, problem: dkim.Problem{Kind: dkim.LongKey, Count: 8192, Limit: 4096}},
		{name: "longer than some support", data: rsaKey(t, 8193), bits: 8193, problem: dkim.Problem{Kind: dkim.LongKey, Count: 8193, Limit: 8192}},
		{name: "RSAPublicKey", data: bareKey(t, n, usual), bits: 2048, problem: dkim.Problem{Kind: dkim.BareKey}},
		{name: "exponent 3", data: wrappedKey(t, n, big.NewInt(3)), bits: 2048},
		{name: "exponent 1", data: wrappedKey(t, n, big.NewInt(1)), bits: 2048, invalid: true, problem: dkim.Problem{Kind: dkim.BadExponent, Text: "1"}},
		{name: "exponent 0", data: wrappedKey(t, n, big.NewInt(0)), bits: 2048, invalid: true, problem: dkim.Problem{Kind: dkim.BadExponent, Text: "0"}},
		{name: "even exponent", data: wrappedKey(t, n, big.NewInt(65536)), bits: 2048, invalid: true, problem: dkim.Problem{Kind: dkim.BadExponent, Text: "65536"}},
		{name: "negative exponent", data: wrappedKey(t, n, big.NewInt(-3)), bits: 2048, invalid: true, problem: dkim.Problem{Kind: dkim.BadExponent, Text: "-3"}},
		{name: "largest exponent for all", data: wrappedKey(t, n, big.NewInt(1<<31-1)), bits: 2048},
		{name: "large exponent", data: wrappedKey(t, n, big.NewInt(1<<31+1)), bits: 2048, problem: dkim.Problem{Kind: dkim.LargeExponent, Count: 32, Limit: 31}},
		{name: "largest exponent for some", data: wrappedKey(t, n, big.NewInt(1<<61+1)), bits: 2048, problem: dkim.Problem{Kind: dkim.LargeExponent, Count: 62, Limit: 31}},
		{name: "large even exponent", data: wrappedKey(t, n, big.NewInt(1<<61)), bits: 2048, invalid: true, problem: dkim.Problem{Kind: dkim.BadExponent, Text: "2305843009213693952"}},
		{name: "huge exponent", data: wrappedKey(t, n, huge), bits: 2048, invalid: true, problem: dkim.Problem{Kind: dkim.BadExponent}},
		{name: "modulus 0", data: wrappedKey(t, big.NewInt(0), usual), invalid: true, problem: dkim.Problem{Kind: dkim.MalformedKey}},
		{name: "not base64", data: "%%%", invalid: true, problem: dkim.Problem{Kind: dkim.UndecodableKey}},
		{name: "quotation marks inside", data: rsaKey(t, 2048)[:80] + `" "` + rsaKey(t, 2048)[80:], invalid: true, problem: dkim.Problem{Kind: dkim.UndecodableKey}},
		{name: "cut off", data: rsaKey(t, 2048)[:200], invalid: true, problem: dkim.Problem{Kind: dkim.MalformedKey}},
		{name: "bytes after the key", data: rsaKey(t, 2048) + "AAAA", invalid: true, problem: dkim.Problem{Kind: dkim.MalformedKey}},
		{name: "Ed25519 without k", data: exampleEd25519, invalid: true, problem: dkim.Problem{Kind: dkim.MalformedKey}},
		{name: "Ed25519 in the form for RSA", data: wrappedEd25519, invalid: true, problem: dkim.Problem{Kind: dkim.WrongKeyType, Text: "1.3.101.112"}},
		{name: "Ed25519", algorithm: dkim.Ed25519, data: exampleEd25519, bits: 256},
		{name: "Ed25519 without padding", algorithm: dkim.Ed25519, data: exampleEd25519[:43], bits: 256},
		{name: "Ed25519 wrapped", algorithm: dkim.Ed25519, data: wrappedEd25519, invalid: true, problem: dkim.Problem{Kind: dkim.WrongKeyLength, Count: 44, Limit: 32}},
		{name: "Ed25519 cut off", algorithm: dkim.Ed25519, data: exampleEd25519[:40], invalid: true, problem: dkim.Problem{Kind: dkim.WrongKeyLength, Count: 30, Limit: 32}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			algorithm := tt.algorithm
			if algorithm == "" {
				algorithm = dkim.RSA
			}
			var want []dkim.Problem
			if tt.problem.Kind != "" {
				tt.problem.Tag = "p"
				switch tt.problem.Kind {
				case dkim.UndecodableKey, dkim.MalformedKey, dkim.WrongKeyLength:
					tt.problem.Text = tt.data
				}
				want = append(want, tt.problem)
			}
			got, _ := dkim.ParseKey("v=DKIM1; k=" + algorithm + "; p=" + tt.data)
			if got.Bits != tt.bits || (got.State == dkim.Invalid) != tt.invalid {
				t.Errorf("got %d bits, %v; want %d bits, invalid %v", got.Bits, got.State, tt.bits, tt.invalid)
			}
			if diff := cmp.Diff(want, got.Problems); diff != "" {
				t.Errorf("got other problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPublicKey(t *testing.T) {
	t.Parallel()
	want := &rsa.PublicKey{N: modulus(2048), E: usualExponent}
	for name, data := range map[string]string{
		"wrapped": wrappedKey(t, want.N, big.NewInt(usualExponent)),
		"bare":    bareKey(t, want.N, big.NewInt(usualExponent)),
	} {
		key, _ := dkim.ParseKey("p=" + data)
		if !want.Equal(key.PublicKey) {
			t.Errorf("%s: got %v, want %v", name, key.PublicKey, want)
		}
	}
	for e, want := range map[int64]bool{1<<61 + 1: true, 1<<62 + 1: false} {
		key, _ := dkim.ParseKey("p=" + wrappedKey(t, modulus(2048), big.NewInt(e)))
		if got := key.PublicKey != nil; got != want {
			t.Errorf("exponent %d: got a public key: %t, want one: %t", e, got, want)
		}
	}
	// The key pair of RFC 8463 §A.2 is that of RFC 8032 §7.1, test 1.
	seed := musttest.Get(base64.StdEncoding.DecodeString("nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A="))(t)
	public := ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey)
	key, _ := dkim.ParseKey("k=ed25519; p=" + exampleEd25519)
	if got, ok := key.PublicKey.(ed25519.PublicKey); !ok || !bytes.Equal(got, public) {
		t.Errorf("got %x, want %x", got, public)
	}
	key, _ = dkim.ParseKey("p=")
	if key.PublicKey != nil {
		t.Errorf("revoked: got %v, want none", key.PublicKey)
	}
}
