package dkim_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"math/big"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dmarcd/dmarcd/dkim"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

// fields compares what the tags state, and the problems.
var fields = cmp.Options{
	cmpopts.IgnoreFields(dkim.Key{}, "Text", "Tags", "PublicKey"),
	cmpopts.EquateEmpty(),
}

func TestParseKey(t *testing.T) {
	t.Parallel()
	type problems = []dkim.Problem
	const none = -1 // Bits where there is no key
	p := "p=" + rsaKey(t, 2048)
	for _, tt := range []struct {
		name string
		txt  string
		want dkim.Key // without Algorithm where it is rsa, and without Bits where they are 2048
	}{
		{name: "smallest", txt: p},
		{name: "usual", txt: "v=DKIM1; k=rsa; " + p},
		{name: "semicolon at the end", txt: "v=DKIM1; " + p + ";"},
		{
			name: "RFC 6376 Appendix C", txt: "v=DKIM1; p=" + exampleRSA,
			want: dkim.Key{Bits: 1024, Problems: problems{{Kind: dkim.WeakKey, Tag: "p", Count: 1024, Limit: 2048}}},
		},
		{
			name: "RFC 8463 A.2", txt: "v=DKIM1; k=ed25519; p=" + exampleEd25519,
			want: dkim.Key{Algorithm: dkim.Ed25519, Bits: 256},
		},
		{name: "white space around everything", txt: " v = DKIM1 ;\tk\t=\trsa ;\r\n p = " + p[2:] + " "},
		{name: "white space inside of the key", txt: "v=DKIM1; " + p[:50] + " " + p[50:100] + "\r\n\t" + p[100:]},
		{
			name: "92 revoked", txt: "v=DKIM1; p=",
			want: dkim.Key{State: dkim.Revoked, Bits: none},
		},
		{name: "revoked without a version", txt: "p=", want: dkim.Key{State: dkim.Revoked, Bits: none}},
		{
			name: "revoked whatever the algorithm", txt: "v=DKIM1; k=dsa; p=",
			want: dkim.Key{State: dkim.Revoked, Algorithm: "dsa", Bits: none, Problems: problems{{Kind: dkim.UnknownAlgorithm, Tag: "k", Text: "dsa"}}},
		},
		{
			name: "93 version not first", txt: "k=rsa; v=DKIM1; " + p,
			want: dkim.Key{State: dkim.Invalid, Problems: problems{{Kind: dkim.VersionNotFirst, Tag: "v", Text: "DKIM1"}}},
		},
		{
			name: "a broken record is not a revoked one", txt: "p=; v=DKIM1",
			want: dkim.Key{State: dkim.Invalid, Bits: none, Problems: problems{{Kind: dkim.VersionNotFirst, Tag: "v", Text: "DKIM1"}}},
		},
		{
			name: "no key", txt: "v=DKIM1; k=rsa",
			want: dkim.Key{State: dkim.Invalid, Bits: none, Problems: problems{{Kind: dkim.MissingTag, Tag: "p"}}},
		},
		{
			name: "a tag twice", txt: "v=DKIM1; t=s; t=y; " + p,
			want: dkim.Key{State: dkim.Invalid, Strict: true, Problems: problems{{Kind: dkim.DuplicateTag, Tag: "t", Text: "y"}}},
		},
		{
			name: "the version twice", txt: "v=DKIM1; v=DKIM1; " + p,
			want: dkim.Key{State: dkim.Invalid, Problems: problems{{Kind: dkim.DuplicateTag, Tag: "v", Text: "DKIM1"}}},
		},
		{
			name: "no name=value", txt: "v=DKIM1; rsa; " + p,
			want: dkim.Key{State: dkim.Invalid, Problems: problems{{Kind: dkim.MalformedElement, Text: "rsa"}}},
		},
		{
			name: "a name that no tag can have", txt: "v=DKIM1; 1k=rsa; " + p,
			want: dkim.Key{State: dkim.Invalid, Problems: problems{{Kind: dkim.MalformedElement, Text: "1k=rsa"}}},
		},
		{
			name: "a value that is not ASCII", txt: "v=DKIM1; n=é; " + p,
			want: dkim.Key{State: dkim.Invalid, Problems: problems{{Kind: dkim.MalformedElement, Text: "n=é"}}},
		},
		{
			name: "an empty element", txt: "v=DKIM1;; " + p,
			want: dkim.Key{State: dkim.Invalid, Problems: problems{{Kind: dkim.EmptyElement}}},
		},
		{
			name: "white space after the last semicolon", txt: "v=DKIM1; " + p + "; ",
			want: dkim.Key{Problems: problems{{Kind: dkim.TrailingSpace}}},
		},
		{
			name: "an unknown algorithm", txt: "v=DKIM1; k=dsa; " + p,
			want: dkim.Key{State: dkim.Invalid, Algorithm: "dsa", Bits: none, Problems: problems{{Kind: dkim.UnknownAlgorithm, Tag: "k", Text: "dsa"}}},
		},
		{
			name: "an algorithm in upper case is an unknown one", txt: "v=DKIM1; k=RSA; " + p,
			want: dkim.Key{State: dkim.Invalid, Algorithm: "RSA", Bits: none, Problems: problems{{Kind: dkim.UnknownAlgorithm, Tag: "k", Text: "RSA"}}},
		},
		{
			name: "an empty algorithm", txt: "v=DKIM1; k=; " + p,
			want: dkim.Key{State: dkim.Invalid, Problems: problems{{Kind: dkim.InvalidValue, Tag: "k"}}},
		},
		{
			name: "testing and strict", txt: "v=DKIM1; t=y:s; " + p,
			want: dkim.Key{Testing: true, Strict: true, Problems: problems{{Kind: dkim.TestMode, Tag: "t", Text: "y"}}},
		},
		{
			name: "an unknown flag", txt: "v=DKIM1; t=s : z; " + p,
			want: dkim.Key{Strict: true, Problems: problems{{Kind: dkim.UnknownFlag, Tag: "t", Text: "z"}}},
		},
		{
			name: "an empty flag", txt: "v=DKIM1; t=y:; " + p,
			want: dkim.Key{State: dkim.Invalid, Problems: problems{{Kind: dkim.InvalidValue, Tag: "t", Text: "y:"}}},
		},
		{name: "sha256 alone", txt: "v=DKIM1; h=sha256; " + p, want: dkim.Key{Hashes: []string{"sha256"}}},
		{
			name: "sha1 beside sha256", txt: "v=DKIM1; h=sha1 : sha256; " + p,
			want: dkim.Key{Hashes: []string{"sha1", "sha256"}, Problems: problems{{Kind: dkim.SHA1Allowed, Tag: "h", Text: "sha1 : sha256"}}},
		},
		{
			name: "sha1 alone", txt: "v=DKIM1; h=sha1; " + p,
			want: dkim.Key{State: dkim.Invalid, Hashes: []string{"sha1"}, Problems: problems{{Kind: dkim.SHA1Only, Tag: "h", Text: "sha1"}}},
		},
		{
			name: "an unknown hash beside a known one", txt: "v=DKIM1; h=sha256:sha3-512; " + p,
			want: dkim.Key{Hashes: []string{"sha256", "sha3-512"}, Problems: problems{{Kind: dkim.UnknownHash, Tag: "h", Text: "sha3-512"}}},
		},
		{
			name: "unknown hashes alone", txt: "v=DKIM1; h=sha3; " + p,
			want: dkim.Key{
				State: dkim.Invalid, Hashes: []string{"sha3"},
				Problems: problems{{Kind: dkim.UnknownHash, Tag: "h", Text: "sha3"}, {Kind: dkim.NoKnownHash, Tag: "h", Text: "sha3"}},
			},
		},
		{
			name: "a hash that is no word", txt: "v=DKIM1; h=sha-; " + p,
			want: dkim.Key{State: dkim.Invalid, Problems: problems{{Kind: dkim.InvalidValue, Tag: "h", Text: "sha-"}}},
		},
		{name: "all services", txt: "v=DKIM1; s=*; " + p, want: dkim.Key{Services: []string{"*"}}},
		{name: "mail and reports", txt: "v=DKIM1; s=email:tlsrpt; " + p, want: dkim.Key{Services: []string{"email", "tlsrpt"}}},
		{
			name: "reports only", txt: "v=DKIM1; s=tlsrpt; " + p,
			want: dkim.Key{Services: []string{"tlsrpt"}, Problems: problems{{Kind: dkim.NotForEmail, Tag: "s", Text: "tlsrpt"}}},
		},
		{
			name: "an unknown service", txt: "v=DKIM1; s=email:fax; " + p,
			want: dkim.Key{Services: []string{"email", "fax"}, Problems: problems{{Kind: dkim.UnknownService, Tag: "s", Text: "fax"}}},
		},
		{
			name: "an empty service", txt: "v=DKIM1; s=email::*; " + p,
			want: dkim.Key{State: dkim.Invalid, Problems: problems{{Kind: dkim.InvalidValue, Tag: "s", Text: "email::*"}}},
		},
		{name: "notes", txt: "v=DKIM1; n=call=20me later; " + p, want: dkim.Key{Notes: "call=20me later"}},
		{
			name: "an unknown tag", txt: "v=DKIM1; x_1=2; " + p,
			want: dkim.Key{Problems: problems{{Kind: dkim.UnknownTag, Tag: "x_1", Text: "2"}}},
		},
		{
			name: "the tag of RFC 4871", txt: "v=DKIM1; g=*; " + p,
			want: dkim.Key{Problems: problems{{Kind: dkim.HistoricTag, Tag: "g", Text: "*"}}},
		},
		{
			name: "tags in upper case are unknown", txt: "v=DKIM1; T=y; " + p,
			want: dkim.Key{Problems: problems{{Kind: dkim.TagCase, Tag: "t", Text: "T"}}},
		},
		{
			name: "too many tags", txt: "v=DKIM1; " + p + manyTags(99),
			want: dkim.Key{State: dkim.Invalid, Problems: append(unknownTags(98), dkim.Problem{Kind: dkim.TooManyTags, Text: tagName(98) + "=1"})},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			want := tt.want
			if want.Algorithm == "" {
				want.Algorithm = dkim.RSA
			}
			switch want.Bits {
			case 0:
				want.Bits = 2048
			case none:
				want.Bits = 0
			}
			got, ok := dkim.ParseKey(tt.txt)
			if !ok {
				t.Fatal("got no key, want one")
			}
			if diff := cmp.Diff(want, got, fields); diff != "" {
				t.Errorf("got another key (-want +got):\n%s", diff)
			}
			if got.Text != tt.txt {
				t.Errorf("got text %q, want %q", got.Text, tt.txt)
			}
		})
	}
}

