package dkim_test

import (
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"math/big"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd/dkim"
	"github.com/dmarcd/dmarcd/dns/dnstest"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

// published returns the lines of a zone in which a selector of example.com has
// these TXT records.
func published(selector string, texts ...string) string {
	zone := ""
	for _, text := range texts {
		zone += selector + `._domainkey.example.com TXT "` + text + "\"\n"
	}
	return zone
}

func TestLookupKey(t *testing.T) {
	t.Parallel()
	key := "v=DKIM1; k=ed25519; p=" + exampleEd25519
	type problems = []dkim.Problem
	for _, tt := range []struct {
		name     string
		zone     string
		selector string // "s1" where it is ""
		want     dkim.Status
		keys     int
		others   int
		aliases  []string
		problems problems
	}{
		{name: "found", zone: published("s1", key), want: dkim.StatusFound, keys: 1},
		{name: "found in two strings", zone: published("s1", key[:30]+`" "`+key[30:]), want: dkim.StatusFound, keys: 1},
		{name: "a selector with a dot and in upper case", zone: published("a.b", key), selector: "A.B.", want: dkim.StatusFound, keys: 1},
		{name: "revoked", zone: published("s1", "v=DKIM1; p="), want: dkim.StatusRevoked, keys: 1},
		{name: "invalid", zone: published("s1", "v=DKIM1; p=%"), want: dkim.StatusInvalid, keys: 1},
		{name: "no such name", want: dkim.StatusNone},
		{name: "no TXT record", zone: "s1._domainkey.example.com A 192.0.2.1", want: dkim.StatusNone},
		{name: "something else", zone: published("s1", "v=spf1 -all"), want: dkim.StatusNone, others: 1},
		{
			name: "nearly a key", zone: published("s1", "v=dkim1; p="), want: dkim.StatusNone, others: 1,
			problems: problems{{Kind: dkim.NearMiss, Text: "v=dkim1; p="}},
		},
		{
			name: "a key without its tags", zone: published("s1", exampleRSA), want: dkim.StatusNone, others: 1,
			problems: problems{{Kind: dkim.NearMiss, Text: exampleRSA}},
		},
		{
			name: "two keys", zone: published("s1", key, "v=DKIM1; p="), want: dkim.StatusMultiple, keys: 2,
			problems: problems{{Kind: dkim.MultipleRecords, Count: 2, Limit: 1}},
		},
		{
			name: "a key and something else", zone: published("s1", key, "v=spf1 -all"), want: dkim.StatusMultiple, keys: 1, others: 1,
			problems: problems{{Kind: dkim.MultipleRecords, Count: 2, Limit: 1}},
		},
		{
			name: "kept elsewhere",
			zone: "s1._domainkey.example.com CNAME s1.keys.example.net\ns1.keys.example.net CNAME k.example.org\n" + `k.example.org TXT "` + key + `"`,
			want: dkim.StatusFound, keys: 1, aliases: []string{"s1.keys.example.net", "k.example.org"},
		},
		{
			name: "kept nowhere", zone: "s1._domainkey.example.com CNAME gone.example.net",
			want: dkim.StatusNone, aliases: []string{"gone.example.net"},
			problems: problems{{Kind: dkim.DanglingAlias, Text: "gone.example.net"}},
		},
		{name: "inconclusive", zone: "s1._domainkey.example.com INCONCLUSIVE", want: dkim.StatusInconclusive},
		{
			name: "inconclusive behind an alias", zone: "s1._domainkey.example.com CNAME slow.example.net\nslow.example.net INCONCLUSIVE",
			want: dkim.StatusInconclusive, aliases: []string{"slow.example.net"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			selector := tt.selector
			if selector == "" {
				selector = "s1"
			}
			got := dkim.LookupKey(t.Context(), dnstest.New(tt.zone), selector, "Example.COM.")
			if got.Status != tt.want || len(got.Keys) != tt.keys || len(got.Others) != tt.others {
				t.Errorf("got %v, %d keys, %d others; want %v, %d, %d", got.Status, len(got.Keys), len(got.Others), tt.want, tt.keys, tt.others)
			}
			if diff := cmp.Diff(tt.aliases, got.Answer.Aliases); diff != "" {
				t.Errorf("got other aliases (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.problems, got.Problems); diff != "" {
				t.Errorf("got other problems (-want +got):\n%s", diff)
			}
			single := tt.keys == 1 && tt.others == 0
			if _, ok := got.Key(); ok != single {
				t.Errorf("one key: got %v, want %v", ok, single)
			}
		})
	}
}

func TestLookupKeyAsksOnlyForNames(t *testing.T) {
	t.Parallel()
	for _, selector := range []string{"", "a..b", "a b", "é"} {
		zone := dnstest.New("")
		got := dkim.LookupKey(t.Context(), zone, selector, "example.com")
		if got.Status != dkim.StatusNone || len(zone.Asked()) != 0 {
			t.Errorf("%q: got %v after %d questions, want %v after none", selector, got.Status, len(zone.Asked()), dkim.StatusNone)
		}
	}
}

func TestWords(t *testing.T) {
	t.Parallel()
	for got, want := range map[interface{ String() string }]string{
		dkim.StatusInconclusive: "inconclusive", dkim.StatusFound: "found", dkim.StatusNone: "none", dkim.StatusMultiple: "multiple",
		dkim.StatusRevoked: "revoked", dkim.StatusInvalid: "invalid",
		dkim.Usable: "usable", dkim.Revoked: "revoked", dkim.Invalid: "invalid",
		dkim.NamespaceMissing: "missing", dkim.NamespaceExists: "exists", dkim.NamespaceUnknown: "unknown",
	} {
		if got.String() != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

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
