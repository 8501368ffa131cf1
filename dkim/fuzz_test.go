package dkim_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dmarcd/dmarcd/dkim"
)

// FuzzParseKey checks that limits are kept, that the state follows from the
// problems, and that a usable key and its canonical form state the same.
func FuzzParseKey(f *testing.F) {
	for _, seed := range []string{
		"v=DKIM1; k=rsa; h=sha256:sha1; s=email:*; t=y:s; n=note; p=" + exampleRSA,
		"v=DKIM1; k=ed25519; p=" + exampleEd25519,
		"p=" + rsaKey(f, 4096),
		"p=" + bareKey(f, modulus(1024), modulus(40)),
		"v=DKIM1; p=", "k=rsa; v=DKIM1; p=A", " v = DKIM1 ;; t=:; x_1=é; p", "v=dkim1; p=", "g=*;p= A A = ",
	} {
		f.Add(seed)
	}
	const most = 100
	f.Fuzz(func(t *testing.T, txt string) {
		k, ok := dkim.ParseKey(txt)
		if !ok {
			return
		}
		if k.Text != txt || len(k.Tags) > most || len(k.Problems) > most || len(k.Hashes) > most || len(k.Services) > most {
			t.Errorf("got text %q, %d tags, %d problems, %d hashes, %d services", k.Text, len(k.Tags), len(k.Problems), len(k.Hashes), len(k.Services))
		}
		fatal := slices.ContainsFunc(k.Problems, func(p dkim.Problem) bool { return p.Kind.Fatal() })
		if k.State == dkim.Usable && (fatal || k.PublicKey == nil) || k.State == dkim.Invalid && !fatal && len(k.Problems) < most {
			t.Errorf("got %v with %v and public key %v", k.State, k.Problems, k.PublicKey)
		}
		if k.State != dkim.Usable {
			return
		}
		canonical := k.String()
		again, ok := dkim.ParseKey(canonical)
		if !ok {
			t.Fatalf("the canonical form %q is not taken for a key", canonical)
		}
		if diff := cmp.Diff(k, again, cmpopts.IgnoreFields(dkim.Key{}, "Text", "Tags", "Problems"), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("the canonical form %q states something else (-key +canonical):\n%s", canonical, diff)
		}
		if got := again.String(); got != canonical {
			t.Errorf("canonical form of %q: got %q", canonical, got)
		}
	})
}