// tagName returns a name that no other i has.
func tagName(i int) string { return "x" + strings.Repeat("y", i) }

// manyTags returns n distinct unknown tags, each with a semicolon before it.
func manyTags(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(";" + tagName(i) + "=1")
	}
	return b.String()
}

func unknownTags(n int) []dkim.Problem {
	var problems []dkim.Problem
	for i := range n {
		problems = append(problems, dkim.Problem{Kind: dkim.UnknownTag, Tag: tagName(i), Text: "1"})
	}
	return problems
}

func TestParseKeyOnOtherTexts(t *testing.T) {
	t.Parallel()
	for _, txt := range []string{
		"",
		"v=spf1 -all",
		"v=dkim1; p=",
		"v=DKIM2; p=",
		"v=DKIM1.0; p=",
		"k=rsa; n=no key here",
		"site-verification=0123456789",
		"P=abc",
	} {
		t.Run(txt, func(t *testing.T) {
			t.Parallel()
			if got, ok := dkim.ParseKey(txt); ok {
				t.Errorf("got %+v, want no key", got)
			}
		})
	}
}

func TestForEmail(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		txt  string
		want bool
	}{
		{"p=", true},
		{"s=*; p=", true},
		{"s=email; p=", true},
		{"s=tlsrpt:email; p=", true},
		{"s=tlsrpt; p=", false},
	} {
		t.Run(tt.txt, func(t *testing.T) {
			t.Parallel()
			key, _ := dkim.ParseKey(tt.txt)
			if got := key.ForEmail(); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestFatal(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		kind dkim.Kind
		want bool
	}{
		{dkim.DuplicateTag, true},
		{dkim.ShortKey, true},
		{dkim.WeakKey, false},
		{dkim.NearMiss, false},
	} {
		if got := tt.kind.Fatal(); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.kind, got, tt.want)
		}
	}
}

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
